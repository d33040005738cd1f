/* A SIGPIPE raised between hold and release is dropped; a pending one of the application
 * stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <time.h>
#include <unistd.h>

#include "transport/sigpipe.h"

static segue_runtime *make_runtime(void)
{
    segue_runtime_options options = {.struct_size = sizeof options};
    segue_runtime *rt = NULL;
    assert_int_equal(sgi_runtime_new(&options, &rt, NULL), SEGUE_OK);
    return rt;
}

static void write_to_nobody(void)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    assert_int_equal(write(fds[1], "x", 1), -1);
    close(fds[1]);
}

static int is_blocked(void)
{
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, SIGPIPE);
}

static void what_was_raised_meanwhile_goes_nowhere(void **state)
{
    segue_runtime *rt = make_runtime();
    sgi_sigpipe held;
    sigset_t pending;
    (void)state;
    signal(SIGPIPE, SIG_DFL); /* a SIGPIPE would end the test */
    sgi_sigpipe_block(&held, rt);
    write_to_nobody();
    assert_int_equal(is_blocked(), 1);
    sgi_sigpipe_unblock(&held, true);
    assert_int_equal(is_blocked(), 0);
    sigpending(&pending);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    sgi_runtime_free(rt);
}

static void one_of_the_application_stays_pending(void **state)
{
    const struct timespec at_once = {0, 0};
    segue_runtime *rt = make_runtime();
    sgi_sigpipe held;
    sigset_t only;
    (void)state;
    sigemptyset(&only);
    sigaddset(&only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &only, NULL);
    raise(SIGPIPE);
    sgi_sigpipe_block(&held, rt);
    write_to_nobody();
    sgi_sigpipe_unblock(&held, true);
    assert_int_equal(is_blocked(), 1);
    assert_int_equal(sigtimedwait(&only, NULL, &at_once), SIGPIPE);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    sgi_runtime_free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_raised_meanwhile_goes_nowhere),
        cmocka_unit_test(one_of_the_application_stays_pending),
    };
    return cmocka_run_group_tests_name("sigpipe", tests, NULL, NULL);
}
