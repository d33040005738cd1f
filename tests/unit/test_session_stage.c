/* The order of a session's events when the session opens again and closes while the
 * application is still told that it is open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/client/session.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

static test_mem tm;
static fake_host host;
static segue_session *session;
static char told[16];
static size_t told_count;

static void tell(char what)
{
    assert_true(told_count < sizeof told - 1);
    told[told_count++] = what;
}

/* The first callback stands for another thread that reads from the network while the
 * application's callback runs. */
static void on_open(void *user, segue_session *opened)
{
    (void)user;
    tell('o');
    if (told_count > 1)
        return;
    sgi_session_on_server_replaced(opened);
    sgi_session_close(opened);
}

static void on_closed(void *user, segue_session *closed, const segue_error *error)
{
    (void)user, (void)closed, (void)error;
    tell('c');
}

static void free_user(void *user)
{
    (void)user;
    tell('f');
}

static void nothing_is_told_after_the_end(void **state)
{
    (void)state;
    segue_session_events events = {.struct_size = sizeof events,
                                   .on_open = on_open,
                                   .on_closed = on_closed,
                                   .free_user = free_user};
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 11);
    session = fake_session_new(&host, &events);
    assert_non_null(session);
    fake_session_open(session);
    fake_host_deliver(&host);
    assert_string_equal(told, "oocf");
    assert_int_equal(session->stage, SGI_STAGE_TOLD);
    fake_session_end(session);
    assert_string_equal(told, "oocf");
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_told_after_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
