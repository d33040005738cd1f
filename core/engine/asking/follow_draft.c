/* What is different about a task of DRAFT-2026-v1 (SEP-2557): answers to its questions go
 * out with tasks/get, again as they were when that was lost, as the server passes over
 * what it has taken before; tasks/cancel is answered with the task; and what the server
 * says by itself only makes the client look, or look no more. The rest is as for tasks of
 * the extension (follow.c). */
#include "engine/asking/request.h"

bool sgi_follow_is_draft(const segue_request *request)
{
    return request->birth == SGI_BIRTH_DRAFT;
}

/* A task stands under "task" there; resultType may be missing (R-2557-5). */
bool sgi_follow_draft_answer(segue_request *request, sgi_json result)
{
    sgi_json task = sgi_json_get(result, "task");
    sgi_json type = sgi_json_get(result, "resultType");
    bool may_be = request->session->version == SGI_VERSION_DRAFT_2026_V1 &&
                  request->session->has_tasks && request->is_call;
    if (!may_be || (type.n && !sgi_json_string_is(type, SGI_STR("task"))))
        return false;
    if (!type.n && (sgi_json_kind_of(sgi_json_get(task, "taskId")) != SGI_JSON_STRING ||
                    sgi_json_get(result, "content").n))
        return false;
    sgi_pieces_free(request); /* its result will be whole */
    sgi_follow_begin(request, result, sgi_json_get(result, "_meta"));
    sgi_early_tell(request);
    return true;
}

/* ---- answers ---- */

void sgi_follow_draft_write(segue_request *request, sgi_emitter *emitter, sgi_jw *w)
{
    sgi_question *question;
    bool some = false;
    TAILQ_FOREACH(question, &request->questions, link) {
        if (!sgi_question_is_due(question))
            continue;
        if (!some) {
            sgi_jw_key(w, "inputResponses");
            sgi_jw_open(w, '{');
        }
        some = true;
        sgi_jw_key_str(w, sgi_str_of(question->key));
        sgi_jw_raw(w, (sgi_str){question->answer, question->answer_len});
        question->updating = emitter;
    }
    if (some)
        sgi_jw_close(w, '}');
}

void sgi_follow_draft_unsent(segue_request *request, const sgi_emitter *emitter)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions, link)
        if (question->updating == emitter)
            question->updating = NULL;
}

bool sgi_follow_draft_got(segue_request *request, const sgi_emitter *emitter,
                          const sgi_outcome *outcome)
{
    sgi_question *question;
    bool refused = false;
    TAILQ_FOREACH(question, &request->questions, link) {
        if (question->updating != emitter)
            continue;
        question->updating = NULL;
        if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n)
            sgi_question_settle(question);
        else if (sgi_outcome_code(outcome) == SGI_RPC_INVALID_PARAMS)
            refused |= sgi_question_failed(request, question, outcome);
    }
    return refused;
}

/* ---- what comes by itself ---- */

void sgi_follow_draft_status(segue_request *request, sgi_json task)
{
    int32_t before = request->state;
    sgi_task_echo_note(request, task, false);
    if (sgi_task_is_stale(request, task))
        return;
    sgi_task_note_poll(request, task);
    sgi_task_note_status(request, task);
    bool wants_look = sgi_task_state_is_terminal(request->state) ||
                      request->state == SEGUE_TASK_INPUT_REQUIRED;
    if (wants_look && request->state != before)
        sgi_follow_look(request);
}
