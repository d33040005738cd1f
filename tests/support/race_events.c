/* Decides which events may happen next. Automatic events (callbacks, commits, messages)
 * may happen as often as they are due. Decided events may happen as often as the row's
 * budget allows. */
#include "support/race_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SOON_MS 5000 /* later timers do not belong to the task */

/* ---- the handler ---- */

static void count_cancel(void *user, segue_call *call)
{
    race_world *w = user;
    (void)call;
    w->handler.cancels++;
    race_check(w, w->handler.cancels == 1);
}

static void count_free(void *user)
{
    race_world *w = user;
    w->handler.freed++;
    race_check(w, w->handler.freed <= w->handler.watched);
}

static void on_call(void *user, segue_call *call)
{
    race_world *w = user;
    segue_call_events events = {.struct_size = sizeof events,
                                .user = w,
                                .free_user = count_free,
                                .on_cancel = count_cancel};
    uint64_t last = 0;
    race_check(w, !w->handler.call && !w->handler.runs);
    w->handler.call = call;
    w->handler.runs++;
    sgi_call_resumed(call, &last, NULL, NULL);
    w->handler.next_segment = (int)last + 1;
    race_check(w, sgi_call_set_events(call, &events) == SEGUE_OK);
    w->handler.watched++;
}

void race_add_tool(race_world *w)
{
    static const char tool[] =
        "{\"name\":\"race\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = {.struct_size = sizeof options,
                                  .user = w,
                                  .on_call = on_call,
                                  .flags = w->row->flags,
                                  .task = SEGUE_TASK_MUST,
                                  .ttl_ms = RACE_TTL_MS,
                                  .poll_ms = RACE_POLL_MS};
    race_check(w, sgi_item_add(w->handle, SEGUE_ITEM_TOOL, sgi_str_of(tool), &options,
                               NULL) == SEGUE_OK);
}

void race_let_call_go(race_world *w)
{
    segue_call *call = w->handler.call;
    w->handler.call = NULL;
    if (call)
        sgi_call_free(call);
    fake_host_deliver(&w->server);
}

static void send_segment(race_world *w)
{
    char text[16];
    snprintf(text, sizeof text, "s%d", w->handler.next_segment);
    bool over = sgi_call_is_over(w->handler.call);
    segue_status status = sgi_call_send_text(w->handler.call, sgi_str_of(text));
    race_check(w, status == (over ? SEGUE_E_TERMINAL : SEGUE_OK));
    w->handler.next_segment += status == SEGUE_OK;
}

static void on_input(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len)
{
    race_world *w = user;
    (void)len;
    race_check(w, call == w->handler.call);
    race_check(w, (status == SEGUE_E_CANCELLED) == (json == NULL));
    race_check(w, status != SEGUE_E_CANCELLED || sgi_op_has_ended(call->op) ||
                      w->handle->stage == SGI_SERVER_DEAD);
}

static void input_over(void *user)
{
    race_world *w = user;
    w->handler.inputs++;
    race_check(w, w->handler.inputs <= w->handler.asked);
}

static void ask(race_world *w)
{
    static const char params[] =
        "{\"mode\":\"form\",\"message\":\"Go on?\",\"requestedSchema\":"
        "{\"type\":\"object\",\"properties\":{}}}";
    bool over = sgi_call_is_over(w->handler.call);
    segue_status status =
        sgi_call_require_input(w->handler.call, NULL, "elicitation/create", params,
                               sizeof params - 1, on_input, w, input_over);
    race_check(w, status == (over ? SEGUE_E_TERMINAL : SEGUE_OK));
    w->handler.asked += status == SEGUE_OK;
}

/* Plays one of the possible ends of the task. The end counts if it is the first. */
static void end_call(race_world *w, race_event event)
{
    segue_call *call = w->handler.call;
    bool over = sgi_call_is_over(call);
    segue_content *content = NULL;
    segue_status status = SEGUE_OK;
    if (event == RACE_IS_ERROR) {
        content = sgi_content_new(&w->server.engine);
        content->is_error = true;
    }
    if (event == RACE_FAIL)
        status = sgi_call_fail(call, -31000, "It failed", NULL, 0);
    else if (event != RACE_GIVE_UP)
        status = sgi_call_complete(call, content);
    if (content)
        sgi_content_free(content);
    if (event != RACE_GIVE_UP)
        race_check(w, status == (over ? SEGUE_E_TERMINAL : SEGUE_OK));
    w->handler.call = NULL;
    sgi_call_free(call);
    w->ends += !over;
    race_check(w, w->ends <= 1);
}

/* ---- the client ---- */

static race_world *alive(void *user)
{
    race_world *w = user;
    race_check(w, !w->completed && !w->freed);
    return w;
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    race_world *w = alive(user);
    (void)request;
    race_judge_segment(w, segment->view.number,
                       (sgi_json){segment->view.data, segment->view.data_len});
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    race_world *w = alive(user);
    (void)request;
    race_check(w, !strcmp(task_id, race_record(w)->record.task_id));
    w->tasks++;
    race_check(w, w->tasks == 1);
}

static void on_status(void *user, segue_request *request, const char *status,
                      const char *message)
{
    (void)alive(user);
    (void)request;
    (void)status;
    (void)message;
}

static void on_question(void *user, segue_request *request, const char *key,
                        const char *method, const char *params, size_t len)
{
    race_world *w = alive(user);
    (void)request;
    (void)params;
    (void)len;
    race_check(w, !strcmp(method, "elicitation/create"));
    snprintf(w->question, sizeof w->question, "%s", key);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    race_world *w = alive(user);
    (void)request;
    race_check(w, (status != SEGUE_OK) == (error != NULL));
    w->completed++;
    w->is_error = json && sgi_json_get((sgi_json){json, len}, "isError").n == 4;
    w->status = status;
}

static void on_freed(void *user)
{
    race_world *w = user;
    race_check(w, w->completed == 1 && !w->freed);
    w->freed++;
}

void race_start_call(race_world *w)
{
    segue_request_options options = {.struct_size = sizeof options};
    segue_request_events events = {.struct_size = sizeof events,
                                   .user = w,
                                   .free_user = on_freed,
                                   .on_segment = on_segment,
                                   .on_input = on_question,
                                   .on_task = on_task,
                                   .on_status = on_status,
                                   .on_complete = on_complete};
    sgi_request_spec spec = {.method = SGI_STR("tools/call"),
                             .params = SGI_STR("{\"name\":\"race\",\"arguments\":{}}"),
                             .options = &options,
                             .events = &events};
    race_check(w, sgi_request_new(w->session, &spec, &w->request) == SEGUE_OK);
}

static void client_acts(race_world *w, race_event event)
{
    race_history(&w->client_history, &event, sizeof event);
    race_history(&w->client_history, &w->client.clock_ms, sizeof(int64_t));
    if (event == RACE_CANCEL) {
        w->cancelled = true;
        race_check(w, sgi_request_cancel(w->request) == SEGUE_OK);
        return;
    }
    segue_status status =
        sgi_request_answer(w->request, w->question, SGI_STR("{\"action\":\"accept\"}"));
    race_check(w, status == SEGUE_OK || status == SEGUE_E_NOT_FOUND ||
                      status == SEGUE_E_TERMINAL);
    *w->question = 0;
}

/* ---- the second client ---- */

#define META                                                                             \
    ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","            \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},"                \
    "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}"

static void other_asks(race_world *w, race_event event)
{
    const char *meta = w->row->dialect == RACE_X ? META : "";
    const char *id = race_record(w)->record.task_id;
    int n = ++w->wires[1].asked;
    if (event == RACE_OTHER_WATCH && w->row->dialect == RACE_X)
        race_say(w,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"subscriptions/listen\","
                 "\"params\":{\"notifications\":{\"taskIds\":[\"%s\"]}%s}}",
                 n, id, meta);
    else
        race_say(w,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tasks/%s\",\"params\":{"
                 "\"taskId\":\"%s\"%s}}",
                 n,
                 event == RACE_OTHER_GET      ? "get"
                 : event == RACE_OTHER_CANCEL ? "cancel"
                                              : "result",
                 id, meta);
}

/* ---- which of them ---- */

static bool handler_may(const race_world *w, race_event event)
{
    return w->handler.call &&
           (event != RACE_SEND || w->handler.next_segment <= RACE_SEGMENTS);
}

static bool client_may(const race_world *w, race_event event)
{
    if (event == RACE_READ)
        return w->wires[0].count && sgi_conn_wants_input(w->session->conn);
    if (event == RACE_CANCEL)
        return !w->completed && !w->cancelled;
    return *w->question && !w->completed;
}

static bool store_may(const race_world *w, race_event event)
{
    const sgi_committer *committer = &w->handle->committer;
    if (event == RACE_TAKE)
        return !w->server.batch.op_count && !TAILQ_EMPTY(&committer->dirty);
    if (event == RACE_LOOK_UP)
        return !TAILQ_EMPTY(&committer->jobs);
    return w->server.batch.op_count > 0;
}

static bool may(const race_world *w, race_event event)
{
    switch (event) {
    case RACE_SERVE:
        return !TAILQ_EMPTY(&w->server.engine.ready);
    case RACE_TAKE:
    case RACE_ACK:
    case RACE_REFUSE:
    case RACE_LOOK_UP:
    case RACE_CRASH_LATE:
        return store_may(w, event);
    case RACE_READ:
    case RACE_CANCEL:
    case RACE_ANSWER:
        return client_may(w, event);
    case RACE_OTHER_GET:
    case RACE_OTHER_CANCEL:
    case RACE_OTHER_WATCH:
        return w->tasks > 0;
    case RACE_TICK:
        return race_next_timer(w) <= w->server.clock_ms + SOON_MS;
    case RACE_CRASH:
    case RACE_RESTART:
        return true;
    default:
        return handler_may(w, event);
    }
}

static bool is_free(race_event event)
{
    return event == RACE_SERVE || event == RACE_TAKE || event == RACE_ACK ||
           event == RACE_LOOK_UP || event == RACE_READ;
}

int race_enabled(void *user, uint8_t events[EXPLORER_EVENTS])
{
    race_world *w = user;
    int count = 0;
    for (int event = 0; event < RACE_EVENTS; event++)
        if ((is_free((race_event)event) || w->used[event] < w->row->budget[event]) &&
            may(w, (race_event)event))
            events[count++] = (uint8_t)event;
    return count;
}

static void make_so(race_world *w, race_event event)
{
    switch (event) {
    case RACE_SERVE:
        fake_host_deliver(&w->server);
        break;
    case RACE_TAKE:
        fake_store_take(&w->server);
        break;
    case RACE_ACK:
        fake_store_done(&w->server, SEGUE_OK);
        break;
    case RACE_REFUSE:
        w->broken = true;
        fake_store_done(&w->server, SEGUE_E_STORE_FULL);
        break;
    case RACE_LOOK_UP:
        fake_store_answer(&w->server, SEGUE_OK);
        break;
    case RACE_SEND:
        send_segment(w);
        break;
    case RACE_ASK:
        ask(w);
        break;
    case RACE_READ:
        race_read(w);
        break;
    case RACE_CANCEL:
    case RACE_ANSWER:
        client_acts(w, event);
        break;
    case RACE_TICK:
        race_pass(w);
        break;
    case RACE_CRASH:
    case RACE_CRASH_LATE:
        race_crash(w, event == RACE_CRASH_LATE);
        break;
    case RACE_RESTART:
        race_restart(w);
        break;
    case RACE_OTHER_GET:
    case RACE_OTHER_CANCEL:
    case RACE_OTHER_WATCH:
        other_asks(w, event);
        break;
    default:
        end_call(w, event);
    }
}

void race_step(void *user, uint8_t event)
{
    race_world *w = user;
    w->steps++;
    w->used[event]++;
    make_so(w, (race_event)event);
    race_settle(w);
    race_judge_state(w);
}

void race_replay(race_world *w, const char *path)
{
    while (*path) {
        uint8_t events[EXPLORER_EVENTS];
        size_t n = strcspn(path, " ");
        int count = race_enabled(w, events), i = 0;
        while (i < count && (strlen(race_name(events[i])) != n ||
                             memcmp(race_name(events[i]), path, n) != 0))
            i++;
        if (i == count)
            race_fail(w, "there is no way to begin: %s", path);
        race_step(w, events[i]);
        path += n + (path[n] == ' ');
    }
}

const char *race_name(uint8_t event)
{
    static const char *const names[] = {
        "serve",  "take",       "ack",       "refuse",       "look-up",     "send",
        "ask",    "complete",   "is-error",  "fail",         "give-up",     "read",
        "cancel", "answer",     "other-get", "other-cancel", "other-watch", "tick",
        "crash",  "crash-late", "restart"};
    return names[event];
}
