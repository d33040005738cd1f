/* Questions for which a server of the handshake eras sends requests of its own
 * (elicitation, sampling, roots). Each question goes to the application's request to
 * which it belongs, and the application's answer goes back to the server as a response.
 * The client remembers a question as long as that request exists. If a resumed stream
 * brings the question again, the client recognizes it and sends the same answer
 * (R-975-16). The id of a question is valid in its wire session only. When the wire
 * session is gone, its questions are closed, and the server asks them anew. */
#ifndef SGI_SERVER_QUESTIONS_H
#define SGI_SERVER_QUESTIONS_H

#include "engine/conversation/conn.h"

/* Handles a request of the server, which may be a question. */
void sgi_server_question_handle(segue_session *session, const sgi_message *msg);
/* Handles a malformed request of the server. If the request has an id, it is answered
 * with an error. */
void sgi_server_question_refuse_malformed(segue_session *session, const sgi_message *msg);
/* True when the server's request is a question of a kind that the client did not declare.
 * sgi_server_question_handle answers such a request with an error. */
bool sgi_server_question_is_undeclared(const segue_session *session,
                                       const sgi_message *msg);
/* Closes the question that the params name, because the server has withdrawn it. Returns
 * false when the server has not asked this question. */
bool sgi_server_question_withdraw(segue_session *session, sgi_json params);
/* Answers the question with this key. SEGUE_E_NOT_FOUND: no open question has the key.
 * SEGUE_E_INVALID: the value cannot be an answer. */
segue_status sgi_server_question_answer(segue_request *request, const char *key,
                                        sgi_json answer);
/* Answers the question with this key by an error object. */
segue_status sgi_server_question_answer_error(segue_request *request, const char *key,
                                              sgi_json error);
/* Sends the answers that were held back because too many messages were under way. Called
 * when a message has reached the server. */
void sgi_server_questions_send_answers(segue_session *session);
/* Sends the answer to the question with this id again, because the answer may not have
 * reached the server. A server that gets an answer twice recognizes the id (R-975-16) or
 * drops the second answer. */
void sgi_server_question_resend_answer(segue_session *session, sgi_str id);
/* Returns the application's request to which a question belongs
 * (server_question_owner.c). task_id: the task that the question names, or empty. NULL =
 * no request fits. */
segue_request *sgi_server_question_owner(segue_session *session, sgi_json task_id);
/* True when at least one revision of the protocol has a question with this method. */
bool sgi_server_question_is_known_method(sgi_str method);
/* True when the application has declared at least one kind of question. */
bool sgi_server_questions_are_declared(const segue_session *session);
/* True when the application has received a question of this request and has not answered
 * it yet. */
bool sgi_server_questions_are_open(const segue_request *request);
/* Closes the questions of a request that has ended. If the server may still need the
 * answer to an open question, it gets an error. */
void sgi_server_questions_end(segue_request *request);
void sgi_server_questions_clear(segue_request *request);

#endif
