/* The server and its one tool, whose handler plays the program of the call. A handler
 * runs inside its callback and in the loop of the run, until it waits for time, for room
 * or for an answer. A handler that runs again after a crash begins after the stored
 * segments. */
#include "support/composition.h"

#include "engine/server/server.h"

#include <segue/segue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    job *next;
    composition *c;
    const app *app;
    segue_call *call;
    program_place at;
    int64_t wakes;
    bool blocked; /* the handler waits for room */
    bool asking;
    int asked;   /* number of its last question */
    int attempt; /* the attempt of the client that this run belongs to */
    bool cancelled;
    bool over;
};

/* ---- steps ---- */

static void blocks_into(job *j, segue_content *content, const program_step *s, int from)
{
    const program *p = &j->app->program;
    for (int i = from; i < s->count; i++) {
        const program_block *b = &p->blocks[s->first + i];
        segue_status status =
            b->is_text ? segue_content_add_text(content, b->bytes, b->len, NULL)
                       : segue_content_add_json(content, b->bytes, b->len, NULL);
        composition_check(j->c, status == SEGUE_OK);
    }
}

static segue_status send_blocks(job *j, const program_step *s)
{
    const program_block *b = &j->app->program.blocks[s->first];
    segue_content *content;
    if (s->count == 1 && b->is_text)
        return segue_call_send_text(j->call, b->bytes, b->len, NULL);
    composition_check(j->c, segue_content_new(j->c->server_runtime, &content) == 0);
    blocks_into(j, content, s, j->at.block);
    segue_status status = segue_call_send(j->call, content, NULL);
    segue_content_free(content);
    return status;
}

static segue_status complete(job *j, const program_step *s)
{
    segue_content *content;
    composition_check(j->c, segue_content_new(j->c->server_runtime, &content) == 0);
    blocks_into(j, content, s, j->at.block);
    if (*s->json)
        segue_content_set_structured(content, s->json, strlen(s->json), NULL);
    segue_content_set_error(content, s->is_error);
    segue_status status = segue_call_complete(j->call, content, NULL);
    segue_content_free(content);
    return status;
}

/* Writes a question that names the operation and the step. A run after a crash asks the
 * same question again. */
static void write_question(const job *j, int number, char text[QUESTION_TEXT])
{
    snprintf(text, QUESTION_TEXT, "call %d attempt %d step %d", j->app->index, j->attempt,
             number);
}

/* Checks that an answer belongs to this question, to this operation, and to the person
 * who made the call. A yes to question A must never approve B. */
static void judge_answer(const job *j, const char *json, size_t len)
{
    char text[QUESTION_TEXT], want[2 * QUESTION_TEXT];
    write_question(j, j->asked, text);
    int n = snprintf(want, sizeof want,
                     "{\"action\":\"accept\",\"content\":{\"for\":\"%s\",\"by\":\"%s\"}}",
                     text, j->app->person);
    if (len != (size_t)n || memcmp(json, want, len) != 0)
        composition_fail(j->c, "%s was answered by %.*s", want, (int)len, json);
}

static void on_input(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len)
{
    job *j = user;
    (void)call;
    if (!j->over && status == SEGUE_OK)
        judge_answer(j, json, len);
    if (!j->over && status != SEGUE_OK)
        composition_check(j->c, status == SEGUE_E_CANCELLED || status == SEGUE_E_REMOTE);
    j->asking = false;
}

static segue_status ask(job *j, const program_step *s)
{
    char key[16], text[QUESTION_TEXT], params[200];
    write_question(j, s->number, text);
    int len = snprintf(params, sizeof params,
                       "{\"message\":\"%s\",\"requestedSchema\":"
                       "{\"type\":\"object\",\"properties\":{}}}",
                       text);
    snprintf(key, sizeof key, "k%d", s->number);
    j->asking = true;
    j->asked = s->number;
    segue_status status = segue_call_require_input(
        j->call, key, "elicitation/create", params, (size_t)len, on_input, j, NULL, NULL);
    if (status != SEGUE_OK)
        j->asking = false;
    return status == SEGUE_E_UNSUPPORTED ? SEGUE_OK : status;
}

static segue_status checkpoint(job *j, const program_step *s)
{
    char data[16];
    int len = snprintf(data, sizeof data, "%d", s->number);
    segue_status status = segue_call_checkpoint(j->call, data, (size_t)len + 1, NULL);
    return status == SEGUE_E_STATE ? SEGUE_OK : status;
}

static segue_status defer(job *j)
{
    segue_status status = segue_call_defer(j->call, 0, NULL);
    bool may_be = status == SEGUE_E_UNSUPPORTED || status == SEGUE_E_STATE;
    return may_be ? SEGUE_OK : status;
}

static segue_status play_step(job *j, const program_step *s)
{
    char text[32];
    switch (s->kind) {
    case STEP_SEND:
        return send_blocks(j, s);
    case STEP_REPLACE:
        return segue_call_replace(j->call, NULL);
    case STEP_FIELD:
        return segue_call_set_field(j->call, program_fields[s->number], s->json,
                                    strlen(s->json), NULL);
    case STEP_PROGRESS:
        return segue_call_progress(j->call, s->number + 1, 100, "on", NULL);
    case STEP_LOG:
        return segue_call_log(j->call, "info", s->json, strlen(s->json), NULL);
    case STEP_STATUS:
        snprintf(text, sizeof text, "at %d", s->number);
        return segue_call_set_status(j->call, text, NULL);
    case STEP_ASK:
        return ask(j, s);
    case STEP_CHECKPOINT:
        return checkpoint(j, s);
    case STEP_PAUSE:
        j->wakes = j->c->clock_ms + s->ms;
        return SEGUE_OK;
    case STEP_DEFER:
        return defer(j);
    case STEP_COMPLETE:
        return complete(j, s);
    case STEP_FAIL:
        return segue_call_fail(j->call, PROGRAM_CODE, "no", "{\"n\":1}", 7, NULL);
    default:
        return SEGUE_OK;
    }
}

static void finish(job *j)
{
    segue_call_free(j->call);
    j->over = true;
}

/* Plays one step; returns false when the program waits or is over. */
static bool play_one(job *j)
{
    const program_step *s = &j->app->program.steps[j->at.step];
    segue_status status = play_step(j, s);
    if (status == SEGUE_E_WOULD_BLOCK) {
        j->blocked = true;
        return false;
    }
    if (status == SEGUE_E_TERMINAL || s->kind >= STEP_COMPLETE) {
        finish(j);
        return false;
    }
    if (status != SEGUE_OK && !j->c->dead)
        composition_fail(j->c, "step %d of call %d: %s", j->at.step, j->app->index,
                         segue_status_name(status));
    j->at = (program_place){j->at.step + 1, 0};
    return !j->asking && j->wakes <= j->c->clock_ms;
}

static bool may_play(const job *j)
{
    return !j->over && !j->blocked && !j->asking && j->wakes <= j->c->clock_ms;
}

static bool play(job *j)
{
    int steps = 1 + (int)dice_roll(&j->c->dice, (uint32_t)j->c->plan.batch);
    if (!may_play(j))
        return false;
    if (j->cancelled && dice_once_in(&j->c->dice, 2)) {
        finish(j); /* otherwise the program continues */
        return true;
    }
    while (steps-- && play_one(j))
        ;
    return true;
}

/* ---- the tool ---- */

static void on_cancel(void *user, segue_call *call)
{
    (void)call;
    ((job *)user)->cancelled = true;
}

static void on_drain(void *user, segue_call *call)
{
    (void)call;
    ((job *)user)->blocked = false;
}

/* Finds the step at which a new run continues. All published segments were durable
 * (R-C-2). The program made the last checkpoint before the last segment or soon after
 * this segment. */
static void find_place(job *j)
{
    uint64_t last = 0;
    const void *data = NULL;
    size_t len = 0;
    if (segue_call_resumed(j->call, &last, &data, &len) != SEGUE_OK)
        return;
    composition_check(j->c, j->c->plan.restartable && j->c->kills_done);
    if (last < j->app->seen)
        composition_fail(j->c, "call %d: %d segments are stored, %d were seen",
                         j->app->index, (int)last, (int)j->app->seen);
    composition_check(j->c, last <= (uint64_t)j->app->program.block_count);
    j->at = program_after(&j->app->program, last);
    int made = -1, least = -1;
    for (int i = 0; i < j->at.step; i++)
        if (j->app->program.steps[i].kind == STEP_CHECKPOINT)
            least = i;
    if (data)
        made = atoi(data);
    if (j->c->plan.row->flags & ROW_TASK)
        composition_check(j->c, made >= least);
}

static void on_call(void *user, segue_call *call)
{
    composition *c = user;
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    int64_t n = 0, attempt = 0;
    job *j = calloc(1, sizeof *j);
    composition_check(c, segue_call_argument_int(call, "n", &n) == SEGUE_OK);
    composition_check(c, segue_call_argument_int(call, "a", &attempt) == SEGUE_OK);
    composition_check(c, n >= 0 && n < c->plan.calls);
    j->c = c;
    j->app = &c->apps[n];
    j->attempt = (int)attempt;
    composition_check(c, !strcmp(segue_call_principal(call), j->app->person));
    j->call = call;
    j->next = c->jobs;
    c->jobs = j;
    find_place(j);
    events.user = j;
    events.on_cancel = on_cancel;
    events.on_drain = on_drain;
    composition_check(c, segue_call_watch(call, &events) == SEGUE_OK);
    play(j);
}

static void add_tool(composition *c)
{
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.user = c;
    options.on_call = on_call;
    options.flags = SEGUE_TOOL_INCREMENTAL | c->plan.row->tool_flags;
    if (c->plan.restartable)
        options.flags |= SEGUE_TOOL_RESTARTABLE;
    options.task = c->plan.row->task;
    options.promote_after_ms = c->plan.row->promote_after_ms;
    composition_check(c, segue_server_add(c->server, SEGUE_ITEM_TOOL, tool,
                                          sizeof tool - 1, &options, NULL) == SEGUE_OK);
}

/* ---- the server ---- */

static segue_status whose(void *user, segue_transport *transport, const char **principal)
{
    composition *c = user;
    *principal = c->carrier->whose(c, transport);
    return *principal ? SEGUE_OK : SEGUE_E_CLOSED;
}

void server_start(composition *c)
{
    static const char key[32] = "a key of all servers of one run";
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    c->server_runtime = composition_runtime(c, 0);
    if (c->dead)
        fault_store_revive(c->faults);
    c->dead = 0;
    options.name = "composition";
    options.user = c;
    options.principal = whose;
    options.store = c->store;
    options.dialects_on = c->plan.row->server_on;
    options.dialects_off = c->plan.row->server_off;
    options.draft_ways = c->plan.row->server_ways;
    options.seal_key = key;
    options.seal_key_len = sizeof key;
    composition_check(
        c, segue_server_new(c->server_runtime, &options, &c->server, NULL) == SEGUE_OK);
    if (c->plan.read_bytes)
        c->server->committer.read_bytes = c->plan.read_bytes;
    add_tool(c);
    c->carrier->serve(c);
    c->server_base = c->server_mem.live;
}

static void free_jobs(composition *c)
{
    while (c->jobs) {
        job *j = c->jobs;
        c->jobs = j->next;
        if (!j->over)
            segue_call_free(j->call);
        free(j);
    }
}

void server_stop(composition *c)
{
    if (!c->server_runtime)
        return;
    c->carrier->lose(c);
    segue_server_free(c->server);
    segue_runtime_free(c->server_runtime);
    c->server = NULL;
    c->server_runtime = NULL;
    free_jobs(c);
    if (c->server_mem.live)
        composition_fail(c, "the server leaves %zu bytes in %zu blocks",
                         (size_t)c->server_mem.live, (size_t)c->server_mem.blocks);
}

bool server_turn(composition *c)
{
    int32_t ran = 0;
    bool any = false;
    if (!c->server_runtime)
        return false;
    segue_runtime_dispatch(c->server_runtime, 0, 0, &ran);
    for (job *j = c->jobs; j; j = j->next)
        any |= play(j);
    return any || ran;
}

int64_t server_wakes(const composition *c)
{
    int64_t at = -1;
    for (const job *j = c->jobs; j; j = j->next)
        if (!j->over && j->wakes > c->clock_ms && (at < 0 || j->wakes < at))
            at = j->wakes;
    return at;
}
