/* Ten thousand idle connections, or as many as the limit of descriptors allows (both ends
 * are in this process, so 20,000 descriptors and more). The test is slow under
 * sanitizers, so it is separate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "support/http_stage.h"

enum { WANTED = 10000, SPARE = 200 };

static int allowed_connections(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 2 * WANTED + SPARE) {
        limit.rlim_cur =
            limit.rlim_max < 2 * WANTED + SPARE ? limit.rlim_max : 2 * WANTED + SPARE;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    rlim_t count = (limit.rlim_cur - SPARE) / 2;
    return count < WANTED ? (int)count : WANTED;
}

static int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static size_t resident(void)
{
    unsigned long total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &total, &pages), 2);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void ask(http_caller *c, const char *request)
{
    http_caller_say(c, request);
    assert_int_equal(http_caller_status(c), 200);
    free(c->in); /* memory of the callers is not measured */
    c->in = NULL;
}

static void ten_thousand_connections_rest(void **state)
{
    http_stage s = {.listen = {.idle_timeout_ms = 60000}};
    int count = allowed_connections();
    http_caller *callers = calloc((size_t)count, sizeof *callers);
    char *request = http_call("1", "greet", NULL);
    (void)state;
    http_stage_begin(&s);
    http_caller_open(&s, &callers[0]);
    ask(&callers[0], request);
    size_t one = s.mem.live, resident_before = resident();
    for (int i = 1; i < count; i++) {
        http_caller_open(&s, &callers[i]);
        ask(&callers[i], request);
    }
    size_t each = (s.mem.live - one) / (size_t)count;
    size_t all = (resident() - resident_before) / (size_t)count;
    print_message("%d connections, each %zu bytes of ours, %zu resident\n", count, each,
                  all);
    assert_true(each < 8 * 1024);
    int64_t before = cpu_us();
    for (int i = 0; i < 100; i++)
        http_stage_run(&s);
    int64_t idle = cpu_us() - before;
    print_message("an idle turn: %lld us\n", (long long)idle / 400);
    assert_true(idle < 400 * 2000);
    ask(&callers[count / 2], request); /* a connection still works */
    s.clock_ms += 61000;
    http_stage_run(&s);
    http_stage_advance(&s, 3000);
    for (int i = 0; i < count; i++) {
        http_caller_until_closed(&callers[i]);
        http_caller_close(&callers[i]);
    }
    free(request);
    free(callers);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_connections_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
