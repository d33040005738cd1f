#include "engine/server/inputs.h"

#include "engine/cluster/following.h"
#include "engine/cluster/forwarding.h"
#include "engine/input/answer_form.h"
#include "engine/server/call.h"
#include "engine/server/call_report.h"
#include "engine/server/carried_answers.h"
#include "engine/server/question_wire.h"
#include "engine/server/rounds.h"
#include "engine/server/task.h"

#include <stdio.h>

#define MAX_BAD_ANSWERS 5

/* ---- asking questions ---- */

/* Returns the same question from an earlier run of the handler, perhaps with its answer.
 * Returns NULL when no earlier run asked the question. key = NULL matches every key. */
static sgi_op_question *asked_before(sgi_op *op, const char *key, const char *method,
                                     sgi_json params)
{
    sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (!input->bound && input->asked != UINT64_MAX &&
            (!key || !strcmp(input->key, key)) && !strcmp(input->method, method) &&
            sgi_str_eq((sgi_str){input->params, input->params_len}, params))
            return input;
    return NULL;
}

/* True when the key has a valid length and only characters that need no escapes in JSON,
 * headers or ids. */
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

/* Makes a key of the form input-<n> that no question of the operation uses. The tool
 * itself can choose keys of this form, so used keys are skipped. */
static void make_key(sgi_op *op, char key[SGI_INPUT_KEY_MAX + 1])
{
    int n = (int)op->head.input_count;
    do
        snprintf(key, SGI_INPUT_KEY_MAX + 1, "input-%d", ++n);
    while (sgi_op_find_question(op, sgi_str_of(key)) ||
           sgi_carried_answers_has_key(op, key));
}

static bool any_open(const sgi_op *op)
{
    const sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (!input->answered)
            return true;
    return false;
}

/* Appends an entry and, unless status_entry is NULL, a change of the status. On failure
 * nothing is appended. */
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

/* Appends a question to the log. key = NULL: the library chooses a key. */
static segue_status ask(sgi_op *op, const char *key, const char *method, sgi_json params,
                        sgi_op_question **out)
{
    char made[SGI_INPUT_KEY_MAX + 1];
    sgi_buf payload;
    if (op->head.input_count >= op->committer->limits.max_inputs)
        return SEGUE_E_LIMIT;
    if (!key)
        make_key(op, made);
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_to(&payload);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "key", sgi_str_of(key ? key : made));
    sgi_jw_member_string(&w, "method", sgi_str_of(method));
    sgi_jw_member_raw(&w, "params", params);
    sgi_jw_close(&w, '}');
    /* a status is written with each question, because a client on a stream looks for
     * questions only when it receives a status */
    segue_status status =
        payload.failed
            ? SEGUE_E_NOMEM
            : append_with_status(op, SGI_ENTRY_INPUT_ASK, sgi_buf_str(&payload),
                                 "{\"status\":\"input_required\"}");
    sgi_buf_free(&payload);
    if (status == SEGUE_OK)
        *out = TAILQ_LAST(&op->head.inputs, sgi_op_question_list);
    return status;
}

static bool fits(const sgi_op_question *input, sgi_json response)
{
    return sgi_answer_is_valid(sgi_str_of(input->method), response);
}

static void write_answer(sgi_buf *out, const sgi_op_question *input, const char *member,
                         sgi_json value)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "key", sgi_str_of(input->key));
    sgi_jw_member_raw(&w, member, value);
    sgi_jw_close(&w, '}');
}

/* Ends the operation because its limits leave no room for the answer to a question. The
 * client would give the same answer again, so it is not asked again. Returns SEGUE_OK:
 * the answer has had its effect. */
static segue_status end_at_limit(sgi_op *op)
{
    sgi_limit_text told = sgi_engine_describe_limit(
        op->engine, "The answer to a question is larger than the server keeps",
        op->reached, sgi_op_is_logged(op) ? "log_overflow" : "limit",
        "raise the limit on the server");
    if (sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, sgi_str_of(told.text),
                    sgi_str_of(told.data)) == SEGUE_E_NOMEM)
        sgi_op_end_internal_error(op, told.text);
    return SEGUE_OK;
}

/* Appends or forwards the answer to a question. member: "response" or "error". */
static segue_status append_answer(sgi_op *op, sgi_op_question *input, const char *member,
                                  sgi_json value)
{
    sgi_buf payload;
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    write_answer(&payload, input, member, value);
    /* set only during any_open, so that any_open does not count this question */
    input->answered = UINT64_MAX;
    const char *change = any_open(op) ? NULL : "{\"status\":\"working\"}";
    input->answered = 0;
    segue_status status = SEGUE_E_NOMEM;
    if (!payload.failed && sgi_op_runs_elsewhere(op))
        status = sgi_forward_answer(op, input->key, sgi_buf_str(&payload), true);
    else if (!payload.failed)
        status =
            append_with_status(op, SGI_ENTRY_INPUT_ANSWER, sgi_buf_str(&payload), change);
    sgi_buf_free(&payload);
    if (status == SEGUE_E_LIMIT && !sgi_op_runs_elsewhere(op))
        return end_at_limit(op);
    return status;
}

/* Asks a question. If the client has brought the question along from an earlier run
 * (carried_answers.h), the question keeps its earlier key and gets its earlier answer, if
 * there is one. */
static segue_status ask_or_recall(sgi_op *op, const char *key, const char *method,
                                  sgi_json params, sgi_op_question **out)
{
    const sgi_carried_answer *carried_answer =
        sgi_carried_answers_find(op, key, method, params);
    segue_status status =
        ask(op, carried_answer ? carried_answer->key : key, method, params, out);
    if (status != SEGUE_OK || !carried_answer || !carried_answer->answer)
        return status;
    sgi_json answer = {carried_answer->answer, carried_answer->answer_len};
    return fits(*out, answer) ? append_answer(op, *out, "response", answer) : SEGUE_OK;
}

/* Finds the question in an earlier run of the handler, or asks it. params: without the
 * members about tasks. */
static segue_status begin_question(sgi_op *op, const char *key, const char *method,
                                   sgi_json params, sgi_op_question **out)
{
    if (sgi_question_required_caps(method, params) & ~op->served->caps)
        return sgi_refuse(op->engine, SEGUE_E_UNSUPPORTED,
                          "the client has not declared that it answers %s of this kind",
                          method);
    *out = asked_before(op, key, method, params);
    if (!*out && key && sgi_op_find_question(op, sgi_str_of(key)))
        return sgi_refuse(op->engine, SEGUE_E_EXISTS,
                          "the call has already asked another question with the key %s",
                          key);
    segue_status status = sgi_op_is_task(op) || op->served->lasting || op->served->asks
                              ? SEGUE_OK
                              : sgi_round_new(op);
    if (status == SEGUE_OK && !*out)
        status = ask_or_recall(op, key, method, params, out);
    return status;
}

segue_status sgi_call_require_input(segue_call *call, const char *key, const char *method,
                                    const char *params, size_t len,
                                    segue_input_fn on_input, void *user,
                                    segue_free_fn free_user)
{
    sgi_op *op = call->op;
    sgi_op_question *input = NULL;
    sgi_buf kept;
    sgi_json value = SGI_STR("{}");
    sgi_engine *engine = call->handle.engine;
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    if (key && !is_key(key))
        return sgi_refuse(
            engine, SEGUE_E_INVALID,
            "the key of a question has to be 1 to %d of the characters A-Z a-z 0-9 . _ -",
            SGI_INPUT_KEY_MAX);
    if (params) {
        segue_status status = sgi_engine_check_json(engine, params, len, &value, NULL);
        if (status != SEGUE_OK)
            return status;
        if (sgi_json_kind_of(value) != SGI_JSON_OBJECT)
            return sgi_refuse(engine, SEGUE_E_INVALID,
                              "the params of the question are not a JSON object");
    }
    /* _meta names the task of this operation, and not a task of another server from which
     * the question comes */
    sgi_buf_init(&kept, sgi_engine_mem(engine));
    value = sgi_question_strip_task_members(value, &kept);
    segue_status status =
        kept.failed ? SEGUE_E_NOMEM : begin_question(op, key, method, value, &input);
    sgi_buf_free(&kept);
    if (status != SEGUE_OK)
        return status;
    input->bound = true;
    input->asker = call;
    input->on_input = on_input;
    input->user = user;
    input->free_user = free_user;
    sgi_call_event_report_question(op, method, NULL);
    /* a call that asks a question cannot be answered in its first turn (before on_call
     * returns), so the turn ends here */
    sgi_call_end_turn(call);
    sgi_call_on_room(call);
    return SEGUE_OK;
}

/* ---- answers ---- */

static void refuse_answer(sgi_op *op, sgi_op_question *input)
{
    char text[128];
    if (++input->bad_answers >= MAX_BAD_ANSWERS) {
        sgi_limit_text told = sgi_engine_describe_limit(
            op->engine, "Too many answers that do not fit their question",
            (sgi_limit){SGI_LIMIT_MAX_BAD_ANSWERS, MAX_BAD_ANSWERS}, "limit", NULL);
        sgi_op_ref(op);
        sgi_task_stop_handler(op,
                              sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INVALID_PARAMS,
                                          sgi_str_of(told.text), sgi_str_of(told.data)));
        sgi_op_unref(op);
        return;
    }
    snprintf(text, sizeof text, "The answer to %s does not fit the question", input->key);
    sgi_task_append_status(op, NULL, sgi_str_of(text));
}

/* Returns the question of this key if it can be answered. The question need not be
 * visible here: when the answer of a commit was lost, another server can show a question
 * to its client before this server knows that the question is durable. */
static sgi_op_question *open_input(sgi_op *op, sgi_str key)
{
    sgi_op_question *input = sgi_op_find_question(op, key);
    return input && sgi_op_question_can_be_answered(op, input) ? input : NULL;
}

/* Forwards an answer that does not fit its question to the server that runs the
 * operation. That server counts the wrong answers and reports them to the client. */
static segue_status send_misfit(sgi_op *op, const sgi_op_question *input,
                                sgi_json response)
{
    sgi_buf payload;
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    write_answer(&payload, input, "response", response);
    segue_status status =
        payload.failed ? SEGUE_E_NOMEM
                       : sgi_forward_answer(op, input->key, sgi_buf_str(&payload), false);
    sgi_buf_free(&payload);
    return status;
}

/* True when another server may have asked a question of this key, which this server does
 * not know yet. */
static bool may_be_asked_elsewhere(sgi_op *op, sgi_str key)
{
    const sgi_op_question *input = sgi_op_find_question(op, key);
    return sgi_op_may_be_behind(op) && !sgi_op_has_ended(op) &&
           !(input && input->answered);
}

segue_status sgi_task_take_answer(sgi_op *op, sgi_str key, sgi_json response)
{
    sgi_op_question *input = open_input(op, key);
    if (!input)
        return may_be_asked_elsewhere(op, key) ? SEGUE_E_STORE : SEGUE_OK;
    if (!fits(input, response) && sgi_op_runs_elsewhere(op))
        return send_misfit(op, input, response);
    if (!fits(input, response)) {
        refuse_answer(op, input);
        return SEGUE_OK;
    }
    return append_answer(op, input, "response", response);
}

bool sgi_task_answer_fits(sgi_op *op, sgi_str key, sgi_json response)
{
    const sgi_op_question *input = open_input(op, key);
    return !input || fits(input, response);
}

segue_status sgi_task_take_error_answer(sgi_op *op, sgi_str key, sgi_json error)
{
    sgi_op_question *input = open_input(op, key);
    return input ? append_answer(op, input, "error", error) : SEGUE_OK;
}

segue_status sgi_task_take_carried_answers(sgi_op *op)
{
    sgi_op_question *input;
    segue_status status = SEGUE_OK;
    TAILQ_FOREACH(input, &op->head.inputs, link) {
        sgi_json params = {input->params, input->params_len};
        sgi_json answer = sgi_carried_answers_get(op, input->key, input->method, params);
        if (status == SEGUE_OK && answer.n && open_input(op, sgi_str_of(input->key)) &&
            fits(input, answer))
            status = append_answer(op, input, "response", answer);
    }
    return sgi_task_is_put_off(op, status) ? status : SEGUE_OK;
}
