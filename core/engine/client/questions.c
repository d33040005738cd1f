/* Questions that a server of 2026-07-28 asks, on the client. server_questions.c handles
 * the questions of the versions that begin with `initialize`. The dialect that follows a
 * task adds and removes the questions of the task one by one. A round (SEP-2322) is an
 * answer of the server that asks questions in place of a result. The request of a round
 * has not become a task. When each question of the round has an answer, the request is
 * sent again with the answers and the server's requestState. A new round replaces the
 * previous one. When the request becomes a task, the questions of the round are dropped.
 * So the key of a question is valid only in one round, or in the task.
 *
 * Between rounds no exchange is under way, but the request continues: its timeout runs,
 * the application can cancel it, and it survives a reconnect. Answers are stored until
 * the next result, so that a lost request can be sent again. */
#include "base/backoff.h"
#include "engine/client/server_questions.h"
#include "engine/client/dialects.h"
#include "engine/input/answer_form.h"

#define ROUNDS_MAX 10

/* Returns the pause in ms before the request is sent again after an answer that should
 * ask questions (a round) and has none. */
static int64_t pause_ms(int32_t rounds)
{
    const sgi_backoff asking = {.first_ms = SGI_BACKOFF_FIRST_MS,
                                .most_ms = 64 * SGI_BACKOFF_FIRST_MS};
    return sgi_backoff_ms(&asking, rounds);
}

/* ---- one question ---- */

/* Stores the application's answer, if it fits the form of the question. Otherwise returns
 * SEGUE_E_INVALID, and nothing is sent. */
segue_status sgi_question_answer(const segue_request *request, sgi_question *question,
                                 sgi_json answer)
{
    segue_status status = sgi_question_form_take_answer(
        &question->form, &question->defaults, sgi_engine_mem(request->engine), answer,
        &question->answer, &question->answer_len);
    if (status == SEGUE_OK)
        question->state = SGI_QUESTION_ANSWERED;
    return status;
}

bool sgi_question_on_answer_failed(segue_request *request, sgi_question *question,
                                   const sgi_outcome *outcome)
{
    sgi_tries_retry_idempotent(&question->tries, outcome);
    if (sgi_outcome_error_code(outcome) != SGI_RPC_INVALID_PARAMS)
        return false;
    sgi_free(sgi_engine_mem(request->engine), question->answer, question->answer_len + 1);
    question->answer = NULL;
    question->state = SGI_QUESTION_REFUSED;
    return true;
}

/* Puts a question into the inbox for the application. Returns false when out of
 * memory. */
static bool tell(segue_request *request, sgi_str key, sgi_str method, sgi_json params)
{
    sgi_inbox_record_head head = {.kind = SGI_RECORD_INPUT};
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(request->engine));
    sgi_buf_add_str(&text, key);
    sgi_buf_add_char(&text, 0);
    sgi_buf_add_str(&text, method);
    sgi_buf_add_char(&text, 0);
    sgi_buf_add_str(&text, params.n ? params : SGI_STR("{}"));
    bool ok = !text.failed && sgi_inbox_add_record(request, &head, sgi_buf_str(&text));
    sgi_buf_free(&text);
    return ok;
}

/* Reports a question to the application and adds it to the list. On failure it does
 * neither. */
static segue_status add(segue_request *request, sgi_str key, sgi_str method,
                        sgi_json params)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    sgi_question *question = sgi_zalloc(mem, sizeof *question);
    if (question) {
        sgi_tries_init(&question->tries, request,
                       request->follower ? request->follower->answers_by
                                         : request->method);
        question->key = sgi_text_dup(mem, key);
    }
    bool ok =
        question && question->key &&
        sgi_question_form_store(&question->form, mem, method, params) &&
        sgi_form_defaults_store(&question->defaults, request->session, method, params) &&
        tell(request, key, method, params);
    if (ok) {
        question->is_unknown = !sgi_server_question_is_known_method(method);
        TAILQ_INSERT_TAIL(&request->questions.list, question, link);
        request->questions.count++;
        return SEGUE_OK;
    }
    sgi_question_free(mem, question);
    return SEGUE_E_NOMEM;
}

segue_status sgi_question_add(segue_request *request, const sgi_json_member *member)
{
    sgi_json params = sgi_json_get(member->value, "params");
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_method_text(sgi_json_get(member->value, "method"), room);
    if (member->escaped || !method.n ||
        (params.n && sgi_json_kind_of(params) != SGI_JSON_OBJECT))
        return SEGUE_E_PROTOCOL;
    sgi_question *known = sgi_question_find(request, member->key);
    if (known && known->state != SGI_QUESTION_REFUSED)
        return SEGUE_OK;
    if (known && !tell(request, member->key, method, params))
        return SEGUE_E_NOMEM;
    if (known) {
        known->state = SGI_QUESTION_OPEN;
        return SEGUE_OK;
    }
    if (request->questions.count >= SGI_QUESTIONS_MAX)
        return SEGUE_E_LIMIT;
    return add(request, member->key, method, params);
}

/* Answers a question that has an unknown method. The answer is the application's
 * error. */
static segue_status answer_unknown(segue_request *request, const char *key,
                                   sgi_json error)
{
    sgi_buf answer;
    sgi_buf_init(&answer, sgi_engine_mem(request->engine));
    sgi_jw w = sgi_jw_to(&answer);
    sgi_jw_open(&w, '{');
    sgi_jw_member_raw(&w, "error", error);
    sgi_jw_close(&w, '}');
    segue_status status = answer.failed
                              ? SEGUE_E_NOMEM
                              : sgi_request_answer(request, key, sgi_buf_str(&answer));
    sgi_buf_free(&answer);
    return status;
}

static segue_status answer_without_error(segue_request *request, const char *key,
                                         sgi_json error)
{
    const sgi_question *question = sgi_question_find_open(request, key);
    if (!question)
        return SEGUE_E_NOT_FOUND;
    if (question->is_unknown)
        return answer_unknown(request, key, error);
    return question->form.text
               ? sgi_request_answer(request, key, SGI_STR("{\"action\":\"cancel\"}"))
               : SEGUE_E_UNSUPPORTED;
}

/* Answers a question with an error. In 2026-07-28 an answer is always a result. The
 * result for a form is the action "cancel". For sampling and roots there is no such
 * result, so the function fails with SEGUE_E_UNSUPPORTED. The answer to a question of an
 * unknown method contains the error itself. */
segue_status sgi_request_answer_error(segue_request *request, const char *key,
                                      int32_t code, sgi_str message, sgi_json data)
{
    sgi_buf error;
    if (sgi_request_is_over(request))
        return sgi_request_no_question_status(request);
    sgi_buf_init(&error, sgi_engine_mem(request->engine));
    sgi_jw w = sgi_jw_to(&error);
    sgi_write_error_object(&w, code, message, data);
    segue_status status =
        error.failed
            ? SEGUE_E_NOMEM
            : sgi_server_question_answer_error(request, key, sgi_buf_str(&error));
    if (status == SEGUE_E_NOT_FOUND)
        status = answer_without_error(request, key, sgi_buf_str(&error));
    sgi_buf_free(&error);
    return status;
}

/* ---- rounds ---- */

static bool keep_state(segue_request *request, sgi_json state)
{
    if (!state.n)
        return true;
    request->questions.state = sgi_text_dup(sgi_engine_mem(request->engine), state);
    request->questions.state_len = state.n;
    return request->questions.state != NULL;
}

/* Sends the request again after an answer that should ask questions (a round) and has
 * none. After the first such answer the request is sent at once, later after growing
 * pauses. */
static void ask_again(segue_request *request)
{
    if (request->questions.rounds == 1)
        sgi_request_send_due(request);
    else
        sgi_tries_set_timer(&request->tries, pause_ms(request->questions.rounds - 1));
}

static const char *take_all(segue_request *request, sgi_json inputs, segue_status *status)
{
    sgi_json_member member;
    for (size_t at = 0; inputs.n && sgi_json_next_member(inputs, &at, &member);) {
        *status = request->events.on_input ? sgi_question_add(request, &member)
                                           : SEGUE_E_UNSUPPORTED;
        if (*status == SEGUE_E_UNSUPPORTED)
            return "the server asks for input, but the request has no callback on_input";
        if (*status == SEGUE_E_LIMIT)
            return "the server asks too many questions";
        if (*status == SEGUE_E_NOMEM)
            return "out of memory for a question";
        if (*status != SEGUE_OK)
            return "the server asks an invalid question";
    }
    return NULL;
}

void sgi_questions_take_round(segue_request *request, sgi_json result)
{
    sgi_json inputs = sgi_json_get(result, "inputRequests");
    sgi_json state = sgi_json_get(result, "requestState");
    segue_status status = SEGUE_E_PROTOCOL;
    const char *problem = NULL;
    sgi_questions_clear(request);
    if ((inputs.n && sgi_json_kind_of(inputs) != SGI_JSON_OBJECT) ||
        (state.n && sgi_json_kind_of(state) != SGI_JSON_STRING)) {
        problem = "the server's result has an invalid inputRequests or requestState";
    } else if (++request->questions.rounds > ROUNDS_MAX) {
        status = SEGUE_E_LIMIT;
        problem = "the server asked too many rounds of questions";
    } else if (!keep_state(request, state)) {
        status = SEGUE_E_NOMEM;
        problem = "out of memory for a round of questions";
    } else {
        problem = take_all(request, inputs, &status);
        if (!problem && !state.n && TAILQ_EMPTY(&request->questions.list))
            problem = "the server sent a round of questions without a question";
    }
    sgi_limit limit = {request->questions.rounds > ROUNDS_MAX ? SGI_LIMIT_MAX_ROUNDS
                                                              : SGI_LIMIT_MAX_QUESTIONS,
                       request->questions.rounds > ROUNDS_MAX ? ROUNDS_MAX
                                                              : SGI_QUESTIONS_MAX};
    if (problem && status == SEGUE_E_LIMIT)
        sgi_request_fail_limit(request, status, problem, limit);
    else if (problem)
        sgi_request_fail(request, status, problem);
    else if (TAILQ_EMPTY(&request->questions.list))
        ask_again(request);
}

/* True for a request that the server may answer with a round of questions. "Servers MUST
 * NOT send InputRequiredResult responses on any other client requests" (2026-07-28
 * basic/patterns/mrtr, "Supported Requests"). */
static bool may_have_rounds(const segue_request *request)
{
    return request->is_call || !strcmp(request->method, "prompts/get") ||
           !strcmp(request->method, "resources/read");
}

bool sgi_result_type_is_round(const segue_request *request, sgi_json type)
{
    if (!may_have_rounds(request))
        return false;
    return sgi_json_string_is(type, SGI_STR("input_required")) ||
           sgi_cli_type_is_round(request->session, type);
}
