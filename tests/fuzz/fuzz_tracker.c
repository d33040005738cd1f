/* The client's side against a server that the input plays. The server sends answers and
 * errors, to requests and without one; tasks that work, ask and end in several ways;
 * event streams with repeats and gaps; and bytes that are no messages. Connections break
 * and come back, time passes, allocations fail. The application's callbacks cancel,
 * answer, grant, detach, take tokens, free and start more requests, as the input says.
 *
 * The checks: each started request completes once and frees its user data once, and
 * nothing is delivered after that. Segments come in order, each once, and with their
 * right bytes as long as the server is honest about the task. Credit is respected. Memory
 * is bounded, and in the end all of it is freed. */
#include <stdarg.h>

#include "engine/dialect/task_events/stream.h"
#include "support/fake_host.h"
#include "support/fuzz_input.h"
#include "support/test_mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_STARTED 24
#define MAX_ASKED 16
#define MAX_STEPS 1200
#define MAX_LIVE ((size_t)12 << 20)

/* A request of the fuzzer, as its callbacks see it. */
typedef struct client {
    segue_request *request; /* NULL once the fuzzer freed the handle */
    bool handed;            /* sgi_request_new has returned */
    bool completed, freed;
    bool fresh;     /* not made from a token: its first segment is number 1 */
    bool unordered; /* segments may come in any order */
    uint64_t last;  /* number of the last segment */
    int64_t credit; /* remaining credit; -1 = no limit */
    char key[40];   /* key of the last question */
} client;

/* A request of the client that waits for an answer. */
typedef struct asked {
    int64_t id;
    char method[24];
} asked;

static test_mem tm;
static fake_host host;
static segue_session *session;
static fuzz_input in;
static client clients[MAX_STARTED];
static int started;
static asked open_asks[MAX_ASKED];
static int ask_count;
static bool honest; /* the stream always gives the same event for a number */
static char token[512];
static long long streamed; /* the call that a server of 2025-11-25 answers in parts */
static int opened, closed, session_freed;

static void start_one(void);

/* ---- the application ---- */

static void meddle(client *c)
{
    sgi_buf out;
    segue_request *request = c->request;
    uint32_t what = fuzz_below(&in, 24);
    if (what == 7 && started < MAX_STARTED)
        start_one();
    if (what == 8)
        sgi_session_close(session);
    if (!request)
        return;
    switch (what) {
    case 1:
        sgi_request_cancel(request);
        break;
    case 2:
        sgi_request_detach(request);
        break;
    case 3:
        if (sgi_request_grant_credit(request, 1 + fuzz_below(&in, 3)) == SEGUE_OK)
            c->credit = request->delivery.credit;
        break;
    case 4:
        c->request = NULL;
        sgi_request_unref(request);
        break;
    case 5:
        sgi_request_answer(request, c->key, SGI_STR("{\"action\":\"accept\"}"));
        break;
    case 6:
        sgi_buf_init(&out, &tm.mem);
        if (sgi_resume_token_write(request, &out) == SEGUE_OK && out.len < sizeof token) {
            memcpy(token, out.p, out.len);
            token[out.len] = 0;
        }
        sgi_buf_free(&out);
        break;
    default:
        break;
    }
}

static client *client_of(void *user, segue_request *request)
{
    client *c = user;
    fuzz_check(host.locked == 0);
    fuzz_check(c->handed && !c->completed && !c->freed);
    fuzz_check(!c->request || c->request == request);
    return c;
}

static void check_json(const char *text, size_t len)
{
    sgi_json_reader reader;
    sgi_env env = {&sgi_mem_libc, &host.hooks};
    sgi_json_reader_init(&reader, &env, SGI_JSON_MAX_BYTES, 200);
    fuzz_check(sgi_json_read(&reader, (sgi_str){text, len}, NULL, 0, NULL, NULL));
    sgi_json_reader_free(&reader);
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    client *c = client_of(user, request);
    if ((c->last || c->fresh) && !c->unordered)
        fuzz_check(segment->view.number == c->last + 1);
    fuzz_check(segment->view.number > 0);
    c->last = segment->view.number;
    check_json((sgi_json){segment->view.data, segment->view.data_len}.p,
               (sgi_json){segment->view.data, segment->view.data_len}.n);
    if (honest && c->fresh && !(request->follow && request->follow->partial)) {
        int64_t number = 0;
        if (sgi_json_read_int(
                sgi_json_get((sgi_json){segment->view.data, segment->view.data_len}, "n"),
                &number))
            fuzz_check((uint64_t)number == segment->view.number);
    }
    if (c->credit > 0)
        c->credit--;
    else if (c->credit == 0) /* an end does not wait for credit, which may never come */
        fuzz_check(sgi_request_is_over(request) &&
                   (request->status != SEGUE_OK || request->phase == SGI_PHASE_GIVEN_UP ||
                    sgi_session_is_closed(request->session)));
    meddle(c);
}

static void on_task(void *user, segue_request *request, const char *id)
{
    fuzz_check(id[0] != 0 || request->task_id != NULL);
    meddle(client_of(user, request));
}

static void on_status(void *user, segue_request *request, const char *status,
                      const char *message)
{
    fuzz_check(status != NULL && (!message || strlen(message) < 4096));
    meddle(client_of(user, request));
}

static void on_progress(void *user, segue_request *request, double progress, double total,
                        const char *message)
{
    (void)progress;
    (void)total;
    fuzz_check(!message || strlen(message) < 4096);
    meddle(client_of(user, request));
}

static void on_log(void *user, segue_request *request, const char *params, size_t len)
{
    check_json(params, len);
    meddle(client_of(user, request));
}

static void on_input(void *user, segue_request *request, const char *key,
                     const char *method, const char *params, size_t len)
{
    client *c = client_of(user, request);
    fuzz_check(method != NULL);
    check_json(params, len);
    snprintf(c->key, sizeof c->key, "%s", key);
    meddle(c);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *result, size_t len, const segue_error *error)
{
    client *c = client_of(user, request);
    fuzz_check((status == SEGUE_OK) == (error == NULL));
    fuzz_check(status != SEGUE_OK || result);
    if (result)
        check_json(result, len);
    meddle(c);
    c->completed = true;
}

static void free_user(void *user)
{
    client *c = user;
    fuzz_check(c->completed && !c->freed);
    c->freed = true;
}

static void on_open(void *user, segue_session *s)
{
    fuzz_check(user == &session_freed && (!session || s == session) && !closed);
    opened++;
}

static void on_closed(void *user, segue_session *s, const segue_error *error)
{
    (void)error;
    fuzz_check(user == &session_freed && (!session || s == session) && !closed);
    closed++;
    for (int i = 0; i < started; i++)
        fuzz_check(clients[i].completed || !clients[i].handed);
}

static void on_notification(void *user, segue_session *s, const char *method,
                            const char *params, size_t len)
{
    fuzz_check(user == &session_freed && (!session || s == session) && !closed);
    fuzz_check(method[0] != 0 || !len || params);
    if (len)
        check_json(params, len);
}

static void session_free_user(void *user)
{
    fuzz_check(user == &session_freed && closed == 1 && !session_freed);
    session_freed = 1;
}

/* ---- starting ---- */

static segue_request_events events_of(client *c)
{
    segue_request_events events = {.struct_size = sizeof events,
                                   .user = c,
                                   .free_user = free_user,
                                   .on_segment = on_segment,
                                   .on_input = on_input,
                                   .on_task = on_task,
                                   .on_status = on_status,
                                   .on_progress = on_progress,
                                   .on_log = on_log,
                                   .on_complete = on_complete};
    uint32_t without = fuzz_byte(&in);
    if (without % 16 == 1)
        events.on_task = NULL;
    if (without % 16 == 2)
        events.on_segment = NULL;
    if (without % 16 == 3)
        events.on_status = NULL;
    if (without % 16 == 4)
        events.on_progress = NULL;
    if (without % 16 == 5)
        events.on_input = NULL;
    return events;
}

static void start_one(void)
{
    client *c = &clients[started++];
    segue_request_events events = events_of(c);
    segue_request_options options = {.struct_size = sizeof options};
    segue_status status;
    uint32_t how = fuzz_byte(&in);
    if (how & 1)
        options.credit = 1 + (how >> 6);
    if (how & 2)
        options.timeout_ms = 700;
    if (how & 4)
        options.on_timeout = 1;
    if (how & 8)
        options.log_level = "info";
    options.unordered = (how & 15) == 15;
    *c = (client){.fresh = !options.unordered,
                  .unordered = options.unordered,
                  .credit = options.credit > 0 ? options.credit : -1};
    c->handed = true; /* callbacks are asynchronous: none comes before it returns */
    if ((how & 48) == 16 && token[0]) {
        c->fresh = false;
        status =
            sgi_request_new_from_token(session, token, &options, &events, &c->request);
    } else {
        sgi_request_spec spec = {.method = SGI_STR("tools/call"),
                                 .params =
                                     SGI_STR("{\"name\":\"t\",\"_meta\":{\"a\":1}}"),
                                 .options = &options,
                                 .events = &events};
        if ((how & 48) == 32)
            spec.method = SGI_STR("tools/list");
        if ((how & 48) == 48)
            spec.task_id = SGI_STR("task-1");
        status = sgi_request_new(session, &spec, &c->request);
    }
    if (status != SEGUE_OK) { /* nothing was taken over, so no callback will come */
        fuzz_check(!c->request);
        c->handed = false;
    }
}

/* ---- messages of the client ---- */

static void note_line(sgi_str line)
{
    sgi_json id = sgi_json_get(line, "id");
    sgi_json method = sgi_json_get(line, "method");
    sgi_str name;
    check_json(line.p, line.n);
    if (!id.n || !sgi_json_plain_string(method, &name) || ask_count == MAX_ASKED)
        return;
    asked *a = &open_asks[ask_count++];
    sgi_json_read_int(id, &a->id);
    snprintf(a->method, sizeof a->method, "%.*s", (int)name.n, name.p);
}

static void listen_to_client(void)
{
    sgi_str text = sgi_str_of(fake_session_said(session));
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        fuzz_check(end != NULL);
        note_line((sgi_str){text.p, (size_t)(end - text.p)});
        text.n -= (size_t)(end - text.p) + 1;
        text.p = end + 1;
    }
}

/* ---- messages of the server ---- */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    char line[3000];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[len++] = '\n';
    if (fuzz_one_in(&in, 8)) { /* the task is answered in two parts */
        int cut = (int)fuzz_byte(&in) % len;
        sgi_conn_add_input(session->conn, line, (size_t)cut);
        sgi_conn_add_input(session->conn, line + cut, (size_t)(len - cut));
    } else {
        sgi_conn_add_input(session->conn, line, (size_t)len);
    }
}

static const char *const results[] = {
    "{\"resultType\":\"task\",\"taskId\":\"task-1\",\"status\":\"working\","
    "\"pollIntervalMs\":100}",
    "{\"content\":[]}",
    "{\"resultType\":\"complete\",\"content\":[{\"n\":1},{\"n\":2},{\"n\":3}]}",
    "{\"resultType\":\"task\",\"task\":{\"taskId\":\"task-2\",\"status\":\"input_"
    "required\"}}",
    "{\"resultType\":\"task\",\"taskId\":7}",
    "{\"resultType\":\"task\",\"taskId\":\"a\\u0000b\",\"status\":\"working\"}",
    "{\"resultType\":\"other\"}",
    "{\"resultType\":\"complete\",\"taskId\":\"task-1\",\"status\":\"working\"}",
    "{\"resultType\":\"complete\",\"status\":\"completed\",\"result\":{\"content\":"
    "[{\"n\":1},{\"n\":2},{\"n\":3},{\"n\":4},{\"n\":5},{\"n\":6},{\"n\":7}]}}",
    "{\"resultType\":\"complete\",\"status\":\"completed\"}",
    "{\"resultType\":\"complete\",\"status\":\"failed\",\"error\":{\"code\":-32000,"
    "\"message\":\"\\u0000x\"}}",
    "{\"resultType\":\"complete\",\"status\":\"cancelled\",\"statusMessage\":\"gone\"}",
    "{\"resultType\":\"complete\",\"status\":\"input_required\",\"inputRequests\":{"
    "\"k1\":{\"method\":\"elicitation/create\",\"params\":{}},"
    "\"k2\":{\"method\":\"x\\u0000y\"},\"\\u006b3\":{},\"k4\":7}}",
    "{\"resultType\":\"complete\",\"status\":\"w\\u0000rking\",\"statusMessage\":7}",
    "{\"resultType\":\"complete\",\"_meta\":{\"dev.segue/"
    "final\":{\"status\":\"completed\","
    "\"isError\":true}}}",
    "{\"resultType\":\"complete\",\"_meta\":{\"dev.segue/"
    "final\":{\"status\":\"failed\"}}}",
    "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
    "\"capabilities\":{"
    "\"extensions\":{\"io.modelcontextprotocol/tasks\":{\"eventStreams\":{}},"
    "\"dev.segue/idempotency\":{}}}}",
    "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
    "\"capabilities\":{"
    "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}",
    "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{}}",
    "{}",
    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tasks\":{\"requests\":{"
    "\"tools\":{\"call\":{}}},\"responses\":{\"modes\":[\"streaming\",\"task\"]}}}}",
    "{\"partial-content\":[{\"seqNr\":1},{}],\"isComplete\":true}",
    "{\"task\":{\"taskId\":\"task-1\",\"status\":\"completed\"},\"_meta\":{"
    "\"io.modelcontextprotocol/fallback-mode\":\"task\"}}",
};

static const char *const errors[] = {
    "{\"code\":-32601,\"message\":\"no\"}",
    "{\"code\":-32602,\"message\":\"no\"}",
    "{\"code\":-32603,\"message\":\"no\",\"data\":{\"reason\":\"events_gone\"}}",
    "{\"code\":-32603,\"message\":\"no\",\"data\":{\"retryAfterMs\":300}}",
    "{\"code\":-32021,\"message\":\"no\"}",
    "{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[\"2025-11-25\"]}}",
    "{\"code\":99999999999}",
    "{}",
};

static void answer_one(void)
{
    if (!ask_count)
        return;
    uint32_t which = fuzz_below(&in, (uint32_t)ask_count);
    long long id = open_asks[which].id;
    uint32_t how = fuzz_byte(&in);
    const char *result = results[how % (sizeof results / sizeof *results)];
    const char *error = errors[how % (sizeof errors / sizeof *errors)];
    if (how < 160)
        say("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}", id, result);
    else if (how < 230)
        say("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":%s}", id, error);
    else if (how < 240)
        say("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s,\"error\":%s}", id, result,
            error);
    else if (how < 250)
        say("{\"jsonrpc\":\"2.0\",\"id\":\"%lld\",\"result\":%s}", id, result);
    else
        say("{\"jsonrpc\":\"2.0\",\"id\":%lld}", id);
    if (how != 255) /* otherwise it is perhaps answered twice */
        open_asks[which] = open_asks[--ask_count];
}

static bool is_2025(void)
{
    return session->version == SGI_VERSION_2025_11_25;
}

/* Sends the segments from..to - 1 of task-1, always the same ones. */
static void part(long long id, uint32_t from, uint32_t to, bool task, bool complete)
{
    char list[1024];
    int n = 0;
    list[0] = 0;
    for (uint32_t i = from; i < to; i++)
        n += snprintf(list + n, sizeof list - (size_t)n, "%s{\"n\":%u,\"seqNr\":%u}",
                      i > from ? "," : "", i, i);
    say("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{%s\"partial-content\":[%s],"
        "\"isComplete\":%s,\"isError\":%s,\"_meta\":{\"io.modelcontextprotocol/"
        "related-task\":{\"taskId\":\"task-1\"}}}}",
        id, task ? "\"task\":{\"taskId\":\"task-1\",\"status\":\"working\"}," : "", list,
        complete ? "true" : "false", fuzz_one_in(&in, 16) ? "true" : "false");
}

/* Pushes or returns some of twelve segments: batches, repeats, gaps, the end. */
static void some_part(long long id, bool task)
{
    uint32_t how = fuzz_byte(&in);
    uint32_t from = 1 + how % 12;
    uint32_t to = from + fuzz_below(&in, 5);
    part(id, from, to > 13 ? 13 : to, task, to >= 13 || how > 250);
}

static void answer_well_2025(const asked *a)
{
    long long id = a->id;
    if (!strcmp(a->method, "tools/list")) {
        say("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"tools\":[{\"name\":\"t\","
            "\"execution\":{\"taskSupport\":\"optional\"}}]%s}}",
            id, fuzz_one_in(&in, 8) ? ",\"nextCursor\":\"c\"" : "");
    } else if (!strcmp(a->method, "tools/call")) {
        streamed = id;
        some_part(id, true);
    } else if (!strcmp(a->method, "tasks/result") && fuzz_one_in(&in, 4)) {
        say("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"content\":[{\"n\":1},{\"n\":"
            "2},{\"n\":3},{\"n\":4}]}}",
            id);
    } else if (!strcmp(a->method, "tasks/result")) {
        some_part(id, false);
    } else {
        static const char *const words[] = {"working",   "working", "input_required",
                                            "completed", "failed",  "cancelled"};
        say("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"taskId\":\"task-1\","
            "\"status\":"
            "\"%s\",\"lastUpdatedAt\":\"2026-01-01T00:00:0%uZ\",\"pollInterval\":100}}",
            id, words[fuzz_below(&in, 6)], fuzz_below(&in, 10));
    }
}

/* Sends the answer of a correct server, by the method. */
static void answer_well(void)
{
    if (!ask_count)
        return;
    asked a = open_asks[0];
    memmove(open_asks, open_asks + 1, (size_t)--ask_count * sizeof *open_asks);
    int result = 19;
    if (is_2025() && strcmp(a.method, "initialize") != 0) {
        answer_well_2025(&a);
        return;
    }
    if (!strcmp(a.method, "server/discover"))
        result = fuzz_one_in(&in, 8) ? 17 : 16;
    else if (!strcmp(a.method, "initialize"))
        result = fuzz_one_in(&in, 2) ? 18 : 20;
    else if (!strcmp(a.method, "tools/call"))
        result = fuzz_one_in(&in, 4) ? 2 : 0;
    else if (!strcmp(a.method, "tasks/get"))
        result = fuzz_one_in(&in, 2) ? 12 : 7;
    else if (!strcmp(a.method, "tasks/stream"))
        open_asks[ask_count++] = a; /* the request stays open */
    if (strcmp(a.method, "tasks/stream") != 0)
        say("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}", (long long)a.id,
            results[result]);
}

/* Event 3 k holds segment 2 k + 1, event 3 k + 1 the next one and fields, 3 k + 2 is a
 * status. They are always the same, however often and in whatever order they are sent. */
static void event(uint64_t seq)
{
    static const char head[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\","
        "\"params\":{\"taskId\":\"task-1\",\"seq\":";
    unsigned long long n = seq;
    unsigned long long first = seq / 3 * 2 + 1;
    if (seq % 3 == 2)
        say("%s%llu,\"type\":\"dev.segue.status\",\"payload\":{\"status\":\"%s\"}}}",
            head, n, seq % 2 ? "working" : "input_required");
    else
        say("%s%llu,\"type\":\"dev.segue.content.partial\",\"payload\":{\"content\":"
            "[{\"n\":%llu}]}}}",
            head, n, first + seq % 3);
}

/* Sends any event: repeats, gaps, other tasks, other types. */
static void wild_event(void)
{
    static const char *const types[] = {
        "\"dev.segue.content.partial\",\"payload\":{\"content\":[{\"n\":0},{},7]}",
        "\"dev.segue.content.partial\",\"payload\":{\"content\":7}",
        "\"dev.segue.fields\",\"payload\":{\"x\":1,\"_meta\":{\"y\":2}}",
        "\"dev.segue.fields\",\"payload\":{\"\\u0078\":2,\"_met\\u0061\":{}}",
        "\"dev.segue.fields\",\"payload\":[]",
        "\"dev.segue.replace\",\"payload\":{}",
        "\"dev.segue.status\",\"payload\":{\"status\":\"input_required\"}",
        "\"dev.segue.status\",\"payload\":{\"statusMessage\":\"a\\u0000b\"}",
        "\"other\"",
        "7",
    };
    static const char *const seqs[] = {
        "0",     "1",   "2", "7", "-1", "1.5", "9007199254740991", "9223372036854775807",
        "\"1\"", "null"};
    honest = false;
    say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
        "\"taskId\":\"task-%u\",\"seq\":%s,\"type\":%s}}",
        1 + fuzz_below(&in, 2), seqs[fuzz_below(&in, 10)], types[fuzz_below(&in, 10)]);
}

static void notification(void)
{
    uint32_t id = fuzz_below(&in, 12);
    if (is_2025() && streamed && fuzz_below(&in, 4)) {
        some_part(streamed, false);
        return;
    }
    switch (fuzz_below(&in, 8)) {
    case 6:
        say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{"
            "\"taskId\":\"task-1\",\"status\":\"%s\"}}",
            id ? "working" : "completed");
        break;
    case 7:
        say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
        break;
    case 0:
        say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
            "\"progressToken\":%u,\"progress\":0.5,\"total\":1,\"message\":\"m\\u0000m\"}"
            "}",
            id);
        break;
    case 1:
        say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}");
        break;
    case 2:
        say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}");
        break;
    case 3:
        say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
            "other\",\"params\":{\"a\":1}}");
        break;
    case 4:
        say("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041%u\",\"method\":\"ping\"}", id);
        break;
    default:
        say("{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"roots/list\"}", id);
    }
}

static void raw_bytes(void)
{
    size_t len = fuzz_byte(&in);
    if (len > in.left)
        len = in.left;
    honest = false; /* it may look like an event of the server */
    sgi_conn_add_input(session->conn, (const char *)in.p, len);
    in.p += len;
    in.left -= len;
}

/* Sends a run of events from the position of a stream on, sometimes with a repeat or a
 * gap. */
static void run_of_events(void)
{
    uint64_t seq = 0;
    segue_request *request;
    TAILQ_FOREACH(request, &session->requests, link)
        if (sgi_task_stream_emitter(request))
            seq = sgi_task_stream_of(request)->next;
    for (uint32_t n = 1 + fuzz_below(&in, 12); n; n--) {
        uint32_t how = fuzz_below(&in, 16);
        if (how == 1 && seq)
            seq--;
        /* no gap before the first event: the client could not see it */
        if (how == 2 && seq)
            seq += 2;
        event(seq++);
    }
}

static void cut(void)
{
    ask_count = 0;
    sgi_conn_on_lost(session->conn, "cut");
    if (session->stage == SGI_STAGE_LOST && session->conn->can_reopen)
        fake_host_advance(&host, fuzz_one_in(&in, 2) ? 0 : 40000);
    sgi_conn_start(session->conn);
}

static void step(void)
{
    switch (fuzz_below(&in, 16)) {
    case 0:
        if (started < MAX_STARTED)
            start_one();
        break;
    case 1:
    case 2:
        answer_one();
        break;
    case 3:
    case 4:
    case 5:
        listen_to_client();
        answer_well();
        break;
    case 6:
    case 7:
        run_of_events();
        break;
    case 8:
        wild_event();
        break;
    case 9:
        notification();
        break;
    case 10:
        raw_bytes();
        break;
    case 11:
        if (fuzz_one_in(&in, 4))
            cut();
        else
            fake_host_advance(&host, fuzz_byte(&in) * 30);
        break;
    case 12:
        if (started)
            meddle(&clients[fuzz_below(&in, (uint32_t)started)]);
        break;
    case 13:
        test_mem_rearm(&tm);
        tm.fail_at = fuzz_below(&in, 24);
        tm.fail_from = fuzz_one_in(&in, 8) ? fuzz_below(&in, 24) : 0;
        break;
    case 14:
        sgi_engine_run_callbacks(&host.engine, 1 + (int32_t)fuzz_below(&in, 4));
        break;
    default:
        listen_to_client();
        fake_host_deliver(&host);
    }
    fuzz_check(tm.live < MAX_LIVE);
    fuzz_check(session->notifications.waiting.len <= 300 * 1024);
}

static void finish(void)
{
    test_mem_rearm(&tm);
    segue_session *mine = session;
    sgi_session_close(mine);
    sgi_conn_detach(mine->conn);
    in.left = 0;
    fake_host_deliver(&host);
    for (int i = 0; i < started; i++)
        if (clients[i].request)
            sgi_request_unref(clients[i].request);
    fake_host_deliver(&host);
    session = NULL;
    sgi_session_unref(mine);
    fake_host_deliver(&host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    segue_session_events events = {.struct_size = sizeof events,
                                   .user = &session_freed,
                                   .free_user = session_free_user,
                                   .on_open = on_open,
                                   .on_closed = on_closed,
                                   .on_notification = on_notification};
    in = (fuzz_input){data, size};
    uint8_t how = fuzz_byte(&in);
    memset(clients, 0, sizeof clients);
    started = ask_count = opened = closed = session_freed = 0;
    streamed = 0;
    honest = true;
    token[0] = 0;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, how);
    session = fake_session_new(&host, &events);
    session->options.max_result_bytes = 64 * 1024;
    if ((how & 3) == 2)
        session->options.era = SEGUE_ERA_LEGACY;
    if (how & 1)
        fake_session_open(session);
    else
        sgi_conn_start(session->conn);
    for (int i = 0; in.left && i < MAX_STEPS; i++)
        step();
    finish();
    for (int i = 0; i < started; i++)
        fuzz_check(clients[i].completed == clients[i].handed &&
                   clients[i].freed == clients[i].handed);
    fuzz_check(closed == 1 && session_freed == 1);
    fake_host_free(&host);
    fuzz_check(tm.live == 0);
    return 0;
}
