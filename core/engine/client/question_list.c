/* The list of the questions of a task, or of a round (an answer that asks questions):
 * what the client stores for each question, and which answers go out with the request. */
#include "engine/client/request.h"

void sgi_question_free(const sgi_mem *mem, sgi_question *question)
{
    if (!question)
        return;
    sgi_tries_stop(&question->tries);
    if (question->answer)
        sgi_free(mem, question->answer, question->answer_len + 1);
    sgi_text_free(mem, question->key);
    sgi_form_defaults_free(&question->defaults, mem);
    sgi_question_form_free(&question->form, mem);
    sgi_free(mem, question, sizeof *question);
}

void sgi_questions_clear(segue_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    sgi_question *question, *next;
    SGI_TAILQ_EACH(question, &request->questions.list, link, next) {
        TAILQ_REMOVE(&request->questions.list, question, link);
        sgi_question_free(mem, question);
    }
    if (request->questions.state)
        sgi_free(mem, request->questions.state, request->questions.state_len + 1);
    request->questions.state = NULL;
}

sgi_question *sgi_question_find(const segue_request *request, sgi_str key)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions.list, link)
        if (sgi_str_eq(sgi_str_of(question->key), key))
            break;
    return question;
}

void sgi_question_acknowledge(sgi_question *question)
{
    question->state = SGI_QUESTION_SETTLED;
    sgi_tries_reset(&question->tries);
}

void sgi_questions_stop_sending_answers(segue_request *request)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions.list, link)
        sgi_tries_stop(&question->tries);
}

sgi_question *sgi_question_find_open(segue_request *request, const char *key)
{
    sgi_question *question = sgi_question_find(request, sgi_str_of(key));
    return question && question->state == SGI_QUESTION_OPEN ? question : NULL;
}

bool sgi_questions_are_open(const segue_request *request)
{
    const sgi_question *question;
    TAILQ_FOREACH(question, &request->questions.list, link)
        if (!question->answer)
            return true;
    return false;
}

bool sgi_questions_are_under_way(const segue_request *request)
{
    const sgi_question *question;
    TAILQ_FOREACH(question, &request->questions.list, link)
        if (question->state == SGI_QUESTION_OPEN ||
            question->state == SGI_QUESTION_ANSWERED)
            return true;
    return false;
}

bool sgi_questions_override_member(const segue_request *request,
                                   const sgi_json_member *member)
{
    return request->questions.rounds && (sgi_json_key_is(member, "inputResponses") ||
                                         sgi_json_key_is(member, "requestState"));
}

void sgi_questions_write_answers(const segue_request *request, sgi_jw *w)
{
    const sgi_question *question;
    if (!TAILQ_EMPTY(&request->questions.list)) {
        sgi_jw_key(w, "inputResponses");
        sgi_jw_open(w, '{');
        TAILQ_FOREACH(question, &request->questions.list, link) {
            sgi_jw_key_str(w, sgi_str_of(question->key));
            sgi_jw_raw(w, (sgi_str){question->answer, question->answer_len});
        }
        sgi_jw_close(w, '}');
    }
    if (request->questions.state)
        sgi_jw_member_raw(
            w, "requestState",
            (sgi_str){request->questions.state, request->questions.state_len});
}
