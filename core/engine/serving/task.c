#include "engine/serving/task.h"

#include "engine/dialect/dialect.h"
#include "engine/log/dropping.h"
#include "engine/answer_form.h"
#include "engine/serving/call.h"
#include "engine/serving/errands.h"
#include "engine/serving/recall.h"
#include "engine/serving/rounds.h"

#include <stdio.h>

#define MAX_BAD_ANSWERS 5

const char *sgi_state_name(sgi_state state)
{
    static const char *const names[] = {"working", "input_required", "completed",
                                        "failed", "cancelled"};
    return names[state];
}

/* ---- creation ---- */

static int64_t clamp_ttl(const sgi_op *op, int64_t wanted)
{
    int64_t most = op->server->options.max_ttl_ms;
    int64_t ttl = wanted ? wanted : op->item->options.ttl_ms;
    if (most < 0)
        return ttl; /* the server allows unlimited ones */
    return ttl < 0 || ttl > most ? most : ttl;
}

/* A time that its dialect cannot say is rounded up: nothing expires early (R-2557-2). */
static int64_t round_ttl(const sgi_op *op, int64_t ttl_ms)
{
    int64_t unit = op->dialect ? op->dialect->ttl_unit_ms : 0;
    if (!unit || ttl_ms < 0 || ttl_ms % unit == 0 || ttl_ms > INT64_MAX - unit)
        return ttl_ms;
    return ttl_ms - ttl_ms % unit + unit;
}

static segue_status give_identity(sgi_op *op, int64_t ttl_ms, bool as_task)
{
    char id[SGI_RANDOM_TEXT + 1];
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    if (!sgi_engine_random_text(op->engine, id) ||
        !sgi_random(&op->engine->env, op->id, sizeof op->id))
        return SEGUE_E_FATAL;
    op->task_id = sgi_text_dup(mem, sgi_str_of(id));
    if (!op->task_id)
        return SEGUE_E_NOMEM;
    op->ttl_ms = round_ttl(op, clamp_ttl(op, ttl_ms));
    if (op->resumable && !as_task && !op->key)
        op->ttl_ms = -1; /* it has a clock of its own */
    op->poll_ms = op->item->options.poll_ms;
    op->is_task = as_task;
    segue_status status = sgi_op_log(op);
    if (status != SEGUE_OK) {
        sgi_text_free(mem, op->task_id);
        op->task_id = NULL;
        op->is_task = false;
        return status;
    }
    if (as_task && op->dialect == &sgi_dialect_tasks_ext)
        sgi_op_retain(op);
    sgi_server_op_known(op);
    sgi_server_start_ttl(op);
    return SEGUE_OK;
}

segue_status sgi_task_make(sgi_op *op, int64_t ttl_ms)
{
    int32_t others = op->who->live_tasks - (op->round != NULL);
    if (others >= op->server->options.max_tasks)
        return SEGUE_E_LIMIT;
    segue_status status = give_identity(op, ttl_ms, true);
    if (status == SEGUE_OK) {
        sgi_round_end(op);
        op->server->counts.tasks++;
        op->who->live_tasks++;
        op->counted = true;
        sgi_engine_timer_clear(op->engine, &op->promote);
        sgi_task_tell_begin(op);
    }
    return status;
}

segue_status sgi_task_make_keyed(sgi_op *op)
{
    segue_status status = give_identity(op, 0, false);
    if (status == SEGUE_OK && op->resumable) {
        op->who->live_tasks++;
        op->counted = true;
    }
    return status;
}

/* ---- status ---- */

static void write_status(sgi_buf *out, const char *status, sgi_str message)
{
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    if (status)
        sgi_jw_member_string(&w, "status", sgi_str_of(status));
    if (message.p)
        sgi_jw_member_string(&w, "statusMessage", message);
    sgi_jw_close(&w, '}');
}

segue_status sgi_task_status(sgi_op *op, const char *status, sgi_str message)
{
    sgi_buf payload;
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    write_status(&payload, status, message);
    segue_status result =
        payload.failed ? SEGUE_E_NOMEM
                       : sgi_op_append(op, SGI_ENTRY_STATUS, sgi_buf_str(&payload));
    sgi_buf_free(&payload);
    return result;
}

/* ---- the end ---- */

/* Nobody wants the result any more. Without memory for the entry the handler is stopped
 * all the same: the operation then ends when it gives the call up. */
static void stop_handler(sgi_op *op, segue_status status)
{
    if (op->call && (status == SEGUE_OK || status == SEGUE_E_NOMEM))
        sgi_call_cancel(op->call);
}

segue_status sgi_task_cancel(sgi_op *op)
{
    if (sgi_op_is_elsewhere(op))
        return sgi_op_has_ended(op) ? SEGUE_OK : sgi_errand_cancel(op);
    sgi_op_ref(op); /* its call may be the last to hold it, and goes with the end */
    stop_handler(op, sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}")));
    sgi_op_unref(op);
    return SEGUE_OK;
}

bool sgi_task_is_unstoppable(const sgi_op *op)
{
    return op->item && op->item->options.flags & SEGUE_TOOL_UNSTOPPABLE;
}

void sgi_task_expire(sgi_op *op)
{
    sgi_op_ref(op);
    stop_handler(op, sgi_op_fail(op, SGI_ENTRY_EXPIRED, SGI_RPC_INTERNAL_ERROR,
                                 SGI_STR("Task TTL expired"), (sgi_json){0}));
    sgi_op_unref(op);
}

segue_status sgi_call_defer(segue_call *call, int64_t ttl_ms)
{
    sgi_op *op = call->op;
    if (op->is_task)
        return SEGUE_OK;
    if (sgi_call_is_over(call))
        return sgi_call_over(call);
    if (op->logged || op->item->options.task == SEGUE_TASK_NEVER)
        return sgi_refuse(call->handle.engine, SEGUE_E_UNSUPPORTED,
                          "no call of this tool becomes a task, or this one has a key");
    if (!(op->caps & SGI_CAP_TASKS))
        return sgi_refuse(call->handle.engine, SEGUE_E_UNSUPPORTED,
                          "the client takes no task");
    if (sgi_round_is_awaited(op)) /* there is no request that the task could answer */
        return sgi_refuse(call->handle.engine, SEGUE_E_STATE,
                          "the call waits for the answers of its client");
    segue_status status = sgi_task_make(op, ttl_ms);
    if (status == SEGUE_OK)
        sgi_call_became_task(call);
    return status;
}

/* ---- questions ---- */

static const struct {
    const char *method;
    const char *name; /* of the capability */
    uint32_t cap;
} askable[] = {
    {"elicitation/create", "elicitation", SGI_CAP_ELICITATION},
    {"sampling/createMessage", "sampling", SGI_CAP_SAMPLING},
    {"roots/list", "roots", SGI_CAP_ROOTS},
};

/* 2025-11-25 client/elicitation, "Capabilities"; client/sampling, "Tools in Sampling". */
uint32_t sgi_input_needs(const char *method, sgi_json params)
{
    uint32_t needs = SGI_CAP_NOBODY;
    for (size_t i = 0; i < sizeof askable / sizeof *askable; i++)
        if (!strcmp(askable[i].method, method))
            needs = askable[i].cap;
    if (needs == SGI_CAP_ELICITATION &&
        sgi_json_string_is(sgi_json_get(params, "mode"), SGI_STR("url")))
        return SGI_CAP_ELICITATION_URL;
    if (needs == SGI_CAP_SAMPLING &&
        (sgi_json_get(params, "tools").n > 0 || sgi_json_get(params, "toolChoice").n > 0))
        needs |= SGI_CAP_SAMPLING_TOOLS;
    return needs;
}

void sgi_input_missing(const char *method, char *data, size_t size)
{
    for (size_t i = 0; i < sizeof askable / sizeof *askable; i++)
        if (!strcmp(askable[i].method, method))
            snprintf(data, size, "{\"requiredCapabilities\":{\"%s\":{}}}",
                     askable[i].name);
}

void sgi_input_write(sgi_jw *w, const sgi_input *input)
{
    sgi_jw_key(w, input->key);
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "method", sgi_str_of(input->method));
    sgi_jw_member_raw(w, "params", (sgi_str){input->params, input->params_len});
    sgi_jw_close(w, '}');
}

/* An earlier run of the handler asked just this: its question, and perhaps its answer,
 * are still there. key NULL = under whichever. */
static sgi_input *asked_before(sgi_op *op, const char *key, const char *method,
                               sgi_json params)
{
    sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (!input->bound && (!key || !strcmp(input->key, key)) &&
            !strcmp(input->method, method) &&
            sgi_str_eq((sgi_str){input->params, input->params_len}, params))
            return input;
    return NULL;
}

/* Such as need no escapes wherever they go. */
static bool is_key(const char *key)
{
    size_t n = 0;
    for (; key[n] && n <= SGI_INPUT_KEY_MAX; n++) {
        char c = key[n];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
            return false;
    }
    return n > 0 && n <= SGI_INPUT_KEY_MAX;
}

/* The first that is free; tools choose keys, too. */
static void make_key(sgi_op *op, char key[SGI_INPUT_KEY_MAX + 1])
{
    int n = (int)op->input_count;
    do
        snprintf(key, SGI_INPUT_KEY_MAX + 1, "input-%d", ++n);
    while (sgi_op_input(op, sgi_str_of(key)) || sgi_recall_has_key(op, key));
}

static bool any_open(const sgi_op *op)
{
    const sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (!input->answered)
            return true;
    return false;
}

/* Appends an entry, and a change of the status word with it or not at all. */
static segue_status append_with_status(sgi_op *op, int32_t kind, sgi_str payload,
                                       const char *status_entry)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    sgi_entry *first = sgi_entry_new(mem, kind, payload.p, payload.n);
    if (!first)
        return SEGUE_E_NOMEM;
    TAILQ_INSERT_TAIL(&list, first, link);
    if (status_entry) {
        sgi_entry *second =
            sgi_entry_new(mem, SGI_ENTRY_STATUS, status_entry, strlen(status_entry));
        if (!second) {
            sgi_entry_list_free(mem, &list);
            return SEGUE_E_NOMEM;
        }
        TAILQ_INSERT_TAIL(&list, second, link);
    }
    return sgi_op_append_list(op, &list);
}

/* key NULL = any. */
static segue_status ask(sgi_op *op, const char *key, const char *method, sgi_json params,
                        sgi_input **out)
{
    char made[SGI_INPUT_KEY_MAX + 1];
    sgi_buf payload;
    if (op->input_count >= op->limits.max_inputs)
        return SEGUE_E_LIMIT;
    if (!key)
        make_key(op, made);
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_on(&payload);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "key", sgi_str_of(key ? key : made));
    sgi_jw_member_string(&w, "method", sgi_str_of(method));
    sgi_jw_member_raw(&w, "params", params);
    sgi_jw_close(&w, '}');
    /* said anew for each question: who reads the stream looks only when told to */
    segue_status status =
        payload.failed
            ? SEGUE_E_NOMEM
            : append_with_status(op, SGI_ENTRY_INPUT_ASK, sgi_buf_str(&payload),
                                 "{\"status\":\"input_required\"}");
    sgi_buf_free(&payload);
    if (status == SEGUE_OK)
        *out = TAILQ_LAST(&op->inputs, sgi_input_list);
    return status;
}

static bool fits(const sgi_input *input, sgi_json response)
{
    return sgi_answer_is_one(sgi_str_of(input->method), response);
}

static void write_answer(sgi_buf *out, const sgi_input *input, const char *member,
                         sgi_json value)
{
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "key", sgi_str_of(input->key));
    sgi_jw_member_raw(&w, member, value);
    sgi_jw_close(&w, '}');
}

/* member: "response" or "error". */
static segue_status append_answer(sgi_op *op, sgi_input *input, const char *member,
                                  sgi_json value)
{
    sgi_buf payload;
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    write_answer(&payload, input, member, value);
    input->answered = UINT64_MAX; /* is another one left? */
    const char *change = any_open(op) ? NULL : "{\"status\":\"working\"}";
    input->answered = 0;
    segue_status status = SEGUE_E_NOMEM;
    if (!payload.failed && sgi_op_is_elsewhere(op))
        status = sgi_errand_answer(op, input->key, sgi_buf_str(&payload), true);
    else if (!payload.failed)
        status =
            append_with_status(op, SGI_ENTRY_INPUT_ANSWER, sgi_buf_str(&payload), change);
    sgi_buf_free(&payload);
    return status;
}

/* Asks, and answers, what was asked and answered before the call came here. */
static segue_status ask_or_recall(sgi_op *op, const char *key, const char *method,
                                  sgi_json params, sgi_input **out)
{
    const sgi_recalled *recalled = sgi_recall_find(op, key, method, params);
    segue_status status = ask(op, recalled ? recalled->key : key, method, params, out);
    if (status != SEGUE_OK || !recalled || !recalled->answer)
        return status;
    sgi_json answer = {recalled->answer, recalled->answer_len};
    return fits(*out, answer) ? append_answer(op, *out, "response", answer) : SEGUE_OK;
}

segue_status sgi_call_require_input(segue_call *call, const char *key, const char *method,
                                    const char *params, size_t len,
                                    segue_input_fn on_input, void *user,
                                    segue_free_fn free_user)
{
    sgi_op *op = call->op;
    sgi_json value = SGI_STR("{}");
    sgi_engine *engine = call->handle.engine;
    if (sgi_call_is_over(call))
        return sgi_call_over(call);
    if (key && !is_key(key))
        return sgi_refuse(engine, SEGUE_E_INVALID,
                          "the key is not 1 to %d of A-Z a-z 0-9 . _ -",
                          SGI_INPUT_KEY_MAX);
    if (params) {
        segue_status status = sgi_engine_json(engine, params, len, &value, NULL);
        if (status != SEGUE_OK)
            return status;
        if (sgi_json_kind_of(value) != SGI_JSON_OBJECT)
            return sgi_refuse(engine, SEGUE_E_INVALID, "the params are not an object");
    }
    if (sgi_input_needs(method, value) & ~op->caps)
        return sgi_refuse(engine, SEGUE_E_UNSUPPORTED,
                          "the client does not answer %s of this kind", method);
    sgi_input *input = asked_before(op, key, method, value);
    if (!input && key && sgi_op_input(op, sgi_str_of(key)))
        return sgi_refuse(engine, SEGUE_E_EXISTS,
                          "the call has asked another question with the key %s", key);
    segue_status status = op->is_task || op->resumable ? SEGUE_OK : sgi_round_begin(op);
    if (status == SEGUE_OK && !input)
        status = ask_or_recall(op, key, method, value, &input);
    if (status != SEGUE_OK)
        return status;
    input->bound = true;
    input->on_input = on_input;
    input->user = user;
    input->free_user = free_user;
    sgi_call_end_turn(call); /* a call that asks is not done at once */
    sgi_call_progressed(call);
    return SEGUE_OK;
}

/* ---- answers ---- */

static void refuse_answer(sgi_op *op, sgi_input *input)
{
    char text[128];
    if (++input->bad_answers >= MAX_BAD_ANSWERS) {
        sgi_limit_told told =
            sgi_limit_tell("Too many answers that do not fit their question",
                           (sgi_limit){"max_bad_answers", MAX_BAD_ANSWERS}, "limit");
        sgi_op_ref(op);
        stop_handler(op, sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INVALID_PARAMS,
                                     sgi_str_of(told.text), sgi_str_of(told.data)));
        sgi_op_unref(op);
        return;
    }
    snprintf(text, sizeof text, "The answer to %s does not fit the question", input->key);
    sgi_task_status(op, NULL, sgi_str_of(text));
}

static sgi_input *open_input(sgi_op *op, sgi_str key)
{
    sgi_input *input = sgi_op_input(op, key);
    bool is_open = input && !input->answered && sgi_input_is_open(op, input) &&
                   !sgi_op_has_ended(op);
    return is_open ? input : NULL;
}

/* Its owner counts those that do not fit, and says so. */
static segue_status send_misfit(sgi_op *op, const sgi_input *input, sgi_json response)
{
    sgi_buf payload;
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    write_answer(&payload, input, "response", response);
    segue_status status =
        payload.failed ? SEGUE_E_NOMEM
                       : sgi_errand_answer(op, input->key, sgi_buf_str(&payload), false);
    sgi_buf_free(&payload);
    return status;
}

segue_status sgi_task_answer(sgi_op *op, sgi_str key, sgi_json response)
{
    sgi_input *input = open_input(op, key);
    if (!input)
        return SEGUE_OK;
    if (!fits(input, response) && sgi_op_is_elsewhere(op))
        return send_misfit(op, input, response);
    if (!fits(input, response)) {
        refuse_answer(op, input);
        return SEGUE_OK;
    }
    return append_answer(op, input, "response", response);
}

bool sgi_task_answer_fits(sgi_op *op, sgi_str key, sgi_json response)
{
    const sgi_input *input = open_input(op, key);
    return !input || fits(input, response);
}

segue_status sgi_task_answer_error(sgi_op *op, sgi_str key, sgi_json error)
{
    sgi_input *input = open_input(op, key);
    return input ? append_answer(op, input, "error", error) : SEGUE_OK;
}

segue_status sgi_task_answer_recalled(sgi_op *op)
{
    sgi_input *input;
    segue_status status = SEGUE_OK;
    TAILQ_FOREACH(input, &op->inputs, link) {
        sgi_json params = {input->params, input->params_len};
        sgi_json answer = sgi_recall_answer(op, input->key, input->method, params);
        if (status == SEGUE_OK && answer.n && open_input(op, sgi_str_of(input->key)) &&
            fits(input, answer))
            status = append_answer(op, input, "response", answer);
    }
    return sgi_task_is_put_off(op, status) ? status : SEGUE_OK;
}
