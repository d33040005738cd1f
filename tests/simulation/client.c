/* Clients and their applications. An application merges what it is shown by the rules of
 * segue.h, stores its token with what it has handled, and goes on from there after the
 * death of its process. */
#include "simulation/sim.h"

#include "base/thresholds.h"
#include "wire/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THINK_MS (4 * 60 * 1000)
/* the shortest wait for the answer of a cancelled call with which no task is forgotten */
#define LATE_MS 20000

/* The user data of callbacks. Callbacks of a process that has died are dropped. */
typedef struct listener {
    sim_app *app;
    int life;
} listener;

static sim_app *app_of(void *user)
{
    const listener *l = user;
    return l->life == l->app->life ? l->app : NULL;
}

static bool is_twin(const sim_app *a)
{
    return a->index >= SIM_CALLS;
}

static const composition_row *row_of(const sim_app *a)
{
    return sim_row(&a->s->plan);
}

static void keep(sim_app *a)
{
    size_t len = sizeof a->token;
    segue_status status = segue_request_token(a->request, a->token, &len);
    if (status == SEGUE_OK) {
        a->token[len] = 0;
        a->has_token = true;
        a->kept_last = a->last;
        sim_tell(a->s, "keep " SIM_WHO, SIM_WHO_OF(a));
    } else if (status == SEGUE_E_NOT_RESUMABLE) {
        a->has_token = false;
    } else if (status != SEGUE_E_TERMINAL || row_of(a)->flags & ROW_TASK) {
        sim_fail(a->s, "c%d: token: %s", a->index, segue_status_name(status));
    }
}

/* ---- what it is shown ---- */

static bool may_keep(const sim_app *a)
{
    return sim_planned(a->s, SIM_deaths) && a->request && !is_twin(a);
}

/* Is this the text that ends the result of a cancelled task (2025-11-25)? Another caller
 * of the task may get it. */
static bool tells_of_cancel(const segue_segment_view *view)
{
    static const char text[] = "\"Task was cancelled\"";
    return memmem(view->data, view->data_len, text, sizeof text - 1) != NULL;
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    sim_app *a = app_of(user);
    const segue_segment_view *view = segue_segment_read(segment);
    (void)request;
    if (!a)
        return;
    int block = program_find(&a->program, view->data, view->data_len);
    uint64_t digest = block >= 0 ? sim_block_digest(&a->program, block)
                                 : judge_digest(JUDGE_DIGEST, view->data, view->data_len);
    bool says_why = block < 0 && row_of(a)->flags & ROW_SAYS_WHY;
    if (block < 0 && tells_of_cancel(view)) {
        sim_tell(a->s, "withdrawn " SIM_WHO, SIM_WHO_OF(a));
        a->withdrawn = says_why = true;
    }
    if (view->replaces && !says_why)
        sim_tell(a->s, "drop " SIM_WHO, SIM_WHO_OF(a));
    if (!says_why) /* the reason of a failure is shown as one more segment */
        sim_tell(a->s, "see " SIM_WHO " n=%d d=%llu k=%llu", SIM_WHO_OF(a), block + 1,
                 (unsigned long long)digest, (unsigned long long)view->number);
    a->last = block >= 0 ? block + 1 : a->last;
    a->granted--;
    if (may_keep(a) && dice_once_in(&a->s->dice, 2))
        keep(a);
}

static void on_progress(void *user, segue_request *request, double progress, double total,
                        const char *message)
{
    sim_app *a = app_of(user);
    (void)request;
    if (a)
        sim_check(a->s, !a->completed && total == 100 && !strcmp(message, "on") &&
                            progress >= 1 && progress <= COMPOSITION_STEPS);
}

static void on_log(void *user, segue_request *request, const char *json, size_t len)
{
    sim_app *a = app_of(user);
    (void)request;
    if (a)
        sim_wishes_hear(a, json, len);
}

/* Returns whether the task of the call survives every loss but that of the store. */
static bool outlasts(const sim_app *a)
{
    return row_of(a)->flags & ROW_TASK && sim_planned(a->s, SIM_store) != SIM_MEMORY;
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    sim_app *a = app_of(user);
    (void)request;
    if (!a)
        return;
    sim_check(a->s, !a->completed && *task_id);
    sim_tell(a->s, "task " SIM_WHO, SIM_WHO_OF(a));
    if (outlasts(a))
        sim_tell(a->s, "lasts " SIM_WHO,
                 SIM_WHO_OF(a)); /* keyless calls last from here on */
    if (may_keep(a) && dice_once_in(&a->s->dice, 2))
        keep(a);
}

/* The client has a token of the server, and no key that another process could use. */
static void on_resumable(void *user, segue_request *request)
{
    sim_app *a = app_of(user);
    (void)request;
    if (a && row_of(a)->flags & ROW_LASTS && sim_planned(a->s, SIM_keyless) &&
        sim_planned(a->s, SIM_store) != SIM_MEMORY)
        sim_tell(a->s, "lasts " SIM_WHO, SIM_WHO_OF(a));
}

static void on_status(void *user, segue_request *request, const char *status,
                      const char *message)
{
    sim_app *a = app_of(user);
    (void)request;
    (void)message;
    if (a)
        sim_tell(a->s, "status " SIM_WHO " s=%s", SIM_WHO_OF(a), status);
}

/* A question of another operation may be shown to any request of the same session. */
static void on_input(void *user, segue_request *request, const char *key,
                     const char *method, const char *params, size_t len)
{
    sim_app *a = app_of(user);
    static const char before[] = "\"message\":\"";
    (void)request;
    if (!a)
        return;
    sim_check(a->s, !a->completed && !strcmp(method, "elicitation/create") && len > 2);
    sim_check(a->s, a->question_count < SIM_CALLS * 4);
    sim_question *q = &a->questions[a->question_count++];
    const char *text = strstr(params, before);
    sim_check(a->s, text != NULL);
    text += sizeof before - 1;
    snprintf(q->text, sizeof q->text, "%.*s", (int)strcspn(text, "\""), text);
    snprintf(q->key, sizeof q->key, "%s", key);
    q->asked_ms = a->s->now_ms;
    sim_tell(a->s, "asked c%d %.*s q=%s by=%s", a->index, (int)strcspn(q->text, "/"),
             q->text, q->text, a->person);
}

/* ---- results ---- */

static uint64_t content_digest(const program *p, sgi_json result)
{
    sgi_json content = sgi_json_get(result, "content"), item;
    uint64_t digest = JUDGE_DIGEST;
    if (sgi_json_kind_of(content) != SGI_JSON_ARRAY)
        return 1; /* equals no digest */
    for (size_t at = 0; sgi_json_next_item(content, &at, &item);) {
        int block = program_find(p, item.p, item.n);
        uint64_t one = block >= 0 ? sim_block_digest(p, block) : 1;
        digest = judge_digest(digest, &one, sizeof one);
    }
    return digest;
}

static uint64_t add_field(uint64_t digest, const char *name, sgi_json value)
{
    if (!value.n)
        return digest;
    uint64_t one = judge_digest(JUDGE_DIGEST, value.p, value.n);
    return digest + judge_digest(one, name, strlen(name));
}

static uint64_t fields_digest(sgi_json result)
{
    static const char *const metas[] = {"x/k0", "x/k1", "x/k2"};
    uint64_t digest = 0;
    sgi_json meta = sgi_json_get(result, "_meta");
    char name[24];
    for (int i = 0; i < 3; i++)
        digest =
            add_field(digest, program_fields[i], sgi_json_get(result, program_fields[i]));
    for (int i = 0; meta.n && i < 3; i++) {
        snprintf(name, sizeof name, "_meta.%s", metas[i]);
        digest = add_field(digest, name, sgi_json_get(meta, metas[i]));
    }
    return digest;
}

static void tell_result(const sim_app *a, const char *json, size_t len)
{
    sgi_json result = {json, len};
    bool is_error = sgi_json_kind_of(sgi_json_get(result, "isError")) == SGI_JSON_TRUE;
    bool discards = sim_planned(a->s, SIM_discard);
    sim_tell(a->s, "result " SIM_WHO " kind=%s content=%llu fields=%llu shown=%d",
             SIM_WHO_OF(a), is_error ? "error" : "ok",
             discards ? 0ull : (unsigned long long)content_digest(&a->program, result),
             (unsigned long long)fields_digest(result), !is_twin(a));
}

static void tell_failure(const sim_app *a, segue_status status, int32_t code)
{
    bool is_remote = status == SEGUE_E_REMOTE || status == SEGUE_E_INCOMPLETE;
    if (is_remote && code == PROGRAM_CODE)
        sim_tell(a->s, "result " SIM_WHO " kind=fail", SIM_WHO_OF(a));
    else
        sim_tell(a->s, "result " SIM_WHO " kind=failed code=%s,%d", SIM_WHO_OF(a),
                 segue_status_name(status), (int)code);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    sim_app *a = app_of(user);
    (void)request;
    if (!a)
        return;
    bool ends_well = program_end(&a->program)->kind == STEP_COMPLETE;
    sim_check(a->s, !sim_planned(a->s, SIM_credit) || a->granted >= 0 ||
                        status != SEGUE_OK || a->cancelled);
    a->completed = true;
    if (status == SEGUE_OK)
        sim_note(a->s, "result", json, len);
    else
        sim_note(a->s, "failed", segue_error_read(error)->message,
                 strlen(segue_error_read(error)->message));
    if (status != SEGUE_OK)
        tell_failure(a, status, segue_error_read(error)->rpc_code);
    else if (a->withdrawn)
        sim_tell(a->s, "result " SIM_WHO " kind=failed code=said", SIM_WHO_OF(a));
    else if (row_of(a)->flags & ROW_SAYS_WHY && strstr(json, "\"isError\":true") &&
             (!ends_well || content_digest(&a->program, (sgi_json){json, len}) == 1 ||
              !program_end(&a->program)->is_error))
        sim_tell(a->s, "result " SIM_WHO " kind=%s code=said", SIM_WHO_OF(a),
                 program_end(&a->program)->kind == STEP_FAIL ? "fail" : "failed");
    else
        tell_result(a, json, len);
}

static void free_listener(void *user)
{
    const sim_app *a = app_of(user);
    if (a)
        sim_check(a->s, a->completed);
    free(user);
}

/* ---- calling ---- */

static void listen_to(sim_app *a, segue_request_events *events)
{
    listener *l = malloc(sizeof *l);
    *l = (listener){a, ++a->life};
    *events = SEGUE_REQUEST_EVENTS_INIT;
    events->user = l;
    events->free_user = free_listener;
    events->on_segment = on_segment;
    events->on_progress = on_progress;
    events->on_log = on_log;
    events->on_input = on_input;
    events->on_task = on_task;
    events->on_status = on_status;
    events->on_resumable = on_resumable;
    events->on_complete = on_complete;
}

/* A client that does not wait long enough for the answer of a cancelled call never learns
 * of its task. Over HTTP, a client of 2026-07-28 does not wait: it cancels the call by
 * closing its stream. When the answer, which names the task, is under way, the server has
 * no such stream any more. It knows the call only by its key. Servers without a shared
 * store are sent none. */
static bool may_orphan(const sim_app *a)
{
    const sim *s = a->s;
    bool waits = SGI_THRESHOLD(late_ms) >= LATE_MS &&
                 SGI_THRESHOLD(late_calls_max) >= 2 * SIM_CALLS;
    bool closes = sim_planned(s, SIM_http) && row_of(a)->era == SEGUE_ERA_MODERN;
    bool has_key =
        !sim_planned(s, SIM_keyless) && sim_planned(s, SIM_store) != SIM_MEMORY;
    return !has_key && (closes || !waits);
}

static void tell_beginning(sim_app *a)
{
    bool lasts = outlasts(a) && !sim_planned(a->s, SIM_keyless);
    if (a->has_token && is_twin(a)) {
        sim_tell(a->s, "anew " SIM_WHO " from=%d at=k%d", SIM_WHO_OF(a), a->kept_last,
                 a->client->index);
    } else if (a->has_token) {
        sim_tell(a->s, "back " SIM_WHO " at=k%d", SIM_WHO_OF(a), a->client->index);
    } else {
        a->attempt++;
        sim_tell(a->s,
                 "op %d.%d person=%s lasts=%d restarts=%d numbered=%d named=%d "
                 "orphan=%d gap=%d",
                 a->index % SIM_CALLS, a->attempt, a->person, lasts,
                 (int)sim_planned(a->s, SIM_restartable),
                 (row_of(a)->flags & ROW_NUMBERED) != 0,
                 (row_of(a)->flags & ROW_NAMES_TASK) != 0, may_orphan(a), a->s->gap);
        sim_tell(a->s, "anew " SIM_WHO " at=k%d", SIM_WHO_OF(a), a->client->index);
    }
}

/* Starts the request, or resumes it with the stored token. */
static void begin(sim_app *a)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events events;
    segue_session *session = a->client->session;
    char params[64];
    tell_beginning(a);
    sim_wishes_tell(a);
    int len = snprintf(params, sizeof params,
                       "{\"name\":\"t\",\"arguments\":{\"n\":%d,\"a\":%d}}",
                       a->index % SIM_CALLS, a->attempt);
    options.credit = a->granted = sim_planned(a->s, SIM_credit);
    options.discard = sim_planned(a->s, SIM_discard) != 0;
    sim_wishes_set(a, &options);
    listen_to(a, &events);
    a->question_count = 0;
    a->started = true;
    a->completed = a->withdrawn = false;
    a->last = a->has_token ? a->kept_last : 0;
    segue_status status =
        a->has_token ? segue_request_resume(session, a->token, &options, &events,
                                            &a->request, NULL)
                     : segue_request_start(session, "tools/call", params, (size_t)len,
                                           &options, &events, &a->request, NULL);
    sim_check(a->s, status == SEGUE_OK);
    if (!a->has_token)
        keep(a);
}

/* A second process resumes the token of a call. */
static void begin_twin(sim_app *of)
{
    sim_app *a = &of->s->apps[of->index + SIM_CALLS];
    if (a->request || !of->has_token || of->attempt == 0)
        return;
    a->attempt = of->attempt;
    a->kept_last = of->kept_last;
    a->has_token = true;
    memcpy(a->token, of->token, sizeof a->token);
    begin(a);
}

void sim_client_sends(const sim_client *client, int messages)
{
    if (messages && !sim_planned(client->s, SIM_tiny))
        sim_tell(client->s, "sent k%d n=%d", client->index, messages);
}

void sim_client_start(sim_client *client)
{
    sim *s = client->s;
    const composition_row *row = sim_row(&s->plan);
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    client->runtime = sim_runtime(s, &client->mem, NULL, client);
    options.capabilities = "{\"elicitation\":{}}";
    options.era = row->era;
    options.no_tasks = row->no_tasks;
    options.dialects_off = row->client_off;
    options.dialects_on = row->client_on;
    options.no_idempotency = sim_planned(s, SIM_keyless) != 0;
    options.max_reconnects = 1000;
    options.reconnect_timeout_ms = -1;
    options.request_timeout_ms = SIM_REQUEST_MS; /* people take their time */
    sim_check(s, segue_session_open(client->runtime, s->carrier->open(client), &options,
                                    sim_watch_events(client), &client->session,
                                    NULL) == SEGUE_OK);
    for (int i = 0; i < SIM_CALLS; i++) {
        sim_app *a = &s->apps[i];
        if (a->client != client || a->completed)
            continue;
        begin(a);
        if (a->has_token && client->index % 2 == 0 && s->left[SIM_twice] &&
            sim_planned(s, SIM_deaths) > s->left[SIM_deaths]) {
            s->left[SIM_twice]--;
            begin_twin(a);
        }
    }
}

/* What was written to a pipe counts as delivered (R-975-17), and without a key the server
 * then deletes the call. So the death of the process that has the result loses it. */
static void tell_death(const sim_app *a)
{
    sim_tell(a->s, "gone c%d", a->index);
    if (row_of(a)->flags & ROW_LASTS && sim_planned(a->s, SIM_keyless) &&
        !sim_planned(a->s, SIM_http))
        sim_tell(a->s, "had " SIM_WHO, SIM_WHO_OF(a));
}

void sim_client_die(sim_client *client)
{
    sim *s = client->s;
    for (int i = 0; i < 2 * SIM_CALLS; i++) {
        sim_app *a = &s->apps[i];
        if (a->client != client)
            continue;
        if (!a->completed)
            a->life++;
        if (is_twin(a))
            a->completed = true; /* it does not come back */
        if (a->started && !a->completed)
            tell_death(a);
        if (is_twin(a) && a->request)
            sim_tell(s, "gone c%d", a->index);
        segue_request_free(a->request);
        a->request = NULL;
    }
    if (client->hushed) /* its next process asks for no level */
        sim_tell(s, "hush k%d level=0 kept=0", client->index);
    segue_session_free(client->session);
    client->session = NULL;
    s->carrier->lose_client(client);
    sim_end_runtime(client->runtime);
    client->runtime = NULL;
    if (client->mem.live)
        sim_fail(s, "client %d leaves %zu bytes in %zu blocks", client->index,
                 (size_t)client->mem.live, (size_t)client->mem.blocks);
}

void sim_client_end(sim_client *client)
{
    segue_session_close(client->session);
    for (int i = 0; i < 8; i++)
        segue_runtime_dispatch(client->runtime, 0, 0, NULL);
    sim_client_die(client);
}

/* ---- turns ---- */

static void answer(sim_app *a)
{
    char yes[200];
    const sim_question *q = &a->questions[--a->question_count];
    int len =
        snprintf(yes, sizeof yes,
                 "{\"action\":\"accept\",\"content\":{\"for\":\"%s\",\"by\":\"%s\"}}",
                 q->text, a->person);
    segue_status status =
        segue_request_answer(a->request, q->key, yes, (size_t)len, NULL);
    sim_note(a->s, "answer", q->key, strlen(q->key));
    sim_note(a->s, "answer", segue_status_name(status),
             strlen(segue_status_name(status)));
    sim_check(a->s, status == SEGUE_OK || status == SEGUE_E_NOT_FOUND ||
                        status == SEGUE_E_TERMINAL);
}

/* A person answers before the request times out. */
static bool waits_too_long(const sim_app *a)
{
    return a->s->now_ms - a->questions[0].asked_ms > THINK_MS;
}

static void app_turn(sim_app *a)
{
    sim *s = a->s;
    if (a->question_count &&
        (dice_once_in(&s->dice, (uint32_t)sim_planned(s, SIM_thinks)) ||
         waits_too_long(a)))
        answer(a);
    if (sim_planned(s, SIM_credit) && dice_once_in(&s->dice, 5)) {
        int64_t n = 1 + dice_roll(&s->dice, 4);
        a->granted += n;
        sim_check(s, segue_request_grant(a->request, n) == SEGUE_OK);
    }
    if (a->index < sim_planned(s, SIM_cancels) && !a->cancelled &&
        dice_once_in(&s->dice, (uint32_t)sim_planned(s, SIM_hasty))) {
        a->cancelled = true;
        sim_tell(s, "cancel " SIM_WHO, SIM_WHO_OF(a));
        sim_check(s, segue_request_cancel(a->request) == SEGUE_OK);
    }
}

bool sim_client_turn(sim_client *client)
{
    sim *s = client->s;
    for (int i = 0; i < 2 * SIM_CALLS; i++)
        if (s->apps[i].client == client && s->apps[i].request && !s->apps[i].completed)
            app_turn(&s->apps[i]);
    sim_watch_turn(client);
    sim_wishes_turn(client);
    return sim_dispatch(s, client->runtime);
}

bool sim_clients_done(const sim *s)
{
    for (int i = 0; i < 2 * SIM_CALLS; i++)
        if (s->apps[i].client && s->apps[i].started && !s->apps[i].completed)
            return false;
    return true;
}
