/* What Redis alone does with the segments of streams: XADD with the numbers as ids, in
 * pipelines of BATCH that go to TASKS streams in turn, each awaited before the next.
 *
 *   bench_xadd [--cpu N] PORT ROWS BATCH TASKS */
#include "bench.h"

#include <hiredis/hiredis.h>

#define SEGMENT "{\"type\":\"text\",\"text\":\"%0150d\"}"

static void add(redisContext *redis, long long task, long long seq, const char *data,
                size_t len)
{
    if (redisAppendCommand(redis, "XADD bare:%lld %lld-0 d %b", task, seq, data, len) !=
        REDIS_OK)
        bench_fail("a command cannot be queued");
}

static void await(redisContext *redis)
{
    redisReply *reply = NULL;
    if (redisGetReply(redis, (void **)&reply) != REDIS_OK ||
        reply->type == REDIS_REPLY_ERROR)
        bench_fail("an entry cannot be added");
    freeReplyObject(reply);
}

int main(int argc, char **argv)
{
    char data[256];
    bench_pin(&argc, &argv);
    int64_t rows = bench_number(argc, argv, 2, 0);
    int64_t batch = bench_number(argc, argv, 3, 0);
    int64_t tasks = bench_number(argc, argv, 4, 1);
    if (argc < 4 || rows < 1 || batch < 1)
        bench_fail("PORT ROWS BATCH TASKS");
    size_t len = (size_t)snprintf(data, sizeof data, SEGMENT, 0);
    redisContext *redis = redisConnect("127.0.0.1", atoi(argv[1]));
    if (!redis || redis->err)
        bench_fail("Redis cannot be reached");
    int64_t from = bench_now_ns();
    for (int64_t row = 0; row < rows;) {
        int64_t sent = 0;
        for (; sent < batch && row < rows; sent++, row++)
            add(redis, row % tasks, row / tasks + 1, data, len);
        while (sent-- > 0)
            await(redis);
    }
    bench_say("rows_per_s", (double)rows / (double)(bench_now_ns() - from) * 1e9);
    redisFree(redis);
    return 0;
}
