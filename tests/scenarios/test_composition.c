/* Random combinations of everything (support/composition.h). The application is shown
 * what the handler sent, each segment once and in order, and so is the merged result,
 * whatever way it took and whatever went wrong (R-C-2, R-C-6, R-C-8, R-C-11, R-C-13,
 * R-1905-34, AS-29). An answer that a handler gets belongs to its own question, of its
 * own call, and comes from that call's principal (R-0-1). All memory is returned.
 *
 *     SEGUE_SEEDS=<n>      number of seeds, 300 by default
 *     SEGUE_FIRST=<seed>   the first seed, 1 by default
 *     SEGUE_MINUTES=<n>    start no further seed after this time
 *     SEGUE_ROW=<name>     only this row of composition_dialects.c
 *     SEGUE_SEED=<seed>    only this seed: a failure prints it */
#include "support/composition.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void random_runs(void **state)
{
    (void)state;
    uint64_t one = number_of("SEGUE_SEED", 0);
    uint64_t seed = one ? one : number_of("SEGUE_FIRST", 1);
    uint64_t count = one ? 1 : number_of("SEGUE_SEEDS", 300);
    uint64_t minutes = number_of("SEGUE_MINUTES", 0);
    time_t end = time(NULL) + (time_t)minutes * 60;
    for (; count && (!minutes || time(NULL) < end); count--)
        composition_run(seed++);
}

/* A question on a stream of GET that its client has not seen: the client names the stream
 * of another server. */
static void a_stream_that_begins_anew(void **state)
{
    (void)state;
    composition_run(2050);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-29 R-C-8 R-0-1 random combinations of everything", random_runs, NULL, NULL,
         NULL},
        {"R-0-8 a stream that begins anew at another server has all of it",
         a_stream_that_begins_anew, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("composition", tests, NULL, NULL);
}
