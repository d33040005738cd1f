/* A server has no room for all of a stream, and a client was cut off from it. The client
 * learns of the gap from 410, from a substitute answer, or from a number that skips
 * events. It then asks for its answer in another way: again with its key, or as a request
 * that can be resumed (SEP-975). Nothing comes twice, and nothing is missing. */
#include "support/client_kit.h"
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

typedef enum way { BY_KEY, BY_RESUME, BY_NOTHING } way;

static const char *const servers[] = {
    "{\"tools\":{},\"experimental\":{\"dev.segue/idempotency\":{}}}", "{\"tools\":{}}",
    "{\"tools\":{}}"};

/* Makes a call, sends two pieces and cuts it off. */
static record *begin_and_cut(http_script *s, way by)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = SEGUE_ERA_LEGACY;
    options.dialects_on = SEGUE_DIALECT_RESUMABLE;
    script_begin(s, &options);
    script_initialize_with(s, "one", servers[by]);
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
    record *r = kit_call(&s->k, "t");
    heard *h = script_expect(s, "tools/call");
    script_stream(h);
    if (by == BY_RESUME)
        script_event(h, "2-1",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/"
                     "resumePolicy\",\"params\":{\"requestId\":%s,\"resumeToken\":"
                     "\"to.ken\"}}",
                     json_at(h->body, "id"));
    script_event(
        h, "2-2",
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":"
        "\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}],\"_meta\":{"
        "\"hasMore\":true,\"dev.segue/seq\":1}}}",
        json_at(h->body, "id"));
    script_until(s, r->segments == 2);
    script_cut(h, false);
    script_advance(s, 1000);
    return r;
}

/* Checks that the client asks for the rest in the given way, and answers it. */
static void expect_the_rest(http_script *s, record *r, way by)
{
    script_advance(s, 1000);
    if (by == BY_NOTHING) {
        script_until(s, r->completed);
        assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
        assert_at(r->result, "content.1.text", "\"b\"");
        return;
    }
    heard *h = script_expect(s, by == BY_KEY ? "tools/call" : "requests/resume");
    if (by == BY_KEY)
        assert_non_null(strstr(h->body, "dev.segue/idempotencyKey"));
    else
        assert_non_null(strstr(h->body, "\"dev.segue/after\":2"));
    script_result(h,
                  "\"content\":[%s{\"type\":\"text\",\"text\":\"c\"},{\"type\":\"text\","
                  "\"text\":\"d\"}],\"_meta\":{\"dev.segue/seq\":%d}",
                  by == BY_KEY ? "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","
                                 "\"text\":\"b\"},"
                               : "",
                  by == BY_KEY ? 1 : 3);
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 4);
    assert_at(r->result, "content.0.text", "\"a\"");
    assert_at(r->result, "content.3.text", "\"d\"");
    assert_at(r->result, "content.4", "");
}

static void said_by_a_status(void **state)
{
    (void)state;
    for (int by = BY_KEY; by <= BY_NOTHING; by++) {
        http_script s;
        record *r = begin_and_cut(&s, (way)by);
        heard *h = script_expect(&s, "GET");
        assert_header(h, "Last-Event-ID", "2-2");
        script_say(h, "410 Gone", "", "");
        expect_the_rest(&s, r, (way)by);
        if (by == BY_NOTHING)
            assert_non_null(strstr(r->message, "no longer has the events that followed"));
        script_end(&s);
    }
}

/* An answer was too large to keep. Without another way the substitute is the answer. */
static void said_by_an_answer_that_stands_in(void **state)
{
    (void)state;
    for (int by = BY_KEY; by <= BY_NOTHING; by++) {
        http_script s;
        record *r = begin_and_cut(&s, (way)by);
        const char *id = "";
        heard *h = script_expect(&s, "GET");
        for (const heard *all = s.all; all; all = all->next)
            if (all->body && !strcmp(json_at(all->body, "method"), "\"tools/call\""))
                id = json_at(all->body, "id");
        script_stream(h);
        script_event(
            h, "2-3",
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,\"message\":"
            "\"The answer is too large to be sent again\",\"data\":{\"reason\":"
            "\"answer_gone\"}}}",
            id);
        if (by == BY_NOTHING) {
            script_until(&s, r->completed);
            assert_int_equal(r->status, SEGUE_E_REMOTE);
            assert_int_equal(r->rpc_code, -32603);
        } else {
            expect_the_rest(&s, r, (way)by);
        }
        script_end(&s);
    }
}

/* A server that does not report the gap: its event numbers show it. */
static void not_said_at_all(void **state)
{
    (void)state;
    for (int by = BY_KEY; by <= BY_NOTHING; by++) {
        http_script s;
        record *r = begin_and_cut(&s, (way)by);
        heard *h = script_expect(&s, "GET");
        const char *id = "";
        for (const heard *all = s.all; all; all = all->next)
            if (all->body && !strcmp(json_at(all->body, "method"), "\"tools/call\""))
                id = json_at(all->body, "id");
        script_stream(h);
        script_event(h, "2-5",
                     "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":"
                     "\"text\",\"text\":\"d\"}],\"_meta\":{\"hasMore\":true,\"index\":3,"
                     "\"dev.segue/seq\":4}}}",
                     id);
        expect_the_rest(&s, r, (way)by);
        script_end(&s);
    }
}

/* The answer to this request is cut off, and an error replaces it. The client asks again,
 * because the error says nothing about the task. */
static heard *lose_the_answer(http_script *s, const char *method)
{
    heard *asked = script_expect(s, method);
    script_stream(asked);
    script_text(asked, "id: 7-1\r\ndata:\r\n\r\n");
    script_pump(s);
    script_cut(asked, false);
    script_advance(s, 1000);
    heard *h = script_expect(s, "GET");
    assert_header(h, "Last-Event-ID", "7-1");
    script_stream(h);
    script_event(h, "7-2",
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,\"message\":"
                 "\"The answer is too large to be sent again\",\"data\":{\"reason\":"
                 "\"answer_gone\"}}}",
                 json_at(asked->body, "id"));
    script_finish(h);
    int64_t until = script_deadline();
    while (!script_next(s)) {
        script_advance(s, 250);
        script_check(until, "the same request again", __FILE__, __LINE__);
    }
    return script_expect(s, method);
}

static record *begin_task(http_script *s)
{
    segue_session_options options = kit_legacy_options();
    script_begin(s, &options);
    script_initialize_with(s, "one", SERVER_2025);
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
    record *r = kit_call(&s->k, "t");
    script_result(script_expect(s, "tools/list"),
                  "\"tools\":[{\"name\":\"t\",\"execution\":{\"taskSupport\":"
                  "\"required\"}}]");
    script_result(script_expect(s, "tools/call"), CREATED_2025("T"));
    script_until(s, r->log && strstr(r->log, "task T"));
    script_advance(s, 1200);
    return r;
}

static void of_a_task_and_asked_for_again(void **state)
{
    (void)state;
    http_script s;
    record *r = begin_task(&s);
    script_result(lose_the_answer(&s, "tasks/get"), TASK_2025("T", "completed"));
    script_result(lose_the_answer(&s, "tasks/result"),
                  "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]," RELATED("T"));
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content.0.text", "\"a\"");
    script_end(&s);
}

static void of_a_request_that_was_resumed(void **state)
{
    (void)state;
    http_script s;
    record *r = begin_and_cut(&s, BY_RESUME);
    script_say(script_expect(&s, "GET"), "410 Gone", "", "");
    script_advance(&s, 1000);
    heard *h = lose_the_answer(&s, "requests/resume");
    script_result(h, "\"content\":[{\"type\":\"text\",\"text\":\"c\"}],"
                     "\"_meta\":{\"dev.segue/seq\":3}");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content.2.text", "\"c\"");
    script_end(&s);
}

/* ---- the stream that a request left ---- */

#define PIECES 30
#define PIECE_SIZE 65536

static void say_piece(heard *h, const char *id, int number, bool more)
{
    static char text[PIECE_SIZE + 1];
    char event[16];
    memset(text, 'a' + number % 26, PIECE_SIZE);
    snprintf(event, sizeof event, "2-%d", number + 1);
    script_event(h, event,
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":"
                 "\"text\",\"text\":\"%s\"}],\"_meta\":{\"hasMore\":%s,"
                 "\"index\":%d,\"dev.segue/seq\":%d}}}",
                 id, text, more ? "true" : "false", number - 1, number);
}

/* The application reads slowly, so pieces wait behind its inbox. It detaches and resumes
 * in the same session, under the same id. The waiting pieces belong to the stream that it
 * left: they are no answer to the new request. */
static void of_the_stream_that_was_left(void **state)
{
    http_script s;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_request_options slow = SEGUE_REQUEST_OPTIONS_INIT;
    (void)state;
    slow.credit = 1;
    options.era = SEGUE_ERA_LEGACY;
    options.dialects_on = SEGUE_DIALECT_RESUMABLE;
    script_begin(&s, &options);
    script_initialize_with(&s, "one", servers[BY_RESUME]);
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    record *r = kit_start(&s.k, "tools/call", "{\"name\":\"t\"}", &slow);
    heard *h = script_expect(&s, "tools/call");
    const char *id = json_at(h->body, "id");
    script_stream(h);
    script_event(h, "2-1",
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/"
                 "resumePolicy\",\"params\":{\"requestId\":%s,\"resumeToken\":"
                 "\"to.ken\"}}",
                 id);
    for (int number = 1; number <= PIECES; number++)
        say_piece(h, id, number, true);
    script_until(&s, r->segments == 1);
    script_expect_silence(&s);
    char token[sizeof r->token];
    strcpy(token, r->token);
    assert_int_equal(segue_request_detach(r->request), SEGUE_OK);
    record *again = kit_resume(&s.k, token, NULL);
    heard *resumed = script_expect(&s, "requests/resume");
    script_expect_silence(&s);
    assert_int_equal(again->segments, 0);
    script_stream(resumed);
    for (int number = 1; number <= PIECES; number++)
        say_piece(resumed, id, number, number < PIECES);
    script_until(&s, again->completed);
    assert_int_equal(again->status, SEGUE_OK);
    assert_int_equal(again->segments, PIECES - 1);
    assert_int_equal(again->last_segment, PIECES);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("AS-110 a gap in a stream that the status 410 reports", said_by_a_status),
        NAMED("AS-110 a gap in a stream that a substitute answer reports",
              said_by_an_answer_that_stands_in),
        NAMED("AS-110 a gap in a stream that the server does not report",
              not_said_at_all),
        NAMED("AS-110 a gap in the stream of a task, which is asked for again",
              of_a_task_and_asked_for_again),
        NAMED("AS-110 a gap in the stream of a request that was resumed",
              of_a_request_that_was_resumed),
        NAMED("R-975-13 a stream that was left answers no later request",
              of_the_stream_that_was_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
