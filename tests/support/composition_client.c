/* The application of the client. It makes calls, receives segments and merges them only
 * by the rules of segue.h. It saves the merged result and the token together, and
 * continues from them after a restart. */
#include "support/composition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The user data of callbacks. Callbacks of a process that has died are dropped. */
typedef struct listener {
    app *app;
    int life;
} listener;

static app *app_of(void *user)
{
    const listener *l = user;
    return l->life == l->app->life ? l->app : NULL;
}

static void keep(app *a)
{
    size_t len = sizeof a->token;
    segue_status status = segue_request_token(a->request, a->token, &len);
    if (status == SEGUE_OK) {
        a->token[len] = 0;
        a->has_token = true;
        a->kept = a->now;
    } else if (status == SEGUE_E_NOT_RESUMABLE) {
        a->has_token = false;                /* the server is now known to keep nothing */
    } else if (status != SEGUE_E_TERMINAL) { /* the end of the request will be delivered
                                              * soon */
        composition_fail(a->c, "token: %s", segue_status_name(status));
    }
}

/* ---- what it is shown ---- */

static void place_block(app *a, const segue_segment *segment, int block)
{
    composition *c = a->c;
    bool replaces = segue_segment_read(segment)->replaces;
    uint64_t number = segue_segment_read(segment)->number;
    uint64_t voided = program_voided(&a->program, (uint64_t)block + 1);
    if (replaces)
        a->now.count = 0;
    if (block < a->now.last)
        composition_fail(c, "call %d: block %d after %d", a->index, block + 1,
                         a->now.last);
    /* the blocks in between were left out, not replaced */
    if (block != a->now.last && (uint64_t)block != voided)
        composition_fail(c, "call %d: block %d after %d, without what is between",
                         a->index, block + 1, a->now.last);
    bool is_void = (a->now.count && (uint64_t)a->now.blocks[0] < voided) ||
                   (!a->now.count && (uint64_t)block != voided);
    /* A response of SEP-1905 shows only the last of its replacements. */
    if (is_void && !(c->plan.row->flags & ROW_SAYS_WHY))
        composition_fail(c, "call %d: block %d, %d shown, %d replaced", a->index,
                         block + 1, a->now.count, (int)voided);
    if ((c->plan.row->flags & ROW_NUMBERED) && number != (uint64_t)block + 1)
        composition_fail(c, "call %d: block %d is number %d", a->index, block + 1,
                         (int)number);
    if (number <= a->now.last_number || (number != a->now.last_number + 1 && !replaces))
        composition_fail(c, "call %d: number %d after %d", a->index, (int)number,
                         (int)a->now.last_number);
    if (segue_segment_read(segment)->index != (uint64_t)a->now.count && !is_void)
        composition_fail(c, "call %d: block %d has index %d, not %d", a->index, block + 1,
                         (int)segue_segment_read(segment)->index, a->now.count);
    a->now.blocks[a->now.count++] = block;
    a->now.last = block + 1;
    a->now.last_number = number;
}

/* A call that fails may show its error as the last segment. */
static bool may_say_why(const app *a)
{
    bool fails = program_end(&a->program)->kind != STEP_COMPLETE ||
                 (a->c->kills_done && !a->c->plan.restartable) || a->cancelled;
    return (a->c->plan.row->flags & ROW_SAYS_WHY) && fails && !a->was_told_why;
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    app *a = app_of(user);
    const segue_segment_view *view = segue_segment_read(segment);
    const char *json = view->data;
    (void)request;
    if (!a)
        return;
    composition_check(a->c, !a->completed);
    int block = program_find(&a->program, json, view->data_len);
    if (block >= 0)
        place_block(a, segment, block);
    else if (!may_say_why(a))
        composition_fail(a->c, "call %d: what is '%.100s'?", a->index, json);
    a->was_told_why = block < 0;
    if (a->seen < (uint64_t)(block + 1))
        a->seen = (uint64_t)(block + 1);
    a->granted--; /* the value is below zero only when the request does not end with a
                   * result */
    if (a->c->plan.restarts && a->request && dice_once_in(&a->c->dice, 2))
        keep(a);
}

static void on_progress(void *user, segue_request *request, double progress, double total,
                        const char *message)
{
    app *a = app_of(user);
    (void)request;
    if (!a)
        return;
    composition_check(a->c, !a->completed && total == 100 && !strcmp(message, "on"));
    composition_check(a->c, progress >= 1 && progress <= COMPOSITION_STEPS);
}

static void on_log(void *user, segue_request *request, const char *json, size_t len)
{
    app *a = app_of(user);
    (void)request;
    if (a)
        composition_check(a->c, !a->completed && len && strstr(json, "\"step\""));
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    app *a = app_of(user);
    (void)request;
    if (!a)
        return;
    composition_check(a->c, !a->completed && *task_id);
    if (a->request && a->c->plan.restarts && dice_once_in(&a->c->dice, 2))
        keep(a);
}

static void on_status(void *user, segue_request *request, const char *status,
                      const char *message)
{
    app *a = app_of(user);
    (void)request;
    if (a && (a->completed || !*status))
        composition_fail(a->c, "call %d: status '%s', '%s', completed %d", a->index,
                         status, message ? message : "", a->completed);
}

/* Reads a question as its person sees it. The question must belong to a call of that
 * person. */
static void read_question(const app *a, const char *params, question *q)
{
    static const char before[] = "\"message\":\"";
    int index = -1;
    const char *text = strstr(params, before);
    composition_check(a->c, text != NULL);
    text += sizeof before - 1;
    size_t len = strcspn(text, "\"");
    composition_check(a->c, len < sizeof q->text);
    memcpy(q->text, text, len);
    q->text[len] = 0;
    composition_check(a->c, sscanf(q->text, "call %d attempt", &index) == 1);
    composition_check(a->c, index >= 0 && index < a->c->plan.calls);
    if (strcmp(a->c->apps[index].person, a->person) != 0)
        composition_fail(a->c, "call %d of %s: %s is asked", a->index, a->person,
                         q->text);
}

static void on_input(void *user, segue_request *request, const char *key,
                     const char *method, const char *params, size_t len)
{
    app *a = app_of(user);
    (void)request;
    if (!a)
        return;
    composition_check(a->c, !a->completed && !strcmp(method, "elicitation/create"));
    composition_check(a->c, len > 2 && *params == '{');
    composition_check(a->c, a->question_count < COMPOSITION_CALLS * 4);
    read_question(a, params, &a->questions[a->question_count]);
    snprintf(a->questions[a->question_count++].key, sizeof a->questions[0].key, "%s",
             key);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    app *a = app_of(user);
    (void)request;
    if (!a)
        return;
    composition_check(a->c, !a->completed);
    /* A request that is cancelled waits for no credit, even when its result came
     * first. */
    composition_check(a->c, !a->c->plan.credit || a->granted >= 0 || status != SEGUE_OK ||
                                a->cancelled);
    a->completed = true;
    a->status = status;
    a->rpc_code = segue_error_read(error)->rpc_code;
    if (status != SEGUE_OK)
        composition_trace(a->c, "!!", segue_error_read(error)->message,
                          strlen(segue_error_read(error)->message));
    a->result = json ? malloc(len + 1) : NULL;
    a->result_len = json ? len : 0;
    if (json)
        memcpy(a->result, json, len + 1);
}

static void free_listener(void *user)
{
    app *a = app_of(user);
    if (a)
        composition_check(a->c, a->completed);
    free(user);
}

/* ---- calling ---- */

static void listen_to(app *a, segue_request_events *events)
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
    events->on_complete = on_complete;
}

/* Starts the request, or resumes it with the saved token. */
static void ask(app *a)
{
    composition *c = a->c;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events events;
    char params[64];
    segue_session *session = c->sessions[a->index % c->plan.people];
    a->attempt += !a->has_token;
    int len = snprintf(params, sizeof params,
                       "{\"name\":\"t\",\"arguments\":{\"n\":%d,\"a\":%d}}", a->index,
                       a->attempt);
    options.credit = a->granted = c->plan.credit;
    options.discard = c->plan.discard;
    options.log_level = "debug";
    listen_to(a, &events);
    a->question_count = 0;
    a->started = true;
    a->now = a->has_token ? a->kept : (shown){0};
    a->was_refused = a->was_refused && a->has_token;
    a->lasts = a->lasts && a->has_token;
    a->was_told_why = false;
    segue_status status =
        a->has_token ? segue_request_resume(session, a->token, &options, &events,
                                            &a->request, NULL)
                     : segue_request_start(session, "tools/call", params, (size_t)len,
                                           &options, &events, &a->request, NULL);
    composition_check(c, status == SEGUE_OK);
    if (!a->has_token) {
        a->seen = 0; /* a new operation starts, and the application has received nothing
                      * of it */
        keep(a);
    }
}

static void open_session(composition *c, int person)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.reconnect_timeout_ms = 3600 * 1000; /* a slow line is no dead server */
    options.capabilities = "{\"elicitation\":{}}";
    options.era = c->plan.row->era;
    options.no_tasks = c->plan.row->no_tasks;
    options.dialects_off = c->plan.row->client_off;
    options.dialects_on = c->plan.row->client_on;
    options.max_reconnects = 1000;
    composition_check(c, segue_session_open(c->client_runtime,
                                            c->carrier->open(c, person), &options, NULL,
                                            &c->sessions[person], NULL) == SEGUE_OK);
}

void client_start(composition *c)
{
    c->client_runtime = composition_runtime(c, 1);
    for (int i = 0; i < c->plan.people; i++)
        open_session(c, i);
    for (int i = 0; i < c->plan.calls; i++)
        if (!c->apps[i].completed)
            ask(&c->apps[i]);
}

static void let_go(composition *c)
{
    for (int i = 0; i < c->plan.calls; i++) {
        segue_request_free(c->apps[i].request);
        c->apps[i].request = NULL;
    }
    for (int i = 0; i < c->plan.people; i++) {
        segue_session_free(c->sessions[i]);
        c->sessions[i] = NULL;
    }
}

void client_die(composition *c)
{
    for (int i = 0; i < c->plan.calls; i++)
        if (!c->apps[i].completed)
            c->apps[i].life++;
    let_go(c);
    c->carrier->lose(c);
    segue_runtime_free(c->client_runtime);
    c->client_runtime = NULL;
    if (c->client_mem.live)
        composition_fail(c, "the client leaves %zu bytes in %zu blocks",
                         (size_t)c->client_mem.live, (size_t)c->client_mem.blocks);
}

void client_end(composition *c)
{
    for (int i = 0; i < c->plan.people; i++)
        segue_session_close(c->sessions[i]);
    for (int i = 0; i < 8; i++)
        segue_runtime_dispatch(c->client_runtime, 0, 0, NULL);
    client_die(c);
}

/* ---- turns ---- */

static void answer(app *a)
{
    char yes[200];
    const question *q = &a->questions[--a->question_count];
    int len =
        snprintf(yes, sizeof yes,
                 "{\"action\":\"accept\",\"content\":{\"for\":\"%s\",\"by\":\"%s\"}}",
                 q->text, a->person);
    segue_status status =
        segue_request_answer(a->request, q->key, yes, (size_t)len, NULL);
    /* The request has ended, and its end will be delivered soon. */
    composition_check(a->c, status == SEGUE_OK || status == SEGUE_E_NOT_FOUND ||
                                status == SEGUE_E_TERMINAL);
}

static void grant(app *a)
{
    int64_t n = 1 + dice_roll(&a->c->dice, 4);
    a->granted += n;
    composition_check(a->c, segue_request_grant(a->request, n) == SEGUE_OK);
}

/* Checks the token of the call. Before the server is known there is a token. When the
 * server has said how the call can be resumed, there is another token. */
static void look_whether_it_lasts(app *a)
{
    char token[sizeof a->token];
    size_t len = sizeof token;
    if (!(a->c->plan.row->flags & ROW_LASTS) || a->lasts)
        return;
    segue_status status = segue_request_token(a->request, token, &len);
    a->lasts = a->was_refused && status == SEGUE_OK;
    a->was_refused |= status == SEGUE_E_NOT_RESUMABLE;
}

void client_turn(composition *c)
{
    for (int i = 0; i < c->plan.calls; i++) {
        app *a = &c->apps[i];
        if (a->completed || !a->request)
            continue;
        look_whether_it_lasts(a);
        if (a->question_count && dice_once_in(&c->dice, (uint32_t)c->plan.thinks))
            answer(a);
        if (c->plan.credit && dice_once_in(&c->dice, 5))
            grant(a);
        if (c->plan.cancels && i == 0 && !a->cancelled && dice_once_in(&c->dice, 60)) {
            a->cancelled = true;
            composition_check(c, segue_request_cancel(a->request) == SEGUE_OK);
        }
    }
}

bool client_is_done(const composition *c)
{
    for (int i = 0; i < c->plan.calls; i++)
        if (!c->apps[i].completed)
            return false;
    return true;
}

/* ---- the end ---- */

/* Checks that the received segments equal the content of the result. */
static void judge_shown(const app *a)
{
    int from = (int)program_voided(&a->program, (uint64_t)a->program.block_count + 1);
    int want = a->program.block_count - from;
    int stale = a->now.count && a->now.blocks[0] < from ? a->now.count : 0;
    if (stale && !want)
        return; /* the last replacement has no segment that could show it */
    if (a->now.count != want || (want && a->now.blocks[0] != from))
        composition_fail(a->c, "call %d: %d blocks are shown, not %d", a->index,
                         a->now.count, want);
}

static bool may_fail(const app *a)
{
    const composition *c = a->c;
    bool lasts = (c->plan.row->flags & ROW_TASK) || a->lasts;
    if (a->cancelled &&
        (a->status == SEGUE_E_CANCELLED || a->status == SEGUE_E_INCOMPLETE))
        return true; /* the call had ended before the cancel came */
    if (!lasts)
        return c->cuts_done || c->kills_done || c->restarts_done;
    return c->kills_done && !c->plan.restartable;
}

static void judge(const app *a)
{
    char why[300];
    step_kind kind = program_end(&a->program)->kind;
    bool is_error = a->status == SEGUE_E_REMOTE || a->status == SEGUE_E_INCOMPLETE;
    int32_t code = kind == STEP_FAIL ? PROGRAM_CODE : -32603;
    if (a->status != SEGUE_OK && may_fail(a))
        return;
    if (a->status == SEGUE_OK && (a->c->plan.row->flags & ROW_SAYS_WHY) &&
        (kind != STEP_COMPLETE || may_fail(a)) && strstr(a->result, "\"isError\":true"))
        return; /* the error arrived as a result that has the error as its last block */
    if (kind == STEP_COMPLETE && a->status == SEGUE_OK && a->result) {
        if (!program_judge(&a->program, a->result, a->result_len, a->c->plan.discard, why,
                           sizeof why))
            composition_fail(a->c, "call %d: %s", a->index, why);
        judge_shown(a);
    } else if (kind == STEP_COMPLETE || !is_error || a->rpc_code != code) {
        composition_fail(a->c, "call %d ended with %s (%d), its handler with %d",
                         a->index, segue_status_name(a->status), (int)a->rpc_code,
                         (int)kind);
    }
}

void client_judge(composition *c)
{
    for (int i = 0; i < c->plan.calls; i++)
        judge(&c->apps[i]);
    if (!c->faults)
        return;
    composition_check(c, fault_store_changed(c->faults) == 0);
    for (size_t i = 0; fault_store_task(c->faults, i); i++)
        composition_check(c, fault_store_finals(c->faults, i) <= 1);
}
