/* Questions that an upstream asks outside of calls: they go to the one client of the
 * upstream that answers such questions. Without such a client, roots/list is answered
 * with an empty list, and other questions are refused. */
#include "client.h"
#include "service.h"

#include "limits.h"

#include <stdlib.h>
#include <string.h>

typedef struct stray {
    upstream *up;           /* a counted reference */
    segue_request *request; /* identifies the session that has asked */
    char *key;              /* the key of the upstream's question */
    bool is_roots;
    segue_call *call; /* asks the client; NULL = the question has been answered */
    segue_timer *timer;
    int32_t refs; /* of the timer, and of the question to the client */
} stray;

static void unref(void *user)
{
    stray *s = user;
    if (--s->refs)
        return;
    upstream_unref(s->up);
    free(s->key);
    free(s);
}

static void refuse(const upstream *u, segue_request *request, const char *key,
                   const char *method, int32_t code, const char *message)
{
    if (!strcmp(method, "roots/list")) {
        segue_request_answer(request, key, "{\"roots\":[]}", 12, NULL);
        return;
    }
    log_event(SEGUE_LOG_INFO, "question_refused", u->source->config->name, "%s: %s",
              method, message);
    segue_request_answer_error(request, key, code, message, NULL, 0, NULL);
}

/* Ends the question to the client, whose answer has been passed on or comes too late. */
static void end(stray *s)
{
    segue_call *call = s->call;
    s->call = NULL;
    s->up->strays--;
    if (s->timer)
        segue_timer_cancel(s->timer);
    segue_timer_free(s->timer);
    s->timer = NULL;
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* Passes the answer of the client on. An answer that does not fit the question would
 * leave it open for ever, so the question is refused. */
static void pass_answer(const stray *s, const char *answer, size_t len)
{
    segue_error *error = NULL;
    segue_status status = segue_request_answer(s->request, s->key, answer, len, &error);
    if (status != SEGUE_OK)
        log_event(SEGUE_LOG_WARNING, "answer_unfit", s->up->source->config->name,
                  "the client's answer to a question outside of calls does not fit: %s",
                  segue_error_read(error)->message);
    if (status == SEGUE_E_INVALID || status == SEGUE_E_JSON)
        segue_request_answer_error(s->request, s->key, -32602,
                                   segue_error_read(error)->message, NULL, 0, NULL);
    segue_error_free(error);
}

static void pass(const stray *s, segue_status status, const char *answer, size_t len)
{
    json given = {answer, len};
    if (s->request != s->up->questions)
        return; /* the session that has asked has ended */
    if (status == SEGUE_OK) {
        pass_answer(s, answer, len);
    } else if (status == SEGUE_E_REMOTE) {
        char *message = json_string(json_get(given, "message"));
        json data = json_get(given, "data");
        segue_request_answer_error(
            s->request, s->key, (int32_t)json_int(json_get(given, "code"), -32603),
            message ? message : "the client refused", data.p, data.n, NULL);
        free(message);
    } else {
        refuse(s->up, s->request, s->key, s->is_roots ? "roots/list" : "a question",
               -32603, "the client has gone");
    }
}

static void on_answer(void *user, segue_call *call, segue_status status,
                      const char *answer, size_t len)
{
    stray *s = user;
    (void)call;
    if (!s->call)
        return;
    pass(s, status, answer, len);
    end(s);
}

static void on_cancel(void *user, segue_call *call)
{
    on_answer(user, call, SEGUE_E_CANCELLED, NULL, 0);
}

static void on_time(void *user)
{
    stray *s = user;
    segue_timer_free(s->timer);
    s->timer = NULL;
    if (!s->call)
        return;
    if (s->request == s->up->questions)
        refuse(s->up, s->request, s->key, s->is_roots ? "roots/list" : "a question",
               -32603, "the client did not answer in time");
    end(s);
}

static stray *make_stray(upstream *u, segue_request *request, const char *key,
                         const char *method)
{
    stray *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (stray){.up = u,
                 .request = request,
                 .key = copy_string(key),
                 .is_roots = !strcmp(method, "roots/list"),
                 .refs = 1};
    u->refs++;
    return s;
}

static void start_timer(stray *s)
{
    s->refs++;
    if (segue_timer_start(s->up->source->proxy->runtime,
                          s->is_roots ? ROOTS_WAIT_MS : QUESTION_WAIT_MS, on_time, s,
                          unref, &s->timer) != SEGUE_OK)
        s->refs--;
}

/* Hears of the end of the client. */
static void watch_call(stray *s)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    events.user = s;
    events.free_user = unref;
    events.on_cancel = on_cancel;
    s->refs++;
    if (segue_call_watch(s->call, &events) != SEGUE_OK)
        s->refs--;
}

void clients_ask(upstream *u, segue_request *request, const char *key, const char *method,
                 const char *params, size_t len)
{
    uint64_t number = clients_find_one(u, method);
    segue_call *call = NULL;
    segue_error *error = NULL;
    stray *s = NULL;
    if (u->strays >= STRAY_QUESTIONS_MAX) {
        refuse(u, request, key, method, -32603, "too many questions outside of calls");
        return;
    }
    if (number &&
        segue_client_call(u->source->service->server, number, &call, NULL) == SEGUE_OK)
        s = make_stray(u, request, key, method);
    if (!s || !s->key) {
        refuse(u, request, key, method, -32601,
               "the question belongs to no call, and there is no client, or more than "
               "one, to answer it");
        segue_call_free(call);
        if (s)
            unref(s);
        return;
    }
    s->call = call;
    u->strays++;
    watch_call(s);
    start_timer(s);
    s->refs++;
    if (segue_call_require_input(call, NULL, method, params, len, on_answer, s, unref,
                                 &error) != SEGUE_OK) {
        s->refs--;
        refuse(u, request, key, method, -32601, segue_error_read(error)->message);
        end(s);
        segue_error_free(error);
    }
    unref(s);
}
