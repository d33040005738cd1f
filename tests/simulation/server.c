/* Servers and their one tool, whose handler plays the program of the call. Handlers run
 * inside their callback and in the turns of the run, until they wait for time, for room
 * or for an answer. A handler that runs again begins behind the stored segments. */
#include "simulation/sim.h"

#include "engine/server/server.h"

#include <segue/segue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a call of SEP-975 waits for its client. A child that dies again and again can
 * keep its client away for 20 minutes. */
#define RESUME_MS (60 * 60 * 1000)

struct sim_job {
    sim_job *next;
    sim_server *server;
    sim *s;
    const sim_app *app;
    segue_call *call;
    char name[24]; /* the operation in the history */
    int run;
    program_place at;
    int64_t wakes;
    bool blocked, asking, cancelled, over;
    int asked, attempt;
};

uint64_t sim_block_digest(const program *p, int block)
{
    const program_block *b = &p->blocks[block];
    return judge_digest(JUDGE_DIGEST, b->bytes, b->len);
}

/* ---- the history ---- */

static void tell_blocks(const sim_job *j, const program_step *step, int from)
{
    for (int i = from; i < step->count; i++) {
        int block = step->first + i;
        sim_tell(j->s, "emit %s %d n=%d d=%llu", j->name, j->run, block + 1,
                 (unsigned long long)sim_block_digest(&j->app->program, block));
    }
}

static void tell_field(const sim_job *j, const char *name, const char *json, size_t len)
{
    sim_tell(j->s, "field %s %d f=%s d=%llu", j->name, j->run, name,
             (unsigned long long)judge_digest(JUDGE_DIGEST, json, len));
}

/* Tells of a field. _meta has one member, {"x/kN":V}, which is told by itself. */
static void tell_step_field(const sim_job *j, const program_step *step)
{
    char name[24];
    if (step->number != 3) {
        tell_field(j, program_fields[step->number], step->json, strlen(step->json));
        return;
    }
    const char *colon = strchr(step->json, ':');
    snprintf(name, sizeof name, "_meta.%.*s", (int)(colon - step->json - 3),
             step->json + 2);
    tell_field(j, name, colon + 1, strlen(colon + 1) - 1);
}

static void tell_end(const sim_job *j, const program_step *step)
{
    static const char *const kinds[] = {"ok", "error"};
    const char *kind = step->kind == STEP_FAIL       ? "fail"
                       : step->kind == STEP_COMPLETE ? kinds[step->is_error != 0]
                                                     : "none";
    sim_tell(j->s, "end %s %d kind=%s", j->name, j->run, kind);
}

static void tell_step(const sim_job *j, const program_step *step)
{
    if (step->kind == STEP_SEND || step->kind == STEP_COMPLETE)
        tell_blocks(j, step, j->at.block);
    if (step->kind == STEP_FIELD)
        tell_step_field(j, step);
    if (step->kind == STEP_LOG)
        sim_tell(j->s, "log %s %d n=%d level=%d", j->name, j->run, step->number,
                 sim_log_level(step->number));
    if (step->kind == STEP_COMPLETE && *step->json)
        tell_field(j, "structuredContent", step->json, strlen(step->json));
    if (step->kind == STEP_REPLACE) {
        int made = 0;
        for (int i = 0; i < j->at.step; i++)
            made += j->app->program.steps[i].count;
        sim_tell(j->s, "void %s %d n=%d", j->name, j->run, made);
    }
    if (step->kind >= STEP_COMPLETE)
        tell_end(j, step);
}

/* ---- steps ---- */

static void add_blocks(const sim_job *j, segue_content *content, const program_step *step,
                       int from)
{
    const program *p = &j->app->program;
    for (int i = from; i < step->count; i++) {
        const program_block *b = &p->blocks[step->first + i];
        segue_status status =
            b->is_text ? segue_content_add_text(content, b->bytes, b->len, NULL)
                       : segue_content_add_json(content, b->bytes, b->len, NULL);
        sim_check(j->s, status == SEGUE_OK);
    }
}

static segue_status send_blocks(const sim_job *j, const program_step *step)
{
    const program_block *b = &j->app->program.blocks[step->first];
    segue_content *content;
    if (step->count == 1 && b->is_text)
        return segue_call_send_text(j->call, b->bytes, b->len, NULL);
    sim_check(j->s, segue_content_new(j->server->runtime, &content) == SEGUE_OK);
    add_blocks(j, content, step, j->at.block);
    segue_status status = segue_call_send(j->call, content, NULL);
    segue_content_free(content);
    return status;
}

static segue_status complete(const sim_job *j, const program_step *step)
{
    segue_content *content;
    sim_check(j->s, segue_content_new(j->server->runtime, &content) == SEGUE_OK);
    add_blocks(j, content, step, j->at.block);
    if (*step->json)
        segue_content_set_structured(content, step->json, strlen(step->json), NULL);
    segue_content_set_error(content, step->is_error);
    segue_status status = segue_call_complete(j->call, content, NULL);
    segue_content_free(content);
    return status;
}

static void write_question(const sim_job *j, int number, char text[QUESTION_TEXT])
{
    snprintf(text, QUESTION_TEXT, "%s/%d/%s", j->name, number, j->app->person);
}

/* Reads the answer {"action":"accept","content":{"for":"Q","by":"P"}}. */
static void tell_answer(const sim_job *j, const char *json, size_t len)
{
    char text[300], q[QUESTION_TEXT] = "?", by[32] = "?";
    snprintf(text, sizeof text, "%.*s", (int)len, json);
    const char *at = strstr(text, "\"for\":\"");
    if (at)
        sscanf(at, "\"for\":\"%63[^\"]\",\"by\":\"%31[^\"]\"", q, by);
    sim_tell(j->s, "answered %s %d q=%s by=%s", j->name, j->run, q, by);
}

static void on_input(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len)
{
    sim_job *j = user;
    (void)call;
    if (!j->over && status == SEGUE_OK)
        tell_answer(j, json, len);
    if (!j->over && status != SEGUE_OK)
        sim_check(j->s, status == SEGUE_E_CANCELLED || status == SEGUE_E_REMOTE ||
                            j->server->is_dead);
    j->asking = false;
}

static segue_status ask(sim_job *j, const program_step *step)
{
    char key[16], text[QUESTION_TEXT], params[200];
    write_question(j, step->number, text);
    int len = snprintf(params, sizeof params,
                       "{\"message\":\"%s\",\"requestedSchema\":"
                       "{\"type\":\"object\",\"properties\":{}}}",
                       text);
    snprintf(key, sizeof key, "k%d", step->number);
    j->asking = true;
    j->asked = step->number;
    sim_tell(j->s, "ask %s %d q=%s", j->name, j->run, text);
    segue_status status = segue_call_require_input(
        j->call, key, "elicitation/create", params, (size_t)len, on_input, j, NULL, NULL);
    if (status != SEGUE_OK)
        j->asking = false;
    return status == SEGUE_E_UNSUPPORTED ? SEGUE_OK : status;
}

static segue_status checkpoint(const sim_job *j, const program_step *step)
{
    char data[16];
    int len = snprintf(data, sizeof data, "%d", step->number);
    segue_status status = segue_call_checkpoint(j->call, data, (size_t)len + 1, NULL);
    return status == SEGUE_E_STATE ? SEGUE_OK : status;
}

static segue_status defer(const sim_job *j)
{
    segue_status status = segue_call_defer(j->call, 0, NULL);
    bool may_be = status == SEGUE_E_UNSUPPORTED || status == SEGUE_E_STATE;
    return may_be ? SEGUE_OK : status;
}

int sim_log_level(int number)
{
    return number % 8;
}

static segue_status send_log(const sim_job *j, const program_step *step)
{
    static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
    char json[80];
    int len = snprintf(json, sizeof json, "{\"step\":%d,\"of\":\"%s\",\"run\":%d}",
                       step->number, j->name, j->run);
    return segue_call_log(j->call, levels[sim_log_level(step->number)], json, (size_t)len,
                          NULL);
}

static segue_status play_step(sim_job *j, const program_step *step)
{
    char text[32];
    switch (step->kind) {
    case STEP_SEND:
        return send_blocks(j, step);
    case STEP_REPLACE:
        return segue_call_replace(j->call, NULL);
    case STEP_FIELD:
        return segue_call_set_field(j->call, program_fields[step->number], step->json,
                                    strlen(step->json), NULL);
    case STEP_PROGRESS:
        return segue_call_progress(j->call, step->number + 1, 100, "on", NULL);
    case STEP_LOG:
        return send_log(j, step);
    case STEP_STATUS:
        snprintf(text, sizeof text, "at %d", step->number);
        return segue_call_set_status(j->call, text, NULL);
    case STEP_ASK:
        return ask(j, step);
    case STEP_CHECKPOINT:
        return checkpoint(j, step);
    case STEP_PAUSE:
        j->wakes = j->s->now_ms + step->ms;
        return SEGUE_OK;
    case STEP_DEFER:
        return defer(j);
    case STEP_COMPLETE:
        return complete(j, step);
    case STEP_FAIL:
        return segue_call_fail(j->call, PROGRAM_CODE, "no", "{\"n\":1}", 7, NULL);
    default:
        return SEGUE_OK;
    }
}

static void finish(sim_job *j)
{
    segue_call_free(j->call);
    j->over = true;
}

/* Plays one step; returns false when the program waits or is over. */
static bool play_one(sim_job *j)
{
    const program_step *step = &j->app->program.steps[j->at.step];
    segue_status status = play_step(j, step);
    if (status == SEGUE_E_WOULD_BLOCK) {
        j->blocked = true;
        return false;
    }
    if (status == SEGUE_OK)
        tell_step(j, step);
    if (status == SEGUE_E_TERMINAL)
        sim_tell(j->s, "told %s %d", j->name, j->run);
    if (status == SEGUE_E_TERMINAL || step->kind >= STEP_COMPLETE) {
        finish(j);
        return false;
    }
    if (status != SEGUE_OK && !j->server->is_dead)
        sim_fail(j->s, "step %d of %s: %s", j->at.step, j->name,
                 segue_status_name(status));
    j->at = (program_place){j->at.step + 1, 0};
    return !j->asking && j->wakes <= j->s->now_ms;
}

static bool may_play(const sim_job *j)
{
    return !j->over && !j->blocked && !j->asking && j->wakes <= j->s->now_ms;
}

static bool play(sim_job *j)
{
    int steps = 1 + (int)dice_roll(&j->s->dice, (uint32_t)sim_planned(j->s, SIM_batch));
    if (!may_play(j))
        return false;
    if (j->cancelled && dice_once_in(&j->s->dice, 2)) {
        finish(j); /* otherwise the program continues */
        return true;
    }
    while (steps-- && play_one(j))
        ;
    return true;
}

/* The handler ends because its process is about to end. */
static bool give_up(sim_job *j)
{
    if (j->over)
        return false;
    sim_tell(j->s, "left %s %d", j->name, j->run);
    finish(j);
    return true;
}

/* ---- the tool ---- */

static void on_cancel(void *user, segue_call *call)
{
    sim_job *j = user;
    (void)call;
    j->cancelled = true;
    sim_tell(j->s, "told %s %d", j->name, j->run);
}

static void on_drain(void *user, segue_call *call)
{
    (void)call;
    ((sim_job *)user)->blocked = false;
}

static void find_place(sim_job *j)
{
    uint64_t last = 0;
    const void *data = NULL;
    size_t len = 0;
    if (segue_call_resumed(j->call, &last, &data, &len) != SEGUE_OK)
        last = 0;
    sim_check(j->s, last <= (uint64_t)j->app->program.block_count);
    j->at = program_after(&j->app->program, last);
    sim_tell(j->s, "run %s %d from=%d", j->name, j->run, (int)last);
}

static void on_call(void *user, segue_call *call)
{
    sim_server *server = user;
    sim *s = server->s;
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    int64_t n = 0, attempt = 0;
    sim_job *j = calloc(1, sizeof *j);
    sim_check(s, segue_call_argument_int(call, "n", &n) == SEGUE_OK);
    sim_check(s, segue_call_argument_int(call, "a", &attempt) == SEGUE_OK);
    sim_check(s, n >= 0 && n < sim_planned(s, SIM_calls));
    j->server = server;
    j->s = s;
    j->app = &s->apps[n];
    j->attempt = (int)attempt;
    snprintf(j->name, sizeof j->name, "%d.%d", (int)n, (int)attempt);
    j->run = ++s->runs;
    sim_show(server, "begins run", j->run);
    sim_check(s, !strcmp(segue_call_principal(call), j->app->person));
    j->call = call;
    j->next = server->jobs;
    server->jobs = j;
    find_place(j);
    events.user = j;
    events.on_cancel = on_cancel;
    events.on_drain = on_drain;
    sim_check(s, segue_call_watch(call, &events) == SEGUE_OK);
    play(j);
}

static void add_tool(sim_server *server)
{
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    const composition_row *row = sim_row(&server->s->plan);
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.user = server;
    options.on_call = on_call;
    options.flags = SEGUE_TOOL_INCREMENTAL | row->tool_flags;
    if (sim_planned(server->s, SIM_restartable))
        options.flags |= SEGUE_TOOL_RESTARTABLE;
    options.task = row->task;
    options.promote_after_ms = row->promote_after_ms;
    options.resume_max_wait_ms = RESUME_MS;
    sim_check(server->s, segue_server_add(server->server, SEGUE_ITEM_TOOL, tool,
                                          sizeof tool - 1, &options, NULL) == SEGUE_OK);
}

/* ---- processes ---- */

static segue_status whose(void *user, segue_transport *transport, const char **principal)
{
    sim_server *server = user;
    *principal = server->s->carrier->whose(server, transport);
    return *principal ? SEGUE_OK : SEGUE_E_CLOSED;
}

static void open_store(sim_server *server)
{
    sim *s = server->s;
    shared_options options = {.unleased = sim_planned(s, SIM_store) == SIM_SQLITE};
    server->store = NULL;
    server->instance = NULL;
    if (sim_planned(s, SIM_store) != SIM_MEMORY)
        sim_check(s, shared_store_new(s->place, &options, &server->instance,
                                      &server->store) == SEGUE_OK);
}

void sim_server_start(sim_server *server)
{
    static const char key[32] = "a key of all servers of one run";
    sim *s = server->s;
    const composition_row *row = sim_row(&s->plan);
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    server->is_dead = 0;
    server->lives++;
    server->runtime = sim_runtime(s, &server->mem, server, NULL);
    open_store(server);
    options.name = "simulation";
    options.user = server;
    options.principal = whose;
    options.store = server->store;
    options.dialects_on = row->server_on;
    options.dialects_off = row->server_off;
    options.draft_ways = row->server_ways;
    options.seal_key = key;
    options.seal_key_len = sizeof key;
    sim_check(s, segue_server_new(server->runtime, &options, &server->server, NULL) ==
                     SEGUE_OK);
    segue_store_free(server->store); /* the server has its own reference */
    if (sim_planned(s, SIM_read))
        server->server->committer.read_bytes = (size_t)sim_planned(s, SIM_read);
    add_tool(server);
    sim_watch_serve(server);
    s->carrier->serve(server);
    server->base = server->mem.live;
}

static void free_jobs(sim_server *server)
{
    while (server->jobs) {
        sim_job *j = server->jobs;
        server->jobs = j->next;
        if (!j->over)
            segue_call_free(j->call);
        free(j);
    }
}

void sim_server_close(sim_server *server)
{
    static const uint32_t lengths[] = {1, 100, 5000};
    dice *d = &server->s->dice;
    server->ends_at = server->s->now_ms + 1 + dice_roll(d, lengths[dice_roll(d, 3)]);
    sim_check(server->s, segue_server_close(server->server) == SEGUE_OK);
}

/* The time is over: all handlers give up, and what they leave behind is stored. */
static void leave(sim_server *server)
{
    for (sim_job *j = server->jobs; j; j = j->next)
        give_up(j);
    for (int i = 0; i < 4 && !server->is_dead; i++)
        sim_dispatch(server->s, server->runtime);
}

void sim_server_end(sim_server *server, bool dies)
{
    sim *s = server->s;
    if (!server->runtime)
        return;
    if (server->ends_at && !dies && !server->is_dead)
        leave(server);
    server->ends_at = 0;
    server->hung_up = false;
    if (dies) {
        server->is_dead = 1;
        if (server->instance)
            shared_store_die(server->instance);
    }
    s->carrier->lose_server(server);
    segue_server_free(server->server);
    sim_end_runtime(server->runtime);
    server->server = NULL;
    server->runtime = NULL;
    server->instance = NULL;
    free_jobs(server);
    if (server->mem.live)
        sim_fail(s, "server %d leaves %zu bytes in %zu blocks", server->index,
                 (size_t)server->mem.live, (size_t)server->mem.blocks);
}

bool sim_server_turn(sim_server *server)
{
    bool any;
    if (!server->runtime || sim_is_paused(server) || server->is_dead)
        return false;
    sim_watch_report(server);
    any = sim_dispatch(server->s, server->runtime);
    for (sim_job *j = server->jobs; j && !server->is_dead; j = j->next)
        any |=
            server->ends_at && dice_once_in(&server->s->dice, 8) ? give_up(j) : play(j);
    return any;
}

int64_t sim_server_wakes(const sim_server *server)
{
    int64_t at = -1;
    for (const sim_job *j = server->jobs; j; j = j->next)
        if (!j->over && j->wakes > server->s->now_ms && (at < 0 || j->wakes < at))
            at = j->wakes;
    return at;
}
