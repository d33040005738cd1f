/* Questions of the server, on the client, as 2026-07-28 has them; asked.c has those of
 * the handshake eras. Those of a task come and go one by one
 * (follow.c); those of a round (SEP-2322) answer a request that is no task yet: when each
 * has its answer the request is sent again, with the answers and the state that the
 * server gave. A round replaces the one before it, and a task's questions begin anew:
 * keys are good for one of them only.
 *
 * Between rounds nothing is in flight. What holds for the request holds there: its
 * timeout goes on, cancel ends it, a connection that comes back lets it go on. Answers
 * stay until the next result, so a request that is lost on the way can be sent again. */
#include "base/backoff.h"
#include "engine/asking/asked.h"
#include "engine/asking/request.h"
#include "engine/answer_form.h"

#define ELICIT "elicitation/create"
#define ROUNDS_MAX 10
static const sgi_backoff asking = {.first_ms = SGI_BACKOFF_FIRST_MS,
                                   .most_ms = 64 * SGI_BACKOFF_FIRST_MS};

static void release(const sgi_mem *mem, sgi_question *question)
{
    if (!question)
        return;
    sgi_tries_stop(&question->tries);
    if (question->answer)
        sgi_release(mem, question->answer, question->answer_len + 1);
    sgi_text_free(mem, question->key);
    sgi_defaults_free(&question->defaults, mem);
    if (question->form)
        sgi_release(mem, question->form, question->form_len + 1);
    sgi_release(mem, question, sizeof *question);
}

void sgi_questions_clear(segue_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    sgi_question *question, *next;
    SGI_TAILQ_EACH(question, &request->questions, link, next) {
        TAILQ_REMOVE(&request->questions, question, link);
        release(mem, question);
    }
    if (request->round_state)
        sgi_release(mem, request->round_state, request->round_state_len + 1);
    request->round_state = NULL;
}

/* ---- one question ---- */

static sgi_question *find(const segue_request *request, sgi_str key)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions, link)
        if (sgi_str_eq(sgi_str_of(question->key), key))
            break;
    return question;
}

static bool keep_form(const sgi_mem *mem, sgi_question *question, sgi_str method,
                      sgi_json params)
{
    sgi_json form = params.n ? params : SGI_STR("{}");
    if (!sgi_str_eq(method, SGI_STR(ELICIT)))
        return true;
    question->form = sgi_text_dup(mem, form);
    question->form_len = form.n;
    return question->form != NULL;
}

/* A server may keep a question open whose answer does not fit its form, and say no more
 * of it than a hint (R-2557-27), while here it has been answered: so that is told to who
 * answers, before anything is sent. */
segue_status sgi_question_answer(const segue_request *request, sgi_question *question,
                                 sgi_json answer)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    size_t len;
    if (!sgi_can_answer(question->form != NULL, answer))
        return SEGUE_E_INVALID;
    char *filled = sgi_defaults_fill(&question->defaults, mem, answer, &len);
    if (!filled)
        return SEGUE_E_NOMEM;
    if (question->form &&
        !sgi_answer_fits_form(sgi_json_get((sgi_json){question->form, question->form_len},
                                           "requestedSchema"),
                              (sgi_json){filled, len}, mem)) {
        sgi_release(mem, filled, len + 1);
        return SEGUE_E_INVALID;
    }
    question->answer = filled;
    question->answer_len = len;
    question->state = SGI_QUESTION_ANSWERED;
    return SEGUE_OK;
}

void sgi_question_settle(sgi_question *question)
{
    question->state = SGI_QUESTION_SETTLED;
    sgi_tries_good(&question->tries);
}

bool sgi_question_failed(segue_request *request, sgi_question *question,
                         const sgi_outcome *outcome)
{
    sgi_tries_failed(&question->tries, outcome);
    if (sgi_outcome_code(outcome) != SGI_RPC_INVALID_PARAMS)
        return false;
    sgi_release(sgi_engine_mem(request->engine), question->answer,
                question->answer_len + 1);
    question->answer = NULL;
    question->state = SGI_QUESTION_REFUSED;
    return true;
}

void sgi_questions_rest(segue_request *request)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions, link)
        sgi_tries_stop(&question->tries);
}

/* To the application. */
static bool tell(segue_request *request, sgi_str key, sgi_str method, sgi_json params)
{
    sgi_inbox_head head = {.kind = SGI_RECORD_INPUT};
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(request->engine));
    sgi_buf_add_str(&text, key);
    sgi_buf_add_char(&text, 0);
    sgi_buf_add_str(&text, method);
    sgi_buf_add_char(&text, 0);
    sgi_buf_add_str(&text, params.n ? params : SGI_STR("{}"));
    bool ok = !text.failed && sgi_deliver(request, &head, sgi_buf_str(&text));
    sgi_buf_free(&text);
    return ok;
}

/* To the application and into the list, or neither. */
static segue_status add(segue_request *request, sgi_str key, sgi_str method,
                        sgi_json params)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    sgi_question *question = sgi_zalloc(mem, sizeof *question);
    if (question) {
        sgi_tries_init(&question->tries, request,
                       sgi_follow_is_draft(request) ? "tasks/get with an answer"
                                                    : "tasks/update");
        question->key = sgi_text_dup(mem, key);
    }
    bool ok = question && question->key && keep_form(mem, question, method, params) &&
              sgi_defaults_keep(&question->defaults, request->session, method, params) &&
              tell(request, key, method, params);
    if (ok) {
        question->is_unknown = !sgi_asked_is_known(method);
        TAILQ_INSERT_TAIL(&request->questions, question, link);
        request->question_count++;
        return SEGUE_OK;
    }
    release(mem, question);
    return SEGUE_E_NOMEM;
}

segue_status sgi_question_take(segue_request *request, const sgi_json_member *member)
{
    sgi_json params = sgi_json_get(member->value, "params");
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_name_text(sgi_json_get(member->value, "method"), room);
    if (member->escaped || !method.n ||
        (params.n && sgi_json_kind_of(params) != SGI_JSON_OBJECT))
        return SEGUE_E_PROTOCOL;
    sgi_question *known = find(request, member->key);
    if (known && known->state != SGI_QUESTION_REFUSED)
        return SEGUE_OK;
    if (known && !tell(request, member->key, method, params))
        return SEGUE_E_NOMEM;
    if (known) {
        known->state = SGI_QUESTION_OPEN;
        return SEGUE_OK;
    }
    if (request->question_count >= SGI_QUESTIONS_MAX)
        return SEGUE_E_LIMIT;
    return add(request, member->key, method, params);
}

sgi_question *sgi_question_find(segue_request *request, const char *key)
{
    sgi_question *question = find(request, sgi_str_of(key));
    return question && question->state == SGI_QUESTION_OPEN ? question : NULL;
}

/* What a server hears that asks for something that nobody knows. */
static segue_status answer_unknown(segue_request *request, const char *key,
                                   sgi_json error)
{
    sgi_buf answer;
    sgi_buf_init(&answer, sgi_engine_mem(request->engine));
    sgi_jw w = sgi_jw_on(&answer);
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
    const sgi_question *question = sgi_question_find(request, key);
    if (!question)
        return SEGUE_E_NOT_FOUND;
    if (question->is_unknown)
        return answer_unknown(request, key, error);
    return question->form
               ? sgi_request_answer(request, key, SGI_STR("{\"action\":\"cancel\"}"))
               : SEGUE_E_UNSUPPORTED;
}

/* 2026-07-28 has results for answers, and no errors. For a form that is not filled in
 * there is a word; that a model, or the roots, cannot be asked has none. A question of
 * an unknown method has no result that could be right, and gets the error. */
segue_status sgi_request_answer_error(segue_request *request, const char *key,
                                      int32_t code, sgi_str message, sgi_json data)
{
    sgi_buf error;
    if (request->phase == SGI_PHASE_DONE)
        return sgi_request_unasked(request);
    sgi_buf_init(&error, sgi_engine_mem(request->engine));
    sgi_jw w = sgi_jw_on(&error);
    sgi_jw_open(&w, '{');
    sgi_jw_member_int(&w, "code", code);
    sgi_jw_member_string(&w, "message", message);
    if (data.n)
        sgi_jw_member_raw(&w, "data", data);
    sgi_jw_close(&w, '}');
    segue_status status = error.failed
                              ? SEGUE_E_NOMEM
                              : sgi_asked_answer_error(request, key, sgi_buf_str(&error));
    if (status == SEGUE_E_NOT_FOUND)
        status = answer_without_error(request, key, sgi_buf_str(&error));
    sgi_buf_free(&error);
    return status;
}

/* ---- rounds ---- */

bool sgi_questions_are_open(const segue_request *request)
{
    const sgi_question *question;
    TAILQ_FOREACH(question, &request->questions, link)
        if (!question->answer)
            return true;
    return false;
}

static bool keep_state(segue_request *request, sgi_json state)
{
    if (!state.n)
        return true;
    request->round_state = sgi_text_dup(sgi_engine_mem(request->engine), state);
    request->round_state_len = state.n;
    return request->round_state != NULL;
}

/* The server wants to be asked again, and nothing else: at once, then ever later. */
static void ask_again(segue_request *request)
{
    if (request->rounds == 1)
        sgi_request_go(request);
    else
        sgi_tries_later(&request->tries, sgi_backoff_ms(&asking, request->rounds - 1));
}

static const char *take_all(segue_request *request, sgi_json inputs, segue_status *status)
{
    sgi_json_member member;
    for (size_t at = 0; inputs.n && sgi_json_next_member(inputs, &at, &member);) {
        *status = request->events.on_input ? sgi_question_take(request, &member)
                                           : SEGUE_E_UNSUPPORTED;
        if (*status == SEGUE_E_UNSUPPORTED)
            return "the server asks for input, and there is no on_input";
        if (*status == SEGUE_E_LIMIT)
            return "the server asks too many questions";
        if (*status == SEGUE_E_NOMEM)
            return "out of memory for a question";
        if (*status != SEGUE_OK)
            return "the server asks a malformed question";
    }
    return NULL;
}

void sgi_questions_round(segue_request *request, sgi_json result)
{
    sgi_json inputs = sgi_json_get(result, "inputRequests");
    sgi_json state = sgi_json_get(result, "requestState");
    segue_status status = SEGUE_E_PROTOCOL;
    const char *problem = NULL;
    sgi_questions_clear(request);
    if ((inputs.n && sgi_json_kind_of(inputs) != SGI_JSON_OBJECT) ||
        (state.n && sgi_json_kind_of(state) != SGI_JSON_STRING)) {
        problem = "a malformed round of questions";
    } else if (++request->rounds > ROUNDS_MAX) {
        status = SEGUE_E_LIMIT;
        problem = "the server asks in too many rounds";
    } else if (!keep_state(request, state)) {
        status = SEGUE_E_NOMEM;
        problem = "out of memory for a round";
    } else {
        problem = take_all(request, inputs, &status);
        if (!problem && !state.n && TAILQ_EMPTY(&request->questions))
            problem = "a round without a question";
    }
    sgi_limit limit = {request->rounds > ROUNDS_MAX ? "max_rounds" : "max_questions",
                       request->rounds > ROUNDS_MAX ? ROUNDS_MAX : SGI_QUESTIONS_MAX};
    if (problem && status == SEGUE_E_LIMIT)
        sgi_request_fail_limit(request, status, problem, limit);
    else if (problem)
        sgi_request_fail(request, status, problem);
    else if (TAILQ_EMPTY(&request->questions))
        ask_again(request);
}

/* "Servers MUST NOT send InputRequiredResult responses on any other client requests"
 * (2026-07-28 basic/patterns/mrtr, "Supported Requests"). */
static bool may_have_rounds(const segue_request *request)
{
    return request->is_call || !strcmp(request->method, "prompts/get") ||
           !strcmp(request->method, "resources/read");
}

/* The draft before 2026-07-28 had another word for it (core/docs/requirements.md 2.1). */
bool sgi_questions_is_round(const segue_request *request, sgi_json type)
{
    if (!may_have_rounds(request))
        return false;
    return sgi_json_string_is(type, SGI_STR("input_required")) ||
           (request->session->version == SGI_VERSION_DRAFT_2026_V1 &&
            sgi_json_string_is(type, SGI_STR("incomplete")));
}

bool sgi_questions_own(const segue_request *request, const sgi_json_member *member)
{
    return request->rounds && (sgi_json_key_is(member, "inputResponses") ||
                               sgi_json_key_is(member, "requestState"));
}

void sgi_questions_write(const segue_request *request, sgi_jw *w)
{
    const sgi_question *question;
    if (!TAILQ_EMPTY(&request->questions)) {
        sgi_jw_key(w, "inputResponses");
        sgi_jw_open(w, '{');
        TAILQ_FOREACH(question, &request->questions, link) {
            sgi_jw_key_str(w, sgi_str_of(question->key));
            sgi_jw_raw(w, (sgi_str){question->answer, question->answer_len});
        }
        sgi_jw_close(w, '}');
    }
    if (request->round_state)
        sgi_jw_member_raw(w, "requestState",
                          (sgi_str){request->round_state, request->round_state_len});
}
