/* Sessions whose id is known to all servers that share a key: which sessions other
 * servers continue, for which principal, and which sessions they refuse. (Two servers in
 * one session: scenarios/test_followed.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/server/session_name.h"
#include "support/http_wire.h"

#define DAY_MS ((int64_t)24 * 60 * 60 * 1000)

static http_rig t;

static int set_up(void **state)
{
    (void)state;
    http_rig_begin(&t, "bob");
    t.server->seal.shared = true;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_rig_end(&t);
    return 0;
}

/* Makes the server forget the session, as if another server had opened it. */
static void open_elsewhere(void)
{
    http_rig_open(&t);
    http_wire_cut(&t.a);
    sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    assert_non_null(session);
    assert_in_range(strlen(session->id), 60, SGI_SESSION_ID_MAX - 1);
    sgi_wire_session_end(session);
    assert_int_equal(t.server->sessions.by_id.count, 0);
}

static segue_status adopt(const http_wire *wire, sgi_str name, int32_t most)
{
    sgi_wire_session *session = NULL;
    segue_status status =
        sgi_wire_session_new_from_name(t.server, wire->who, name, most, 60000, &session);
    assert_int_equal(status == SEGUE_OK, session != NULL);
    return status;
}

static void what_was_settled_is_known(void **state)
{
    (void)state;
    open_elsewhere();
    assert_int_equal(http_wire_legacy(&t.a, "2", "tools/list", ""), 200);
    sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    assert_int_equal(session->handshake.version, SGI_VERSION_2025_11_25);
    assert_true(session->handshake.initialized);
    /* Another server's streams are lost, except that of GET, which begins anew. */
    assert_true(session->first_stream > 1 << 20);
    assert_true(sgi_wire_session_stream_is_lost(session, 2));
    assert_true(sgi_wire_session_stream_is_lost(session, session->first_stream - 1));
    assert_true(sgi_wire_session_stream_is_lost(session, session->next_stream));
    assert_false(sgi_wire_session_stream_is_lost(session, SGI_STREAM_OF_GET | 2));
    assert_true((SGI_STREAM_OF_GET | session->next_stream) < INT64_C(1000000000000000));
}

/* A newer server with the same key has named a version that this server does not know. */
static void unknown_version_is_not_found(void **state)
{
    char name[SGI_SESSION_ID_MAX];
    (void)state;
    http_rig_open(&t);
    http_wire_cut(&t.a);
    sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    for (int version = 0; version < 256; version++) {
        sgi_version read = sgi_version_from_number(version);
        bool is_known = read != SGI_VERSION_UNKNOWN && !sgi_facts(read)->is_stateless;
        session->handshake.version = (sgi_version)version;
        session->is_named = false;
        assert_true(sgi_wire_session_give_name(session));
        strcpy(name, session->id);
        assert_int_equal(adopt(&t.a, sgi_str_of(name), 1000),
                         is_known ? SEGUE_OK : SEGUE_E_NOT_FOUND);
        session->handshake.version = SGI_VERSION_2025_11_25;
    }
}

static void it_is_good_for_its_owner_for_a_day(void **state)
{
    char altered[SGI_SESSION_ID_MAX];
    (void)state;
    open_elsewhere();
    assert_int_equal(adopt(&t.b, t.a.head.session, 100), SEGUE_E_NOT_FOUND);
    snprintf(altered, sizeof altered, "%s", t.a.session);
    altered[10] = altered[10] == 'A' ? 'B' : 'A';
    assert_int_equal(adopt(&t.a, sgi_str_of(altered), 100), SEGUE_E_NOT_FOUND);
    assert_int_equal(adopt(&t.a, SGI_STR(""), 100), SEGUE_E_NOT_FOUND);
    assert_int_equal(adopt(&t.a, SGI_STR("made-up"), 100), SEGUE_E_NOT_FOUND);
    fake_host_advance(&t.host, DAY_MS + 1);
    assert_int_equal(adopt(&t.a, t.a.head.session, 100), SEGUE_E_NOT_FOUND);
}

static void the_bound_holds_for_it(void **state)
{
    (void)state;
    open_elsewhere();
    assert_int_equal(adopt(&t.a, t.a.head.session, 0), SEGUE_E_LIMIT);
    assert_int_equal(adopt(&t.a, t.a.head.session, 1), SEGUE_OK);
}

static void what_its_client_ends_is_ended_here(void **state)
{
    (void)state;
    open_elsewhere();
    assert_int_equal(http_wire_delete(&t.a), 204);
    assert_int_equal(adopt(&t.a, t.a.head.session, 100), SEGUE_E_NOT_FOUND);
    assert_int_equal(http_wire_legacy(&t.a, "2", "tools/list", ""), 404);
}

static void without_a_shared_key_nothing_is_named(void **state)
{
    (void)state;
    t.server->seal.shared = false;
    http_rig_open(&t);
    assert_int_equal(strlen(t.a.session), SGI_RANDOM_TEXT);
    assert_int_equal(adopt(&t.a, t.a.head.session, 100), SEGUE_E_NOT_FOUND);
}

/* A client learns which server knows its settings, even if its first GET breaks. */
static void initialize_and_get_name_the_server(void **state)
{
    (void)state;
    assert_true(http_wire_open(&t.a, "2025-11-25"));
    assert_string_equal(t.a.answer.server, t.server->mailbox.name);
    assert_int_equal(http_wire_legacy(&t.a, "2", "tools/list", ""), 200);
    assert_null(t.a.answer.server);
    http_wire_get(&t.a, "");
    assert_string_equal(t.a.answer.server, t.server->mailbox.name);
    t.server->seal.shared = false;
    assert_true(http_wire_open(&t.b, "2025-11-25"));
    assert_null(t.b.answer.server);
}

/* The client does not know what has changed between the servers: it has a list of another
 * server. So its first stream here says that the lists have changed, once. */
static void a_continued_session_hears_of_other_lists(void **state)
{
    static const char of_tools[] = "notifications/tools/list_changed";
    char last_event[40];
    (void)state;
    open_elsewhere();
    http_wire_get(&t.a, "");
    assert_true(http_wire_says(&t.a, of_tools));
    assert_int_equal(sscanf(http_wire_text(&t.a), "id: %30[0-9]", last_event), 1);
    strcat(last_event, "-1"); /* it has the notification */
    http_wire_cut(&t.a);
    http_wire_get(&t.a, last_event);
    assert_false(http_wire_says(&t.a, of_tools));
    /* a session that begins here knows the lists of this server */
    assert_true(http_wire_open(&t.b, "2025-11-25"));
    http_wire_get(&t.b, "");
    assert_false(http_wire_says(&t.b, of_tools));
}

static char told[512];
static int opened, closed;

static void on_open(void *user, uint64_t client, const char *principal, const char *json,
                    size_t len)
{
    (void)user;
    assert_true(client > 0);
    assert_string_equal(principal, "ada");
    assert_in_range(len, 2, sizeof told - 1);
    snprintf(told, sizeof told, "%s", json);
    opened++;
}

static void on_closed(void *user, uint64_t client)
{
    (void)user;
    assert_true(client > 0);
    closed++;
}

/* Asks with these capabilities, and returns what on_open gets of them on another
 * server. */
static const char *continued_with(uint32_t caps)
{
    open_elsewhere();
    assert_true(http_wire_open(&t.a, "2025-11-25"));
    sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    session->is_named = false;
    session->handshake.caps = caps;
    assert_true(sgi_wire_session_give_name(session));
    char name[SGI_SESSION_ID_MAX];
    strcpy(name, session->id);
    http_wire_cut(&t.a);
    sgi_wire_session_end(session);
    assert_int_equal(adopt(&t.a, sgi_str_of(name), 10), SEGUE_OK);
    sgi_engine_run_callbacks(t.server->engine, 1000);
    return told;
}

/* The application learns of a session that began on another server, and of its end. */
static void a_continued_session_is_a_client(void **state)
{
    static const struct {
        uint32_t caps;
        const char *capabilities;
    } rows[] = {
        {0, "{}"},
        {SGI_CAP_ROOTS, "{\"roots\":{}}"},
        {SGI_CAP_ELICITATION, "{\"elicitation\":{}}"},
        {SGI_CAP_ELICITATION_URL, "{\"elicitation\":{\"url\":{}}}"},
        {SGI_CAP_ELICITATION | SGI_CAP_ELICITATION_URL | SGI_CAP_SAMPLING,
         "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{}}"},
        {SGI_CAP_SAMPLING | SGI_CAP_SAMPLING_TOOLS, "{\"sampling\":{\"tools\":{}}}"},
    };
    (void)state;
    opened = closed = 0;
    t.server->clients.watched = true;
    t.server->clients.events =
        (segue_client_events){.on_open = on_open, .on_closed = on_closed};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[256];
        snprintf(wanted, sizeof wanted,
                 "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":%s,"
                 "\"isSession\":true}",
                 rows[i].capabilities);
        assert_string_equal(continued_with(rows[i].caps), wanted);
        sgi_json declared = sgi_json_get((sgi_json){told, strlen(told)}, "capabilities");
        assert_int_equal(sgi_read_caps(declared), rows[i].caps);
        sgi_wire_sessions_end(t.server);
        sgi_engine_run_callbacks(t.server->engine, 1000);
        assert_int_equal(opened, closed);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    open_elsewhere();
    for (size_t n = 1;; n++) {
        test_mem_rearm(&t.mem);
        t.mem.fail_at = n;
        segue_status status = adopt(&t.a, t.a.head.session, 100);
        bool failed = t.mem.failed > 0;
        test_mem_rearm(&t.mem);
        if (!failed)
            break;
        if (status == SEGUE_OK) /* a timer that is not set is no failure */
            sgi_wire_session_end(
                sgi_wire_session_find(t.server, t.a.who, t.a.head.session));
        else
            assert_int_equal(status, SEGUE_E_NOMEM);
        assert_int_equal(t.server->sessions.by_id.count, 0);
    }
    assert_int_equal(t.server->sessions.by_id.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_settled_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_version_is_not_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_good_for_its_owner_for_a_day, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_bound_holds_for_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_its_client_ends_is_ended_here, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_a_shared_key_nothing_is_named, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(initialize_and_get_name_the_server, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_continued_session_hears_of_other_lists, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_continued_session_is_a_client, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("session_name", tests, NULL, NULL);
}
