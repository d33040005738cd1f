/* A server that watches its clients: it hears what they do outside of calls, and sends
 * them messages outside of calls. */
#include <segue/segue_ext.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* What the server has heard, one line per event. */
static char heard[1000];
/* What the client has received, one line per message. */
static char received[1000];
static char answered[200];
static uint64_t first;     /* the number of the first client */
static uint64_t of_a_call; /* the number of the client of the last call */
static int freed;

static void add(char *to, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *to, size_t room, const char *format, ...)
{
    va_list more;
    size_t len = strlen(to);
    va_start(more, format);
    vsnprintf(to + len, room - len, format, more);
    va_end(more);
}

/* ---- the server ---- */

static void on_open(void *user, uint64_t client, const char *principal, const char *json,
                    size_t len)
{
    (void)user;
    assert_int_equal(strlen(json), len);
    assert_string_equal(principal, "");
    assert_non_null(strstr(json, "\"isSession\":true"));
    first = first ? first : client;
    add(heard, sizeof heard, "open %s\n",
        strstr(json, "\"roots\"") ? "with roots" : "without roots");
}

static void on_closed(void *user, uint64_t client)
{
    (void)user;
    (void)client;
    add(heard, sizeof heard, "closed\n");
}

static void on_subscription(void *user, uint64_t client, const char *uri,
                            int32_t subscribed)
{
    (void)user;
    assert_int_equal(client, first);
    add(heard, sizeof heard, "%s %s\n", subscribed ? "subscribed" : "ended", uri);
}

static void on_level(void *user, uint64_t client, const char *level)
{
    (void)user;
    assert_int_equal(client, first);
    add(heard, sizeof heard, "level %s\n", level);
}

static void on_roots_changed(void *user, uint64_t client)
{
    (void)user;
    assert_int_equal(client, first);
    add(heard, sizeof heard, "roots changed\n");
}

static void on_free(void *user)
{
    (void)user;
    freed++;
}

static void on_call(void *user, segue_call *call)
{
    (void)user;
    of_a_call = segue_call_client(call);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void on_answer(void *user, segue_call *call, segue_status status, const char *json,
                      size_t len)
{
    (void)user;
    (void)call;
    snprintf(answered, sizeof answered, "%s %.*s", segue_status_name(status), (int)len,
             json ? json : "");
}

/* ---- the client ---- */

static void on_notification(void *user, segue_session *session, const char *method,
                            const char *params, size_t len)
{
    (void)user;
    (void)session;
    add(received, sizeof received, "%s %.*s\n", method, (int)len, params);
}

static void on_question(void *user, segue_request *request, const char *key,
                        const char *method, const char *params, size_t len)
{
    (void)user;
    (void)params;
    (void)len;
    add(received, sizeof received, "asked %s\n", method);
    segue_request_answer(request, key, "{\"roots\":[]}", 12, NULL);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    (void)request;
    (void)json;
    (void)len;
    (void)error;
    *(segue_status *)user = status;
}

/* ---- both ---- */

typedef struct world {
    segue_runtime *runtime;
    segue_server *server;
    segue_session *session;
    segue_request *questions;
} world;

static void run(const world *w)
{
    int32_t ran = 1, quiet = 0;
    while (quiet < 3) {
        segue_runtime_dispatch(w->runtime, 0, 0, &ran);
        quiet = ran ? 0 : quiet + 1;
    }
}

static void open_client(world *w, segue_transport *transport, int32_t era)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_request_events asking = SEGUE_REQUEST_EVENTS_INIT;
    options.capabilities = "{\"roots\":{}}";
    options.era = era;
    events.on_notification = on_notification;
    asking.on_input = on_question;
    assert_int_equal(
        segue_session_open(w->runtime, transport, &options, &events, &w->session, NULL),
        SEGUE_OK);
    assert_int_equal(segue_session_take_input(w->session, &asking, &w->questions, NULL),
                     SEGUE_OK);
}

static void open_world(world *w, int32_t era)
{
    static const char resource[] = "{\"uri\":\"a:1\",\"name\":\"a\"}";
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_transport *here, *there;
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    segue_client_events events = SEGUE_CLIENT_EVENTS_INIT;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    *heard = *received = *answered = 0;
    first = of_a_call = 0;
    freed = 0;
    *w = (world){0};
    options.log_level = "info";
    item.on_call = on_call;
    events.on_open = on_open;
    events.on_closed = on_closed;
    events.on_subscription = on_subscription;
    events.on_level = on_level;
    events.on_roots_changed = on_roots_changed;
    events.free_user = on_free;
    assert_int_equal(segue_runtime_new(NULL, &w->runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_transport_pair(w->runtime, &here, &there), SEGUE_OK);
    assert_int_equal(segue_server_new(w->runtime, &options, &w->server, NULL), SEGUE_OK);
    assert_int_equal(segue_server_watch_clients(w->server, &events, NULL), SEGUE_OK);
    assert_int_equal(segue_server_watch_clients(w->server, &events, NULL),
                     SEGUE_E_EXISTS);
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_RESOURCE, resource,
                                      strlen(resource), &item, NULL),
                     SEGUE_OK);
    assert_int_equal(
        segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, strlen(tool), &item, NULL),
        SEGUE_OK);
    assert_int_equal(segue_server_attach(w->server, there, NULL), SEGUE_OK);
    open_client(w, here, era);
    run(w);
}

static void close_world(world *w)
{
    if (w->session)
        segue_session_close(w->session);
    run(w);
    segue_request_free(w->questions);
    segue_session_free(w->session);
    segue_server_free(w->server);
    run(w);
    assert_int_equal(freed, 1);
    segue_runtime_free(w->runtime);
}

static void ask(const world *w, const char *method, const char *params)
{
    segue_status status = SEGUE_E_FATAL;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = &status;
    events.on_complete = on_complete;
    assert_int_equal(segue_request_start(w->session, method, params, strlen(params), NULL,
                                         &events, NULL, NULL),
                     SEGUE_OK);
    run(w);
    assert_int_equal(status, SEGUE_OK);
}

static void the_server_hears_what_a_client_does(void **state)
{
    world w;
    (void)state;
    open_world(&w, SEGUE_ERA_LEGACY);
    ask(&w, "resources/subscribe", "{\"uri\":\"a:1\"}");
    ask(&w, "resources/subscribe", "{\"uri\":\"a:1\"}");
    ask(&w, "resources/unsubscribe", "{\"uri\":\"a:1\"}");
    ask(&w, "resources/unsubscribe", "{\"uri\":\"a:1\"}");
    ask(&w, "logging/setLevel", "{\"level\":\"error\"}");
    assert_int_equal(segue_session_notify(w.session, "notifications/roots/list_changed",
                                          NULL, 0, NULL),
                     SEGUE_OK);
    run(&w);
    ask(&w, "tools/call", "{\"name\":\"t\"}");
    assert_int_equal(of_a_call, first);
    segue_session_close(w.session);
    run(&w);
    assert_string_equal(heard, "open with roots\nsubscribed a:1\nended a:1\n"
                               "level error\nroots changed\nclosed\n");
    assert_int_equal(segue_client_updated(w.server, first, "a:1"), SEGUE_E_NOT_FOUND);
    close_world(&w);
}

static void a_client_gets_messages_outside_of_calls(void **state)
{
    static const char low[] = "{\"level\":\"debug\",\"data\":1}";
    static const char high[] = "{\"level\":\"info\",\"data\":2,\"_meta\":{}}";
    world w;
    (void)state;
    open_world(&w, SEGUE_ERA_LEGACY);
    assert_int_equal(segue_client_updated(w.server, first, "a:1"), SEGUE_OK);
    ask(&w, "resources/subscribe", "{\"uri\":\"a:1\"}");
    assert_int_equal(segue_client_updated(w.server, first, "a:1"), SEGUE_OK);
    assert_int_equal(segue_client_updated(w.server, first + 1, "a:1"), SEGUE_E_NOT_FOUND);
    run(&w);
    assert_int_equal(segue_client_log(w.server, first, low, strlen(low), NULL), SEGUE_OK);
    assert_int_equal(segue_client_log(w.server, first, high, strlen(high), NULL),
                     SEGUE_OK);
    assert_int_equal(segue_client_log(w.server, first, "{}", 2, NULL), SEGUE_E_INVALID);
    run(&w);
    assert_string_equal(received, "notifications/resources/updated {\"uri\":\"a:1\"}\n"
                                  "notifications/message {\"level\":\"info\",\"data\":2}"
                                  "\n");
    close_world(&w);
}

static segue_call *ask_client(const world *w)
{
    segue_call *call = NULL;
    assert_int_equal(segue_client_call(w->server, first, &call, NULL), SEGUE_OK);
    assert_int_equal(segue_call_client(call), first);
    assert_int_equal(segue_call_defer(call, 0, NULL), SEGUE_E_UNSUPPORTED);
    assert_int_equal(segue_call_require_input(call, NULL, "sampling/createMessage", "{}",
                                              2, on_answer, NULL, NULL, NULL),
                     SEGUE_E_UNSUPPORTED);
    assert_int_equal(segue_call_require_input(call, NULL, "roots/list", NULL, 0,
                                              on_answer, NULL, NULL, NULL),
                     SEGUE_OK);
    return call;
}

static void a_client_answers_questions_outside_of_calls(void **state)
{
    world w;
    (void)state;
    open_world(&w, SEGUE_ERA_LEGACY);
    segue_call *call = ask_client(&w);
    run(&w);
    assert_string_equal(received, "asked roots/list\n");
    assert_string_equal(answered, "SEGUE_OK {\"roots\":[]}");
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
    close_world(&w);
}

static void a_question_ends_with_its_client(void **state)
{
    world w;
    (void)state;
    open_world(&w, SEGUE_ERA_LEGACY);
    segue_call *call = ask_client(&w);
    segue_session_close(w.session);
    run(&w);
    assert_string_equal(answered, "SEGUE_E_CANCELLED ");
    segue_call_free(call);
    close_world(&w);
}

static void a_client_of_2026_07_28_cannot_be_asked(void **state)
{
    world w;
    segue_call *call = NULL;
    (void)state;
    open_world(&w, SEGUE_ERA_MODERN);
    assert_int_equal(segue_client_call(w.server, first, &call, NULL),
                     SEGUE_E_UNSUPPORTED);
    ask(&w, "tools/call", "{\"name\":\"t\"}");
    assert_int_equal(of_a_call, first);
    close_world(&w);
    assert_string_equal(heard, "open with roots\nclosed\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_hears_what_a_client_does),
        cmocka_unit_test(a_client_gets_messages_outside_of_calls),
        cmocka_unit_test(a_client_answers_questions_outside_of_calls),
        cmocka_unit_test(a_question_ends_with_its_client),
        cmocka_unit_test(a_client_of_2026_07_28_cannot_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
