/* The list of the questions for which a server has sent requests of its own. When a
 * request ends, this file closes the questions of the request. */
#include "engine/client/server_question_list.h"

void sgi_server_question_free(const sgi_mem *mem, sgi_server_question *server_question)
{
    if (server_question->request)
        sgi_engine_clear_timer(server_question->request->engine, &server_question->again);
    sgi_text_free(mem, server_question->id);
    sgi_text_free(mem, server_question->key);
    sgi_text_free(mem, server_question->related);
    sgi_form_defaults_free(&server_question->defaults, mem);
    sgi_question_form_free(&server_question->form, mem);
    if (server_question->answer)
        sgi_free(mem, server_question->answer, server_question->answer_len + 1);
    sgi_free(mem, server_question, sizeof *server_question);
}

void sgi_server_questions_clear(segue_request *request)
{
    sgi_server_question *server_question;
    while ((server_question = TAILQ_FIRST(&request->questions.from_server))) {
        TAILQ_REMOVE(&request->questions.from_server, server_question, link);
        sgi_server_question_free(sgi_engine_mem(request->engine), server_question);
    }
}

/* True when the id of the question is valid in the present wire session. The id of a
 * resumable request's question is unique, so it stays valid in later wire sessions. */
bool sgi_server_question_is_of_session(const segue_session *session,
                                       const sgi_server_question *server_question)
{
    return server_question->wire_session == session->wire_session ||
           server_question->resumes;
}

bool sgi_server_question_is_unanswered(const segue_session *session,
                                       const sgi_server_question *server_question)
{
    return !server_question->answer && !server_question->withdrawn &&
           sgi_server_question_is_of_session(session, server_question);
}

bool sgi_server_questions_are_open(const segue_request *request)
{
    const sgi_server_question *server_question;
    TAILQ_FOREACH(server_question, &request->questions.from_server, link)
        if (sgi_server_question_is_unanswered(request->session, server_question))
            return true;
    return false;
}

/* Answers a request of the server with an error. problem: the text of the error; NULL =
 * answers with an empty result instead, as for ping. Over HTTP each answer is an
 * exchange. When too many exchanges are under way, nothing is sent. */
void sgi_server_question_reply_error(segue_session *session, sgi_str id, int32_t code,
                                     const char *problem)
{
    sgi_sending sending;
    if (session->conn->exchanging && session->answers.under_way >= SGI_TELLING_MAX) {
        session->engine->warnings++;
        return;
    }
    sgi_conn *conn = sgi_session_begin_message(session);
    if (!conn)
        return;
    if (problem) {
        sgi_send_error(conn, id, code, sgi_str_of(problem), (sgi_json){0});
    } else {
        sgi_send_begin_result(&sending, conn, id, NULL);
        sgi_send_end(&sending);
    }
    sgi_session_send_message(session, conn);
}

/* True when the application has answered, and the server may not have the answer yet. */
static bool is_on_its_way(const segue_session *session,
                          const sgi_server_question *server_question)
{
    return server_question->answer && !server_question->withdrawn &&
           sgi_server_question_is_of_session(session, server_question) &&
           (server_question->due || server_question->again.slot ||
            server_question->carried);
}

segue_request *sgi_server_question_find_keeper(segue_session *session,
                                               const segue_request *from)
{
    segue_request *request, *found = NULL;
    TAILQ_FOREACH(request, &session->requests, link)
        if (request != from && !sgi_request_is_over(request) &&
            request->questions.count < SGI_QUESTIONS_MAX / 2 &&
            (!found || request->phase == SGI_PHASE_STAND))
            found = request;
    return found;
}

/* Gives the question to another request of the session, so that its answer is sent again
 * if it is lost. Without another request, nobody waits for what the question is about. */
static void hand_over(sgi_server_question *server_question)
{
    segue_request *from = server_question->request;
    segue_request *to = sgi_server_question_find_keeper(from->session, from);
    if (!to)
        return;
    TAILQ_REMOVE(&from->questions.from_server, server_question, link);
    from->questions.count--;
    server_question->request = to;
    TAILQ_INSERT_TAIL(&to->questions.from_server, server_question, link);
    to->questions.count++;
}

/* Closes the questions of a request that has ended. A question that came on the request's
 * own HTTP exchange gets no answer. Any other open question is answered with an error.
 * The server may need this answer, and answers that are on their way, for another
 * request. */
void sgi_server_questions_end(segue_request *request)
{
    segue_session *session = request->session;
    sgi_server_question *server_question, *next;
    SGI_TAILQ_EACH(server_question, &request->questions.from_server, link, next) {
        if (is_on_its_way(session, server_question)) {
            hand_over(server_question);
            continue;
        }
        bool waits = server_question->guessed || !session->conn->exchanging;
        if (!sgi_session_is_open(session) || !waits ||
            !sgi_server_question_is_unanswered(session, server_question))
            continue;
        server_question->withdrawn = true;
        sgi_server_question_reply_error(
            session, sgi_str_of(server_question->id), SGI_RPC_INTERNAL_ERROR,
            "The request that the question belonged to has ended");
    }
}
