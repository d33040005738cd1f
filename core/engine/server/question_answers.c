/* Receives the answers to questions that were sent as requests. */
#include "engine/server/question_request.h"

#include "base/rare.h"
#include "base/thresholds.h"
#include "engine/server/call.h"
#include "engine/server/inputs.h"
#include "engine/server/lasting.h"
#include "engine/server/late_answer.h"
#include "engine/server/rounds.h"
#include "engine/server/tool_call.h"
#include "engine/server/wire_session.h"

#include <stdio.h>

/* Returns the sent request that has this id, or NULL when there is no such request. */
static sgi_question_request *find(const segue_server *server,
                                  const sgi_question_id_parts *parts, sgi_json id)
{
    sgi_map_node *node = sgi_map_find(&server->questions, parts->whole);
    sgi_question_request *question =
        node ? SGI_OWNER(node, sgi_question_request, by_id) : NULL;
    if (!question)
        return NULL;
    const sgi_question_task *question_task = question->input->question_task;
    bool is_one =
        question_task ? sgi_question_task_awaits(question_task, id) : !parts->is_numbered;
    return is_one ? question : NULL;
}

/* Stores the result that answers a question, in the form that the handler expects. */
static segue_status take_result(sgi_op *op, sgi_str key, sgi_json result)
{
    sgi_buf answer;
    sgi_buf_init(&answer, sgi_engine_mem(op->engine));
    sgi_json value = sgi_question_strip_task_members(result, &answer);
    segue_status status =
        answer.failed ? SEGUE_E_NOMEM : sgi_task_take_answer(op, key, value);
    sgi_buf_free(&answer);
    return status;
}

/* Continues the operation after one of its questions was answered. status: the outcome of
 * storing the answer. The caller holds a reference to the operation. */
static void settle(sgi_op *op, segue_status status)
{
    if (sgi_op_runs_elsewhere(op) && sgi_task_is_put_off(op, status))
        /* the answer could not be accepted, so the question is sent again */
        sgi_question_requests_send_soon(op);
    /* there is no memory for the answer, and the client cannot be asked to repeat the
     * answer, so the operation ends */
    else if (status == SEGUE_E_NOMEM)
        sgi_op_end_internal_error(
            op, "Out of memory: the server cannot keep the answer to a question");
    sgi_round_on_answer_without_state(op);
    if (op->served->call)
        /* sends the question again if the answer did not fit the question */
        sgi_call_queue_events(op->served->call);
}

/* True when the result's _meta names this task as the related task, or names no task
 * (2025-11-25 basic/utilities/tasks, "Associating Task-Related Messages"). */
static bool is_about(const sgi_op *op, sgi_json result)
{
    sgi_json related = sgi_json_get(sgi_json_get(result, "_meta"), SGI_RELATED_TASK);
    sgi_json id = sgi_json_get(related, "taskId");
    return !id.n ||
           (sgi_op_is_task(op) && sgi_json_string_is(id, sgi_str_of(op->task_id)));
}

static segue_status take(sgi_op *op, const sgi_op_question *input, bool is_error,
                         sgi_json answer)
{
    const sgi_str key = sgi_str_of(input->key);
    return is_error ? sgi_task_take_error_answer(op, key, answer)
                    : take_result(op, key, answer);
}

sgi_answered sgi_question_take_answer(sgi_op *op, sgi_op_question *input, bool is_error,
                                      sgi_json answer)
{
    if (!is_error && !is_about(op, answer))
        return SGI_ANSWERED_NOTHING;
    input->awaited = false;
    /* if the question was also sent in another session, the client of that session need
     * not answer */
    sgi_question_withdraw_sent(input);
    segue_status status = take(op, input, is_error, answer);
    settle(op, status);
    bool is_put_off = sgi_op_runs_elsewhere(op) && sgi_task_is_put_off(op, status);
    return is_put_off ? SGI_ANSWERED_LATER : SGI_ANSWERED_ONE;
}

static sgi_answered answer_ask(sgi_question_request *question, bool is_error,
                               sgi_json answer)
{
    sgi_op *op = question->op;
    const sgi_op_question *input = question->input;
    if (!is_error && !is_about(op, answer))
        return SGI_ANSWERED_NOTHING;
    sgi_op_ref(op);
    sgi_question_request_remove(question);
    settle(op, take(op, input, is_error, answer));
    sgi_op_unref(op);
    return SGI_ANSWERED_ONE;
}

static sgi_answered hear(sgi_question_request *question, const sgi_message *msg)
{
    bool is_error = msg->kind == SGI_MESSAGE_ERROR;
    if (!question->input->question_task)
        return answer_ask(question, is_error, is_error ? msg->error : msg->result);
    sgi_question_task_take_message(question->input->question_task, msg);
    return SGI_ANSWERED_ONE;
}

/* Handles the answer to a question of a lasting call (its client can leave and come
 * back). The question has the same id in every session. If another server runs the call,
 * the call is looked up in the store. Over HTTP the client may have got the question from
 * another server, so its POST waits for the store. */
static sgi_answered answer_lasting(sgi_peer *peer, const sgi_question_id_parts *parts,
                                   bool is_error, sgi_json answer)
{
    sgi_op *op = sgi_cluster_known_task(&peer->server->cluster, parts->operation);
    if (!op || peer->is_post_of_answer) {
        SGI_RARE(answer_elsewhere);
        return sgi_take_late_answer(peer, parts, is_error, answer);
    }
    if (!op->served->lasting || op->served->who != peer->who || parts->is_numbered)
        return SGI_ANSWERED_NOTHING;
    sgi_op_question *input = sgi_op_find_question_at(op, parts->position);
    if (!input)
        return sgi_take_late_answer(peer, parts, is_error, answer);
    input->awaited = false;
    sgi_op_ref(op);
    settle(op, take(op, input, is_error, answer));
    sgi_op_unref(op);
    return SGI_ANSWERED_ONE;
}

sgi_answered sgi_question_requests_take_answer(sgi_peer *peer, const sgi_message *msg)
{
    sgi_question_id_parts parts;
    bool is_error = msg->kind == SGI_MESSAGE_ERROR;
    sgi_json answer = is_error ? msg->error : msg->result;
    if (!sgi_question_id_parse(msg->id, &parts))
        return SGI_ANSWERED_NOTHING;
    if (parts.is_lasting)
        return answer_lasting(peer, &parts, is_error, answer);
    sgi_question_request *question = find(peer->server, &parts, msg->id);
    if (question && question->questions == peer->questions &&
        question->op->served->who == peer->who)
        return hear(question, msg);
    return sgi_take_late_answer(peer, &parts, is_error, answer);
}

bool sgi_question_requests_take_forwarded(segue_server *server, sgi_str session,
                                          const uint8_t *who, const sgi_message *msg)
{
    sgi_question_id_parts parts;
    bool is_answer = msg->kind == SGI_MESSAGE_RESULT || msg->kind == SGI_MESSAGE_ERROR;
    if (!is_answer || !sgi_question_id_parse(msg->id, &parts))
        return false;
    sgi_question_request *question = find(server, &parts, msg->id);
    const sgi_wire_session *asked = question ? question->questions->session : NULL;
    return asked && sgi_str_eq(sgi_str_of(asked->id), session) &&
           !memcmp(question->op->served->who->digest, who, SGI_DIGEST_SIZE) &&
           hear(question, msg) == SGI_ANSWERED_ONE;
}

/* Handles a malformed answer as an error, because the client sends no second answer with
 * the same id (R-0-2). */
bool sgi_question_requests_take_malformed(sgi_peer *peer, const sgi_message *msg)
{
    char cut[sizeof((sgi_limit_text *)0)->text + 64];
    sgi_message answer = {.kind = SGI_MESSAGE_ERROR,
                          .id = msg->id,
                          .error = SGI_STR("{\"code\":-32603,\"message\":"
                                           "\"The client's answer is malformed\"}")};
    if (msg->is_cut) {
        sgi_engine *engine = peer->server->engine;
        sgi_limit limit = {SGI_LIMIT_MAX_MESSAGE_BYTES, (int64_t)engine->max_message};
        sgi_limit_text told = sgi_engine_describe_limit(
            engine, "The client's answer is too large", limit, "limit", NULL);
        snprintf(cut, sizeof cut, "{\"code\":-32603,\"message\":\"%s\"}", told.text);
        answer.error = sgi_str_of(cut);
    }
    return !msg->is_call && msg->id.n &&
           sgi_question_requests_take_answer(peer, &answer) == SGI_ANSWERED_ONE;
}

/* ---- questions that are tasks ---- */

static void task_ended(sgi_op *op, sgi_op_question *input, sgi_question_task_end how,
                       sgi_json json)
{
    sgi_str key = sgi_str_of(input->key);
    segue_status status = SEGUE_OK;
    sgi_op_ref(op);
    if (how == SGI_QUESTION_TASK_ANSWER)
        status = take_result(op, key, json);
    else if (how == SGI_QUESTION_TASK_ERROR)
        status = json.n ? sgi_task_take_error_answer(op, key, json) : SEGUE_E_NOMEM;
    if (input->question_task)
        sgi_question_end_task(input);
    settle(op, status);
    sgi_op_unref(op);
}

const sgi_question_task_events sgi_question_answer_events = {
    .has_output = sgi_question_requests_send_soon, .ended = task_ended};

void sgi_question_requests_take_notification(sgi_peer *peer, const sgi_message *msg)
{
    sgi_question_request *question;
    TAILQ_FOREACH(question, &peer->questions->out, link)
        if (question->input->question_task)
            sgi_question_task_take_message(question->input->question_task, msg);
}
