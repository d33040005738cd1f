/* Questions of a session over HTTP (2025-11-25 client/elicitation). A limited number is
 * open at once, and the others wait for their turn. A question whose stream broke is sent
 * again, with the same id, after a GET with Last-Event-ID. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/server/task.h"
#include "engine/server/wire_session.h"
#include "support/http_wire.h"

#define OUT_MAX 256
#define PER_CALL 64
#define CALLS 5 /* more calls than questions may be open at once */
#define QUESTION "\"method\":\"elicitation/create\""

static http_rig t;
static int answered, refused;

static int set_up(void **state)
{
    (void)state;
    answered = refused = 0;
    http_rig_begin(&t, "ada");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_rig_end(&t);
    return 0;
}

static void heard(void *user, segue_call *call, segue_status status, const char *json,
                  size_t len)
{
    (void)user;
    (void)call;
    (void)json;
    (void)len;
    answered += status == SEGUE_OK;
    refused += status != SEGUE_OK;
}

/* Opens a session whose client can be asked. */
static void open_session(http_wire *wire)
{
    wire->head.version = wire->head.session = (sgi_str){0};
    http_wire_legacy(wire, "1", "initialize",
                     "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{"
                     "\"elicitation\":{}}");
    http_wire_text(wire);
    http_wire_cut(wire);
    wire->head.version = SGI_STR("2025-11-25");
    wire->head.session = sgi_str_of(wire->session);
    assert_true(*wire->session);
    assert_int_equal(http_wire_post(wire, "{\"jsonrpc\":\"2.0\",\"method\":"
                                          "\"notifications/initialized\"}"),
                     202);
}

static void ask(segue_call *call, int times)
{
    char params[64];
    for (int i = 0; i < times; i++) {
        snprintf(params, sizeof params, "{\"message\":\"%d\"}", i);
        assert_int_equal(sgi_call_require_input(call, NULL, "elicitation/create", params,
                                                strlen(params), heard, NULL, NULL),
                         SEGUE_OK);
    }
    fake_host_deliver(&t.host);
}

/* Returns the id of the n-th question in a text. */
static const char *id_of(const char *text, int place)
{
    static char id[96];
    const char *at = text;
    for (int i = 0; at && i <= place; i++)
        at = strstr(at + (i > 0), "\"id\":\"");
    assert_non_null(at);
    snprintf(id, sizeof id, "%.*s", (int)strcspn(at + 6, "\""), at + 6);
    return id;
}

static int32_t answer(http_wire *wire, const char *id)
{
    char body[256];
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"action\":\"accept\"}}",
             id);
    int32_t status = http_wire_post(wire, body);
    fake_host_deliver(&t.host);
    return status;
}

static void questions_of_a_session_are_bounded(void **state)
{
    http_wire wires[CALLS];
    segue_call *calls[CALLS];
    char id[16];
    char first[96];
    int asked = 0, last = 0;
    (void)state;
    open_session(&t.a);
    for (int i = 0; i < CALLS; i++) {
        http_wire_init(&wires[i], t.server, "ada");
        wires[i].head = t.a.head;
        snprintf(id, sizeof id, "%d", 10 + i);
        calls[i] = http_wire_start(&wires[i], id);
        sgi_serve_open_stream(wires[i].conn);
        ask(calls[i], PER_CALL);
        asked += http_wire_count(http_wire_text(&wires[i]), QUESTION);
        if (i == 0)
            assert_int_equal(asked, PER_CALL);
    }
    assert_int_equal(asked, OUT_MAX);
    /* Each answer lets one more question be sent. The waiting questions belong to the
     * last call. */
    for (int n = 1; n <= 3; n++) {
        const char *one = id_of(http_wire_text(&wires[0]), n - 1);
        if (n == 1)
            snprintf(first, sizeof first, "%s", one);
        assert_int_equal(answer(&t.a, one), 202);
        assert_int_equal(answered, n);
        last = http_wire_count(http_wire_text(&wires[CALLS - 1]), QUESTION);
        assert_int_equal(last, n);
    }
    assert_int_equal(answer(&t.a, first), 202); /* that question is not open any more */
    assert_int_equal(answer(&t.a, "100000"), 202);
    assert_int_equal(answered, 3);
    for (int i = 0; i < CALLS; i++) { /* the end of a call lets a question be sent as
                                       * well */
        http_wire_finish(calls[i]);
        if (i == 0)
            assert_int_equal(http_wire_count(http_wire_text(&wires[CALLS - 1]), QUESTION),
                             PER_CALL);
        http_wire_free(&wires[i]);
    }
}

/* The first waiting question belongs to a task that has no stream any more, so the next
 * question takes its turn. When the client of the task listens again, the first question
 * is sent too. */
static void a_turn_that_cannot_be_taken_is_passed_on(void **state)
{
    http_wire wires[CALLS], stream;
    segue_call *calls[CALLS];
    char id[16];
    (void)state;
    open_session(&t.a);
    for (int i = 0; i < CALLS; i++) {
        http_wire_init(&wires[i], t.server, "ada");
        wires[i].head = t.a.head;
    }
    http_wire_init(&stream, t.server, "ada");
    stream.head = t.a.head;
    assert_int_equal(http_wire_get(&stream, NULL), 0);
    for (int i = 0; i < CALLS - 1; i++) {
        snprintf(id, sizeof id, "%d", 10 + i);
        calls[i] = http_wire_start(&wires[i], id);
        sgi_serve_open_stream(wires[i].conn);
        ask(calls[i], PER_CALL);
    }
    t.b.head = t.a.head;
    http_wire_legacy(&t.b, "21", "tools/call", "\"name\":\"tool\",\"task\":{}");
    segue_call *task = http_wire_call(t.server);
    while (fake_store_commit(&t.host, SEGUE_OK))
        fake_host_deliver(&t.host);
    assert_true(http_wire_says(&t.b, "\"taskId\""));
    ask(task, 1);
    while (fake_store_commit(&t.host, SEGUE_OK))
        fake_host_deliver(&t.host);
    assert_int_equal(http_wire_count(http_wire_text(&stream), QUESTION), 0);
    http_wire_cut(&stream);
    calls[CALLS - 1] = http_wire_start(&wires[CALLS - 1], "30");
    sgi_serve_open_stream(wires[CALLS - 1].conn);
    ask(calls[CALLS - 1], 1);
    assert_false(http_wire_says(&wires[CALLS - 1], QUESTION));
    assert_int_equal(answer(&t.a, id_of(http_wire_text(&wires[0]), 0)), 202);
    assert_true(http_wire_says(&wires[CALLS - 1], QUESTION));
    assert_int_equal(answer(&t.a, id_of(http_wire_text(&wires[0]), 1)), 202);
    assert_int_equal(http_wire_get(&stream, NULL), 0);
    fake_host_deliver(&t.host);
    assert_int_equal(http_wire_count(http_wire_text(&stream), QUESTION), 1);
    http_wire_finish(task);
    for (int i = 0; i < CALLS; i++) {
        http_wire_finish(calls[i]);
        http_wire_free(&wires[i]);
    }
    http_wire_free(&stream);
}

static void a_question_is_asked_again_by_its_event(void **state)
{
    char body[64], id[96];
    (void)state;
    open_session(&t.a);
    t.b.head = t.a.head;
    segue_call *call = http_wire_start(&t.a, "7");
    sgi_serve_open_stream(t.a.conn);
    ask(call, 1);
    const char *text = http_wire_text(&t.a);
    assert_int_equal(http_wire_count(text, QUESTION), 1);
    snprintf(id, sizeof id, "%s", id_of(text, 0));
    const char *event = strstr(text, "id: ");
    assert_non_null(event);
    snprintf(body, sizeof body, "%.*s", (int)strcspn(event + 4, "\n"), event + 4);
    http_wire_cut(&t.a);
    for (int i = 0; i < 2; i++) { /* the question is sent again each time the stream
                                   * breaks */
        assert_int_equal(http_wire_get(&t.b, body), 0);
        assert_int_equal(http_wire_count(http_wire_text(&t.b), QUESTION), 1);
        assert_string_equal(id_of(http_wire_text(&t.b), 0), id);
        http_wire_cut(&t.b);
    }
    assert_int_equal(answered, 0);
    assert_int_equal(answer(&t.a, id), 202);
    assert_int_equal(answered, 1);
    assert_int_equal(http_wire_get(&t.b, body), 0);
    http_wire_finish(call);
    assert_true(http_wire_says(&t.b, "\"id\":7,"));
}

/* When the client has received an event after the question, the question is not sent
 * again. */
static void a_question_that_was_heard_is_not_asked_again(void **state)
{
    (void)state;
    open_session(&t.a);
    t.b.head = t.a.head;
    segue_call *call = http_wire_start(&t.a, "7");
    sgi_serve_open_stream(t.a.conn);
    ask(call, 1);
    const char *text = http_wire_text(&t.a), *event = NULL;
    for (const char *at = text; (at = strstr(at, "id: ")); at++)
        event = at; /* the last event is the question */
    assert_non_null(event);
    char id[32];
    snprintf(id, sizeof id, "%.*s", (int)strcspn(event + 4, "\n"), event + 4);
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_get(&t.b, id), 0);
    assert_int_equal(http_wire_count(http_wire_text(&t.b), QUESTION), 0);
    http_wire_cut(&t.b);
    http_wire_finish(call);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(questions_of_a_session_are_bounded),
        CASE(a_turn_that_cannot_be_taken_is_passed_on),
        CASE(a_question_is_asked_again_by_its_event),
        CASE(a_question_that_was_heard_is_not_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
