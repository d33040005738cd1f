/* The pieces of a result are larger than what a server keeps of an event stream
 * (max_replay_bytes), and the stream is cut and resumed twice (PR 776). Client and server
 * are those of the library, in one runtime, in real time; a proxy in between makes the
 * cuts. The server reports lost pieces. The client then asks for the whole call again by
 * its key. Without a key the call ends with an error that says so. */
#include "support/cutting_proxy.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define PIECES 8
#define PIECE_BYTES ((size_t)1024 * 1024)
#define CUTS 2
#define TURNS 60000 /* turns of at most 10 ms: a guard */

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    segue_store *store;
    segue_listener *listener;
    segue_session *session;
    cutting_proxy *proxy;
    char *text; /* buffer for a piece */
    int runs;   /* runs of the tool */
    /* Of the request. */
    int pieces, completed;
    segue_status status;
    int retryable;
    char message[256];
    int whole; /* 1 = the result has each piece */
} stage;

/* ---- the tool ---- */

typedef struct job {
    stage *s;
    int next;
} job;

/* A piece has its number at both ends. */
static const char *piece(stage *s, int number)
{
    char name[16];
    int n = snprintf(name, sizeof name, "<%d>", number);
    memset(s->text, 'a' + number, PIECE_BYTES);
    memcpy(s->text, name, (size_t)n);
    memcpy(s->text + PIECE_BYTES - (size_t)n, name, (size_t)n);
    return s->text;
}

static void send_more(void *user, segue_call *call)
{
    job *j = user;
    while (j->next < PIECES) {
        segue_status status =
            segue_call_send_text(call, piece(j->s, j->next), PIECE_BYTES, NULL);
        if (status == SEGUE_E_WOULD_BLOCK)
            return;
        if (status == SEGUE_E_TERMINAL || status == SEGUE_E_CLOSED)
            break; /* no request waits for it any more */
        assert_int_equal(status, SEGUE_OK);
        j->next++;
    }
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void on_call(void *user, segue_call *call)
{
    stage *s = user;
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    job *j = calloc(1, sizeof *j);
    s->runs++;
    j->s = s;
    events.user = j;
    events.free_user = free;
    events.on_drain = send_more;
    assert_int_equal(segue_call_watch(call, &events), SEGUE_OK);
    send_more(j, call);
}

/* ---- the request ---- */

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    stage *s = user;
    size_t len;
    const char *text = segue_segment_text(segment, &len);
    (void)request;
    assert_int_equal(segue_segment_read(segment)->number, s->pieces + 1);
    assert_int_equal(len, PIECE_BYTES);
    assert_memory_equal(text, piece(s, s->pieces), PIECE_BYTES);
    s->pieces++;
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    stage *s = user;
    char path[32];
    (void)request;
    (void)len;
    s->completed++;
    s->status = status;
    s->retryable = segue_error_read(error)->retryable;
    snprintf(s->message, sizeof s->message, "%s", segue_error_read(error)->message);
    for (s->whole = 0; json && s->whole < PIECES; s->whole++) {
        snprintf(path, sizeof path, "content.%d.text", s->whole);
        const char *text = json_at(json, path); /* the text with its quotes */
        if (strlen(text) != PIECE_BYTES + 2 ||
            memcmp(text + 1, piece(s, s->whole), PIECE_BYTES) != 0)
            break;
    }
}

/* ---- the stage ---- */

/* How a client that was cut off may ask again. */
typedef enum way { BY_KEY, BY_RESUME, BY_NOTHING } way;

static uint32_t dialects_of(way by)
{
    return by == BY_RESUME ? SEGUE_DIALECT_RESUMABLE : 0;
}

static void serve(stage *s, way by)
{
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    options.dialects_on = dialects_of(by);
    item.on_call = on_call;
    item.user = s;
    item.flags = SEGUE_TOOL_INCREMENTAL | (by == BY_RESUME ? SEGUE_TOOL_RESUMABLE : 0);
    assert_int_equal(segue_runtime_new(NULL, &s->runtime, NULL), SEGUE_OK);
    /* keys need a store */
    assert_int_equal(segue_store_memory(NULL, &options.store), SEGUE_OK);
    s->store = options.store;
    assert_int_equal(segue_server_new(s->runtime, &options, &s->server, NULL), SEGUE_OK);
    assert_int_equal(
        segue_server_add(s->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &item, NULL),
        SEGUE_OK);
    assert_int_equal(segue_server_listen(s->server, NULL, &s->listener, NULL), SEGUE_OK);
}

static void connect_by_proxy(stage *s, way by)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_transport *transport;
    char url[128];
    const char *port = strrchr(segue_listener_url(s->listener), ':') + 1;
    cutting_options proxy = {.target_port = (uint16_t)atoi(port), .seed = 7};
    assert_true(cutting_proxy_start(&proxy, &s->proxy));
    snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp",
             (int)cutting_proxy_port(s->proxy));
    options.era = SEGUE_ERA_LEGACY;
    options.no_idempotency = by != BY_KEY;
    options.dialects_on = dialects_of(by);
    assert_int_equal(segue_transport_http(s->runtime, url, NULL, &transport, NULL),
                     SEGUE_OK);
    assert_int_equal(
        segue_session_open(s->runtime, transport, &options, NULL, &s->session, NULL),
        SEGUE_OK);
}

/* Makes the call, cut off twice, each time behind more than one piece. */
static void run_call(stage *s)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    cutting_plan plan = {.direction = CUTTING_DOWN,
                         .min = PIECE_BYTES * 5 / 4,
                         .max = PIECE_BYTES * 11 / 4,
                         .how = CUTTING_RST,
                         .times = CUTS};
    cutting_proxy_plan(s->proxy, &plan);
    events.user = s;
    events.on_segment = on_segment;
    events.on_complete = on_complete;
    assert_int_equal(segue_request_start(s->session, "tools/call", "{\"name\":\"t\"}", 12,
                                         NULL, &events, NULL, NULL),
                     SEGUE_OK);
    for (int i = 0; i < TURNS && !s->completed; i++)
        segue_runtime_dispatch(s->runtime, 10, 0, NULL);
    assert_int_equal(s->completed, 1);
}

static void end(stage *s)
{
    segue_session_free(s->session);
    segue_listener_free(s->listener);
    segue_server_free(s->server);
    segue_store_free(s->store);
    segue_runtime_free(s->runtime);
    cutting_proxy_stop(s->proxy);
    free(s->text);
}

static void begin(stage *s, way by)
{
    *s = (stage){.text = malloc(PIECE_BYTES)};
    serve(s, by);
    connect_by_proxy(s, by);
}

/* ---- tests ---- */

static void every_piece_comes_once(way by)
{
    stage s;
    begin(&s, by);
    run_call(&s);
    if (s.status != SEGUE_OK)
        fail_msg("%s: %s", segue_status_name(s.status), s.message);
    assert_int_equal(cutting_proxy_get(s.proxy, CUTTING_CUTS), CUTS);
    assert_int_equal(s.pieces, PIECES);
    assert_int_equal(s.whole, PIECES);
    assert_int_equal(s.runs, 1);
    end(&s);
}

static void with_a_key_every_piece_comes_once(void **state)
{
    (void)state;
    every_piece_comes_once(BY_KEY);
}

static void a_resumable_call_brings_every_piece_once(void **state)
{
    (void)state;
    every_piece_comes_once(BY_RESUME);
}

static void without_a_key_the_error_says_what_is_gone(void **state)
{
    stage s;
    (void)state;
    begin(&s, BY_NOTHING);
    run_call(&s);
    assert_int_equal(s.status, SEGUE_E_DISCONNECTED);
    if (!strstr(s.message, "no longer has the events that followed"))
        fail_msg("%s", s.message);
    assert_int_equal(s.retryable, 1);
    assert_true(s.pieces > 0 && s.pieces < PIECES);
    /* all pieces that came are in the result, without a gap */
    assert_int_equal(s.whole, s.pieces);
    assert_int_equal(s.runs, 1);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-110 large pieces and two cuts: with a key every piece comes once",
         with_a_key_every_piece_comes_once, NULL, NULL, NULL},
        {"AS-110 large pieces and two cuts: a call that can be resumed brings each once",
         a_resumable_call_brings_every_piece_once, NULL, NULL, NULL},
        {"AS-110 large pieces and two cuts: without a key the error says what is lost",
         without_a_key_the_error_says_what_is_gone, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("large_pieces", tests, NULL, NULL);
}
