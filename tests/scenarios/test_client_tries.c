/* A client that follows a task at a server which handles one method well and fails
 * another. Each exchange is retried independently, with growing pauses, as often as
 * max_reconnects says. The test plays the server. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define YES "{\"action\":\"accept\",\"content\":{}}"
#define QUESTION                                                                         \
    "\"inputRequests\":{\"q\":{\"method\":\"elicitation/create\",\"params\":{"           \
    "\"message\":\"?\"}}}"
#define ASKING TASK("T", "input_required") "," QUESTION
#define DONE TASK("T", "completed") "," RESULT
#define LIMIT 3

static segue_session_options limited(int32_t max_reconnects)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.max_reconnects = max_reconnects;
    return options;
}

/* Makes a call that has become task T. */
static record *begin(kit *k, int32_t max_reconnects, const char *capabilities)
{
    segue_session_options options = limited(max_reconnects);
    kit_begin_modern(k, &options, capabilities);
    record *r = kit_call(k, "t");
    kit_result(k, kit_expect(k, "tools/call"), CREATED("T"));
    return r;
}

static void event(kit *k, int seq, const char *type, const char *payload)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
            "\"seq\":%d,\"taskId\":\"T\",\"type\":\"%s\"%s%s}}",
            seq, type, payload ? ",\"payload\":" : "", payload ? payload : "");
}

/* ---- tasks/update ---- */

typedef struct tally {
    int gets, updates;
} tally;

/* Plays the server for this time: each tasks/get is answered, each tasks/update is
 * refused with this code, and the application answers each question. */
static tally refuse_updates(kit *k, record *r, int code, int64_t ms)
{
    tally count = {0};
    int64_t until = k->clock_ms + ms;
    size_t told = 0;
    while (!r->completed && k->clock_ms < until) {
        const char *line = kit_heard(k);
        if (!line) {
            kit_advance(k, 20);
        } else if (!strcmp(json_at(line, "method"), "\"tasks/get\"")) {
            count.gets++;
            kit_result(k, line, ASKING);
        } else {
            count.updates++;
            kit_error(k, line, code, NULL);
        }
        const char *input = r->log ? strstr(r->log + told, "input q") : NULL;
        if (input) {
            told = (size_t)(input - r->log) + 1;
            assert_int_equal(record_answer(r, "q", YES), SEGUE_OK);
        }
    }
    return count;
}

static void a_refused_answer_is_sent_ever_later(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, 0, SERVER_TASKS);
    tally count = refuse_updates(&k, r, -32603, 30000);
    assert_in_range(count.updates, 5, 10);
    assert_in_range(count.gets, 25, 40); /* the poll interval is a second */
    assert_int_equal(r->completed, 0);
    assert_non_null(strstr(k.last_warning, "tasks/update failed"));
    kit_end(&k);
}

static void an_answer_that_stays_refused_ends_the_request(void **state)
{
    (void)state;
    static const int codes[] = {-32603, -32602};
    for (int i = 0; i < 2; i++) {
        kit k = {0};
        record *r = begin(&k, LIMIT, SERVER_TASKS);
        tally count = refuse_updates(&k, r, codes[i], 60000);
        assert_int_equal(count.updates, LIMIT + 1);
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        assert_int_equal(r->rpc_code, codes[i]);
        assert_non_null(strstr(
            r->message, "tasks/update failed 4 times in a row (max_reconnects: 3)"));
        kit_end(&k);
    }
}

/* -32602 may concern the task or the answer: tasks/get decides. */
static void an_answer_that_does_not_fit_is_asked_for_anew(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, 0, SERVER_TASKS);
    kit_result(&k, kit_expect(&k, "tasks/get"), ASKING);
    assert_int_equal(record_answer(r, "q", YES), SEGUE_OK);
    kit_error(&k, kit_expect(&k, "tasks/update"), -32602, NULL);
    assert_int_equal(record_answer(r, "q", YES), SEGUE_E_NOT_FOUND);
    kit_result(&k, kit_expect(&k, "tasks/get"), ASKING);
    assert_int_equal(record_answer(r, "q", YES), SEGUE_OK);
    kit_result(&k, kit_expect(&k, "tasks/update"), "\"resultType\":\"complete\"");
    kit_result(&k, kit_expect(&k, "tasks/get"), DONE);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void an_answer_for_a_lost_task_tells_that_it_is_lost(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, 0, SERVER_TASKS);
    kit_result(&k, kit_expect(&k, "tasks/get"), ASKING);
    assert_int_equal(record_answer(r, "q", YES), SEGUE_OK);
    kit_error(&k, kit_expect(&k, "tasks/update"), -32602, NULL);
    kit_error(&k, kit_expect(&k, "tasks/get"), -32602, NULL);
    assert_int_equal(r->status, SEGUE_E_TASK_LOST);
    assert_int_equal(r->rpc_code, -32602);
    kit_end(&k);
}

/* The error of a server that lacks the method keeps its code. */
static void a_server_without_the_method_is_told_by_its_code(void **state)
{
    (void)state;
    static const int codes[] = {-32601, -32021};
    for (int i = 0; i < 4; i++) {
        kit k = {0};
        record *r = begin(&k, 0, SERVER_TASKS);
        const char *line = kit_expect(&k, "tasks/get");
        if (i / 2) {
            kit_result(&k, line, ASKING);
            assert_int_equal(record_answer(r, "q", YES), SEGUE_OK);
            line = kit_expect(&k, "tasks/update");
        }
        kit_error(&k, line, codes[i % 2], NULL);
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
        assert_int_equal(r->rpc_code, codes[i % 2]);
        kit_end(&k);
    }
}

/* 2026-07-28 has no answer for it: the task goes on. */
static void a_question_of_an_unknown_method_gets_an_error(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, 0, SERVER_TASKS);
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "input_required") ",\"inputRequests\":{\"q\":{\"method\":"
                                           "\"future/ask\",\"params\":{}}}");
    assert_int_equal(
        segue_request_answer_error(r->request, "q", -32601, "unknown", NULL, 0, NULL),
        SEGUE_OK);
    kit_run(&k);
    const char *update = kit_expect(&k, "tasks/update");
    assert_at(update, "params.inputResponses",
              "{\"q\":{\"error\":{\"code\":-32601,\"message\":\"unknown\"}}}");
    kit_result(&k, update, "\"resultType\":\"complete\"");
    kit_result(&k, kit_expect(&k, "tasks/get"), DONE);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* ---- tasks/stream ---- */

static void a_stream_that_is_refused_is_polled_and_tried_again(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, LIMIT, SERVER_STREAMS);
    int streams = 0, gets = 0;
    /* the stream breaks more often than max_reconnects says */
    while (k.clock_ms < 60000) {
        const char *line = kit_heard(&k);
        if (!line) {
            kit_advance(&k, 50);
        } else if (!strcmp(json_at(line, "method"), "\"tasks/get\"")) {
            gets++;
            kit_result(&k, line, TASK("T", "working"));
        } else {
            streams++;
            kit_error(&k, line, -32603, NULL);
        }
    }
    assert_int_equal(r->completed, 0);
    assert_in_range(streams, 6, 12);
    assert_in_range(gets, 40, 70);
    const char *line = kit_heard(&k);
    while (!line || strcmp(json_at(line, "method"), "\"tasks/stream\"")) {
        if (line)
            kit_result(&k, line, TASK("T", "working"));
        kit_advance(&k, 500);
        line = kit_heard(&k);
    }
    kit_segment(&k, "T", 0, 1, "a"); /* this stream opens well */
    while ((gets = 0, kit_heard(&k)))
        ;
    kit_advance(&k, 5000);
    kit_expect_silence(&k); /* the stream is the only request again */
    kit_segment(&k, "T", 1, 2, "b");
    kit_result(&k, line, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    kit_end(&k);
}

/* Lets time pass until the client sends a request. */
static heard *until_next(http_script *s)
{
    int64_t until = script_deadline();
    while (!script_next(s)) {
        script_advance(s, 50);
        script_check(until, "the next request", __FILE__, __LINE__);
    }
    return script_next(s);
}

/* Over HTTP: the stream is cut after each second of silence, or answered with 500. After
 * the second cut, one look that does not count follows soon. */
static void a_stream_that_breaks_is_polled(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        http_script s;
        segue_session_options options = limited(LIMIT);
        script_begin(&s, &options);
        script_discover(&s, SERVER_STREAMS);
        record *r = kit_call(&s.k, "t");
        script_result(script_expect(&s, "tools/call"), CREATED("T"));
        int most = how ? 3 : 4;
        for (int i = 0; i < most; i++) {
            heard *h = script_expect(&s, "tasks/stream");
            if (how) {
                script_say(h, "500 Internal Server Error", "", "oh");
            } else {
                script_stream(h);
                script_pump(&s);
                script_cut(h, false);
            }
            if (i < most - 1)
                until_next(&s);
        }
        script_result(script_expect(&s, "tasks/get"), TASK("T", "working"));
        heard *h;
        while (!strstr((h = until_next(&s))->text, "tasks/get"))
            script_say(script_expect(&s, "tasks/stream"), "500 Oh", "", "");
        script_result(script_expect(&s, "tasks/get"), DONE);
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(r->segments, 2);
        script_end(&s);
    }
}

/* ---- gaps in the stream ---- */

static void a_hole_that_stays_is_asked_for_once(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, 0, SERVER_STREAMS);
    kit_expect(&k, "tasks/stream");
    kit_segment(&k, "T", 0, 1, "a");
    kit_segment(&k, "T", 2, 3, "c");
    kit_expect(&k, "notifications/cancelled");
    const char *stream = kit_expect(&k, "tasks/stream");
    assert_at(stream, "params.after", "0");
    kit_segment(&k, "T", 3, 4, "d"); /* the rest of the stream that was abandoned */
    kit_expect_silence(&k);
    kit_segment(&k, "T", 2, 3, "c"); /* the new stream also begins behind the gap */
    kit_expect_silence(&k);
    assert_non_null(strstr(k.last_warning, "lacks the events 1 to 1"));
    kit_segment(&k, "T", 3, 4, "d");
    kit_result(&k, stream, FINAL);
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "completed") ",\"result\":{\"content\":[%s,%s,%s,%s]}",
               "{\"type\":\"text\",\"text\":\"a\"}", "{\"type\":\"text\",\"text\":\"b\"}",
               "{\"type\":\"text\",\"text\":\"c\"}",
               "{\"type\":\"text\",\"text\":\"d\"}");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 3);
    assert_int_equal(r->last_segment, 4);
    assert_true(*json_at(r->result, "content.3"));
    kit_end(&k);
}

static void events_that_are_gone_are_passed_over(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, 0, SERVER_STREAMS);
    const char *stream = kit_expect(&k, "tasks/stream");
    kit_segment(&k, "T", 0, 1, "a");
    kit_error(&k, stream, -32603, "{\"reason\":\"events_gone\",\"earliestSeq\":5}");
    stream = kit_expect(&k, "tasks/stream");
    assert_at(stream, "params.after", "4");
    assert_non_null(strstr(k.last_warning, "tasks/stream failed"));
    kit_segment(&k, "T", 5, 6, "f");
    assert_int_equal(r->last_segment, 6);
    kit_result(&k, stream, FINAL);
    kit_result(&k, kit_expect(&k, "tasks/get"), DONE);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void an_event_without_payload_is_told(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, 0, SERVER_STREAMS);
    const char *stream = kit_expect(&k, "tasks/stream");
    kit_segment(&k, "T", 0, 1, "a");
    event(&k, 1, "dev.segue.content.partial", NULL);
    assert_non_null(strstr(k.last_warning, "event 1 of task T is invalid"));
    kit_result(&k, stream, FINAL);
    /* the result, not the content that was merged here */
    kit_result(&k, kit_expect(&k, "tasks/get"), DONE);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    kit_end(&k);
}

static void say_uncounted(kit *k, int seq, const char *text)
{
    char payload[128];
    snprintf(payload, sizeof payload,
             "{\"content\":[{\"type\":\"text\","
             "\"text\":\"%s\"}]}",
             text);
    event(k, seq, "dev.segue.content.partial", payload);
}

/* R-E-7: the server does not number segments. Behind a gap the client cannot know
 * which blocks of the result were shown, so it shows all of them in place of the
 * earlier ones. */
static void behind_a_hole_the_result_is_shown_whole(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        kit k = {0};
        record *r = begin(&k, 0, SERVER_STREAMS);
        const char *stream = kit_expect(&k, "tasks/stream");
        if (how < 2)
            say_uncounted(&k, 0, "a");
        if (how == 0)
            event(&k, 1, "dev.segue.content.partial", NULL);
        if (how == 1) {
            kit_error(&k, stream, -32603,
                      "{\"reason\":\"events_gone\",\"earliestSeq\":2}");
            stream = kit_expect(&k, "tasks/stream");
        }
        say_uncounted(&k, 2, "c"); /* perhaps the earliest that is kept */
        kit_result(&k, stream, FINAL);
        kit_result(&k, kit_expect(&k, "tasks/get"),
                   TASK("T", "completed") ",\"result\":{\"content\":[%s,%s,%s]}",
                   "{\"type\":\"text\",\"text\":\"a\"}",
                   "{\"type\":\"text\",\"text\":\"b\"}",
                   "{\"type\":\"text\",\"text\":\"c\"}");
        assert_int_equal(r->status, SEGUE_OK);
        const char *whole = how == 2 ? "segment 2 a\nsegment 3 b\nsegment 4 c\n"
                                     : "segment 3 a\nsegment 4 b\nsegment 5 c\n";
        assert_non_null(strstr(r->log, whole));
        kit_end(&k);
    }
}

/* ---- tasks/get ---- */

#define HTML "Content-Type: text/html\r\n"

static heard *next_of(http_script *s, const char *method)
{
    until_next(s);
    return script_expect(s, method);
}

static void answer_badly(heard *h, int how)
{
    if (how == 0)
        script_say(h, "500 Internal Server Error", HTML, "<p>oh</p>");
    else if (how == 1)
        script_say(h, "404 Not Found", "", "");
    else if (how == 2)
        script_error(h, "200 OK", -32603, NULL);
    else if (how == 3)
        script_say(h, "200 OK", HTML, "<p>no</p>");
    else
        script_say(h, "200 OK", "Content-Type: application/json\r\n", "<p>no</p>");
}

#define BAD_ANSWERS 5

/* Makes a task of 2025-11-25; is_ended: the task is polled first and has ended. */
static record *begin_2025(http_script *s, bool is_ended)
{
    segue_session_options options = kit_legacy_options();
    options.max_reconnects = LIMIT;
    script_begin(s, &options);
    script_initialize_with(s, "one", SERVER_2025);
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
    record *r = kit_call(&s->k, "t");
    script_result(script_expect(s, "tools/list"),
                  "\"tools\":[{\"name\":\"t\",\"execution\":{\"taskSupport\":"
                  "\"required\"}}]");
    script_result(script_expect(s, "tools/call"), CREATED_2025("T"));
    script_until(s, r->token[0]);
    if (is_ended)
        script_result(next_of(s, "tasks/get"), TASK_2025("T", "completed"));
    return r;
}

static record *begin_http(http_script *s, int32_t max_reconnects)
{
    segue_session_options options = limited(max_reconnects);
    script_begin(s, &options);
    script_discover(s, SERVER_TASKS);
    record *r = kit_call(&s->k, "t");
    script_result(script_expect(s, "tools/call"), CREATED("T"));
    return r;
}

static heard *next_get(http_script *s)
{
    return next_of(s, "tasks/get");
}

static void a_look_that_fails_is_made_again(void **state)
{
    (void)state;
    for (int how = 0; how < BAD_ANSWERS; how++) {
        http_script s;
        record *r = begin_http(&s, LIMIT);
        for (int i = 0; i < LIMIT; i++)
            answer_badly(next_get(&s), how);
        script_result(next_get(&s), TASK("T", "working"));
        answer_badly(next_get(&s), how); /* the count starts anew */
        script_result(next_get(&s), DONE);
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
        script_end(&s);
    }
}

static void a_look_that_stays_refused_ends_the_request(void **state)
{
    (void)state;
    static const struct {
        segue_status status;
        const char *why;
    } ends[BAD_ANSWERS] = {
        {SEGUE_E_REFUSED, "HTTP status 500"},
        {SEGUE_E_REFUSED, "HTTP status 404"},
        {SEGUE_E_REMOTE, ""},
        {SEGUE_E_REFUSED, "the answer is neither JSON nor an event stream"},
        {SEGUE_E_PROTOCOL, "the answer is not a JSON-RPC response"},
    };
    for (int how = 0; how < BAD_ANSWERS; how++) {
        http_script s;
        record *r = begin_http(&s, LIMIT);
        for (int i = 0; i <= LIMIT; i++)
            answer_badly(next_get(&s), how);
        script_until(&s, r->completed);
        assert_int_equal(r->status, ends[how].status);
        assert_non_null(strstr(r->message, ends[how].why));
        assert_non_null(
            strstr(r->message, "tasks/get failed 4 times in a row (max_reconnects: 3)"));
        script_end(&s);
    }
}

/* 2025-11-25: 404 means that the wire session is gone, and a new one is opened. An error
 * of tasks/result is that of the task. */
static void a_look_of_2025_that_fails_is_made_again(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        int how;
    } rows[] = {{"tasks/get", 0},   {"tasks/get", 2},    {"tasks/get", 3},
                {"tasks/get", 4},   {"tasks/result", 0}, {"tasks/result", 3},
                {"tasks/result", 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        http_script s;
        bool is_ended = !strcmp(rows[i].method, "tasks/result");
        record *r = begin_2025(&s, is_ended);
        for (int n = 0; n < LIMIT; n++)
            answer_badly(next_of(&s, rows[i].method), rows[i].how);
        if (!is_ended)
            script_result(next_get(&s), TASK_2025("T", "completed"));
        script_result(next_of(&s, "tasks/result"), "\"content\":[]");
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
        script_end(&s);
    }
}

static void a_look_of_2025_that_stays_refused_ends_the_request(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how += 2) {
        http_script s;
        record *r = begin_2025(&s, false);
        for (int i = 0; i <= LIMIT; i++)
            answer_badly(next_get(&s), how);
        script_until(&s, r->completed);
        assert_int_equal(r->status, how ? SEGUE_E_REMOTE : SEGUE_E_REFUSED);
        assert_non_null(strstr(r->message, "tasks/get failed 4 times in a row"));
        script_end(&s);
    }
}

/* ---- pauses that the server asks for ---- */

#define PAUSE "\"retryAfterMs\":1000"
#define REFUSED "{\"reason\":\"rate_limited\"," PAUSE "}"

/* Plays the server until the call ends: tasks/get reports this status, or is refused when
 * it is NULL, and tasks/result is refused. Returns how often that method came. */
static int refuse_results(kit *k, record *r, const char *status, const char *data)
{
    int count = 0;
    while (!r->completed && k->clock_ms < 600000) {
        const char *line = kit_heard(k);
        bool is_result = line && !strcmp(json_at(line, "method"), "\"tasks/result\"");
        count += line && (is_result || !status);
        if (!line)
            kit_advance(k, 200);
        else if (is_result || !status)
            kit_error(k, line, -32603, data);
        else
            kit_result(k, line, "\"taskId\":\"T\",\"status\":\"%s\"", status);
    }
    return count;
}

/* Makes a call that has become task T of 2025-11-25; segments: those of it that are
 * pushed. */
static record *begin_legacy(kit *k, const char *capabilities, const char *segments)
{
    segue_session_options options = limited(LIMIT);
    options.era = SEGUE_ERA_LEGACY;
    options.capabilities = "{\"elicitation\":{}}";
    kit_begin_2025(k, &options, capabilities);
    record *r = kit_call(k, "t");
    kit_list_tools(k);
    const char *call = kit_expect(k, "tools/call");
    kit_result(k, call, CREATED_2025("T"));
    if (segments)
        kit_result(k, call, "%s", segments);
    return r;
}

static void a_pause_is_asked_for_within_max_reconnects(void **state)
{
    (void)state;
    static const struct {
        const char *status, *data;
        int count;
    } rows[] = {
        {"failed", "{" PAUSE "}", 1}, /* this is the tool's own error */
        {"failed", "{\"reason\":\"busy\"," PAUSE "}", 1},
        {"failed", REFUSED, LIMIT + 1},
        {"completed", REFUSED, LIMIT + 1},
        {"completed", "{" PAUSE "}", LIMIT + 1},
        {NULL, REFUSED, LIMIT + 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kit k = {0};
        record *r = begin_legacy(&k, SERVER_2025, NULL);
        int count = refuse_results(&k, r, rows[i].status, rows[i].data);
        assert_int_equal(count, rows[i].count);
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        assert_int_equal(r->rpc_code, -32603);
        kit_end(&k);
    }
}

/* Each tasks/get between two refusals succeeds, and does not reset the count. */
static void a_pause_of_a_task_that_asks_is_within_max_reconnects(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin_legacy(&k, SERVER_2025, NULL);
    int count = refuse_results(&k, r, "input_required", "{" PAUSE "}");
    assert_int_equal(count, LIMIT + 1);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    kit_end(&k);
}

#define SEGMENT                                                                          \
    "\"partial-content\":[{\"type\":\"text\",\"text\":\"a\",\"seqNr\":1}],"              \
    "\"isComplete\":false"

/* After a refused pull the client fetches the result, which is then refused as well. */
static void a_pause_of_a_pull_is_within_max_reconnects(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin_legacy(&k, SERVER_2025_STREAMS, SEGMENT);
    int count = refuse_results(&k, r, "completed", REFUSED);
    assert_in_range(count, LIMIT + 1, 2 * LIMIT + 2);
    assert_int_equal(r->status, SEGUE_E_INCOMPLETE);
    kit_end(&k);
}

/* ---- ends ---- */

static int32_t state_after(kit *k, segue_task *task, const char *answer)
{
    segue_request_events events;
    record *r = kit_record(k, &events);
    assert_int_equal(segue_task_get(task, &events, &r->request), SEGUE_OK);
    kit_result(k, kit_expect(k, "tasks/get"), "%s", answer);
    assert_int_equal(r->status, SEGUE_OK);
    return segue_task_get_state(task);
}

/* R-2557-47: later reports do not change an end. */
static void an_end_stays_the_end(void **state)
{
    (void)state;
    kit k = {0};
    segue_task *task;
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    assert_int_equal(segue_task_attach(k.session, "T", &task, NULL), SEGUE_OK);
    assert_int_equal(state_after(&k, task, TASK("T", "working")), SEGUE_TASK_WORKING);
    assert_int_equal(state_after(&k, task, DONE), SEGUE_TASK_COMPLETED);
    assert_int_equal(state_after(&k, task, TASK("T", "working")), SEGUE_TASK_COMPLETED);
    assert_int_equal(state_after(&k, task, TASK("T", "cancelled")), SEGUE_TASK_COMPLETED);
    segue_task_free(task);
    kit_end(&k);
}

/* A status that a stream reports after the end is dropped. */
static void no_status_follows_the_end(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, 0, SERVER_STREAMS);
    const char *stream = kit_expect(&k, "tasks/stream");
    event(&k, 0, "dev.segue.status", "{\"status\":\"completed\"}");
    event(&k, 1, "dev.segue.status", "{\"status\":\"working\"}");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_non_null(strstr(r->log, "status completed -\n"));
    assert_null(strstr(strstr(r->log, "status completed"), "status working"));
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_answer_is_sent_ever_later),
        cmocka_unit_test(an_answer_that_stays_refused_ends_the_request),
        cmocka_unit_test(an_answer_that_does_not_fit_is_asked_for_anew),
        cmocka_unit_test(an_answer_for_a_lost_task_tells_that_it_is_lost),
        cmocka_unit_test(a_server_without_the_method_is_told_by_its_code),
        cmocka_unit_test(a_question_of_an_unknown_method_gets_an_error),
        cmocka_unit_test(a_stream_that_is_refused_is_polled_and_tried_again),
        cmocka_unit_test(a_stream_that_breaks_is_polled),
        cmocka_unit_test(a_hole_that_stays_is_asked_for_once),
        cmocka_unit_test(events_that_are_gone_are_passed_over),
        cmocka_unit_test(an_event_without_payload_is_told),
        cmocka_unit_test(behind_a_hole_the_result_is_shown_whole),
        cmocka_unit_test(a_look_that_fails_is_made_again),
        cmocka_unit_test(a_look_that_stays_refused_ends_the_request),
        cmocka_unit_test(a_look_of_2025_that_fails_is_made_again),
        cmocka_unit_test(a_look_of_2025_that_stays_refused_ends_the_request),
        cmocka_unit_test(a_pause_is_asked_for_within_max_reconnects),
        cmocka_unit_test(a_pause_of_a_task_that_asks_is_within_max_reconnects),
        cmocka_unit_test(a_pause_of_a_pull_is_within_max_reconnects),
        NAMED("R-2557-47 an end stays the end", an_end_stays_the_end),
        NAMED("R-2557-47 no status follows the end", no_status_follows_the_end),
    };
    return cmocka_run_group_tests_name("client_tries", tests, NULL, NULL);
}
