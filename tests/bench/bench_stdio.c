/* Load for a server on standard input and output: starts the server and sends prepared
 * bytes, so that only the server is measured. This process does not use Segue.
 *
 *   bench_stdio [--cpu N] echo WINDOW MILLISECONDS COMMAND...
 *   bench_stdio [--cpu N] keyed WINDOW MILLISECONDS COMMAND...
 *   bench_stdio [--cpu N] start COMMAND...
 *   bench_stdio [--cpu N] park COUNT COMMAND...
 *
 * echo keeps WINDOW calls in flight: it reads what has come and sends as many requests as
 * there were answers, in one write. Requests differ only in their id, which has eight
 * digits, so all answers have one length. The length is checked, because an error would
 * have another one. It works against bench_bare too, which answers anything. keyed does
 * the same with an idempotency key of its own in each request.
 *
 * Never more is in flight than a pipe holds, so writing does not block. */
#include "bench.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_ID 10000000
#define ID_DIGITS 8
#define ID_PLACE "00000000"
#define MAX_WINDOW 150
#define MAX_REQUEST 512
#define MAX_LATENCIES 4000000
#define WARM_UP 2000

#define META                                                                             \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","             \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"bench\",\"version\":\"0\"},"     \
    "\"io.modelcontextprotocol/clientCapabilities\":"

static const char echo_request[] =
    "{\"jsonrpc\":\"2.0\",\"id\":00000000,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"echo\",\"arguments\":{\"text\":\"The quick brown fox\"}," META "{}}}}\n";
static const char keyed_request[] =
    "{\"jsonrpc\":\"2.0\",\"id\":00000000,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"echo\",\"arguments\":{\"text\":\"The quick brown fox\"}," META
    "{},\"dev.segue/idempotencyKey\":\"a-bench-key-00000000\"}}}\n";
static const char park_request[] =
    "{\"jsonrpc\":\"2.0\",\"id\":00000000,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"park\",\"arguments\":{}," META
    "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}}}\n";
static const char discover_request[] = "{\"jsonrpc\":\"2.0\",\"id\":00000000,\"method\":"
                                       "\"server/discover\",\"params\":{" META "{}}}}\n";

typedef struct load {
    pid_t pid;
    int in;  /* the server's standard output */
    int out; /* the server's standard input */
    const char *request;
    size_t request_len;
    size_t id_at;
    size_t key_at; /* the number in the idempotency key; id_at = there is no key */
    int64_t next_id;
    int64_t answers;
    int64_t bytes;        /* bytes of all answers */
    int64_t answer_bytes; /* bytes of the first answer */
} load;

/* ---- the child ---- */

static void start_child(load *l, char **command)
{
    int to[2];
    int from[2];
    if (pipe(to) || pipe(from))
        bench_fail("no pipes");
    l->pid = fork();
    if (l->pid < 0)
        bench_fail("no process");
    if (l->pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[0]);
        close(to[1]);
        close(from[0]);
        close(from[1]);
        execv(command[0], command);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    l->out = to[1];
    l->in = from[0];
}

static void end_child(const load *l)
{
    close(l->out);
    kill(l->pid, SIGKILL);
    waitpid(l->pid, NULL, 0);
    close(l->in);
}

/* ---- requests and answers ---- */

static void prepare(load *l, const char *request)
{
    l->request = request;
    l->request_len = strlen(request);
    l->id_at = (size_t)(strstr(request, ID_PLACE) - request);
    const char *key = strstr(request + l->id_at + ID_DIGITS, ID_PLACE);
    l->key_at = key ? (size_t)(key - request) : l->id_at;
    if (!l->next_id)
        l->next_id = FIRST_ID;
}

static size_t write_request(load *l, char *to)
{
    int64_t id = l->next_id++;
    memcpy(to, l->request, l->request_len);
    for (size_t i = ID_DIGITS; i--; id /= 10)
        to[l->key_at + i] = to[l->id_at + i] = (char)('0' + id % 10);
    return l->request_len;
}

static void send_requests(load *l, int64_t count)
{
    static char buffer[MAX_WINDOW * MAX_REQUEST];
    size_t len = 0;
    for (int64_t i = 0; i < count; i++)
        len += write_request(l, buffer + len);
    if (len && write(l->out, buffer, len) != (ssize_t)len)
        bench_fail("the server does not read");
}

/* Reads once; returns how many answers ended. */
static int64_t take_answers(load *l)
{
    static char buffer[256 * 1024];
    int64_t lines = 0;
    ssize_t got = read(l->in, buffer, sizeof buffer);
    if (got <= 0)
        bench_fail("the server has ended");
    const char *end = buffer + got;
    for (const char *at = buffer; (at = memchr(at, '\n', (size_t)(end - at))); at++) {
        if (!l->answers && !lines)
            l->answer_bytes = l->bytes + (at + 1 - buffer);
        lines++;
    }
    l->answers += lines;
    l->bytes += got;
    return lines;
}

static void check_answers(const load *l)
{
    if (l->bytes != l->answers * l->answer_bytes)
        bench_fail("answers differ in length: not all are what they should be");
}

/* Keeps `window` requests in flight until `count` are answered. */
static void exchange(load *l, int64_t count, int64_t window)
{
    int64_t sent = window < count ? window : count;
    send_requests(l, sent);
    for (int64_t done = 0; done < count;) {
        int64_t lines = take_answers(l);
        int64_t more = count - sent < lines ? count - sent : lines;
        send_requests(l, more);
        sent += more;
        done += lines;
    }
}

/* ---- echo ---- */

static int compare_latencies(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a;
    int32_t y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void measure_rate(load *l, int64_t window, int64_t run_ms)
{
    int64_t from = l->answers;
    int64_t cpu = bench_cpu_ns(l->pid);
    int64_t begin = bench_now_ns();
    int64_t end = begin + run_ms * 1000000;
    send_requests(l, window);
    while (bench_now_ns() < end)
        send_requests(l, take_answers(l));
    double spent = (double)(bench_now_ns() - begin);
    double count = (double)(l->answers - from);
    bench_say("calls_per_s", count / spent * 1e9);
    bench_say("server_cpu_us", (double)(bench_cpu_ns(l->pid) - cpu) / count / 1000);
}

static void measure_latency(load *l, int64_t run_ms)
{
    int32_t *latencies = malloc(MAX_LATENCIES * sizeof *latencies);
    size_t count = 0;
    int64_t before = bench_now_ns();
    int64_t end = before + run_ms * 1000000;
    if (!latencies)
        bench_fail("out of memory");
    while (before < end && count < MAX_LATENCIES) {
        exchange(l, 1, 1);
        int64_t now = bench_now_ns();
        latencies[count++] = (int32_t)(now - before);
        before = now;
    }
    qsort(latencies, count, sizeof *latencies, compare_latencies);
    bench_say("p50_us", latencies[count / 2] / 1000.);
    bench_say("p99_us", latencies[count * 99 / 100] / 1000.);
    free(latencies);
}

static void run_calls(const char *request, int64_t window, int64_t run_ms, char **command)
{
    load l = {0};
    if (window < 1 || window > MAX_WINDOW)
        bench_fail("the window does not fit");
    prepare(&l, request);
    start_child(&l, command);
    exchange(&l, WARM_UP, window);
    if (window == 1)
        measure_latency(&l, run_ms);
    else
        measure_rate(&l, window, run_ms);
    check_answers(&l);
    bench_say("answer_bytes", (double)l.answer_bytes);
    end_child(&l);
}

/* ---- start ---- */

static void run_start(char **command)
{
    load l = {0};
    prepare(&l, discover_request);
    int64_t begin = bench_now_ns();
    start_child(&l, command);
    exchange(&l, 1, 1);
    bench_say("start_ms", (double)(bench_now_ns() - begin) / 1e6);
    end_child(&l);
}

/* ---- park ---- */

/* Idle memory is measured after a load of plain calls, when buffers have their final
 * size. */
static void run_park(int64_t count, char **command)
{
    load l = {0};
    prepare(&l, echo_request);
    start_child(&l, command);
    exchange(&l, WARM_UP, MAX_WINDOW);
    double before = bench_resident_mib(l.pid);
    prepare(&l, park_request);
    l.answers = l.bytes = 0;
    exchange(&l, count, MAX_WINDOW);
    check_answers(&l);
    bench_say("parked_mib", bench_resident_mib(l.pid) - before);
    bench_say("idle_mib", before);
    end_child(&l);
}

int main(int argc, char **argv)
{
    bench_pin(&argc, &argv);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 4 && strcmp(argv[1], "echo") == 0)
        run_calls(echo_request, atoll(argv[2]), atoll(argv[3]), argv + 4);
    else if (argc > 4 && strcmp(argv[1], "keyed") == 0)
        run_calls(keyed_request, atoll(argv[2]), atoll(argv[3]), argv + 4);
    else if (argc > 2 && strcmp(argv[1], "start") == 0)
        run_start(argv + 2);
    else if (argc > 3 && strcmp(argv[1], "park") == 0)
        run_park(atoll(argv[2]), argv + 3);
    else
        bench_fail("echo or keyed WINDOW MS, start or park COUNT, then a command");
    return 0;
}
