/* Questions that a server sends as requests of its own (elicitation, sampling, roots), in
 * versions that begin with `initialize`. Each question goes to the application's request
 * to which it belongs, and the application's answer goes back to the server as a
 * response. The client remembers a question as long as that request exists. If a resumed
 * stream brings the question again, the client recognizes the question and sends the same
 * answer (R-975-16). The id of a question is valid only in its wire session. When the
 * wire session is gone, its questions are closed, and the server asks them again. */
#ifndef SGI_SERVER_QUESTIONS_H
#define SGI_SERVER_QUESTIONS_H

#include "engine/conversation/conn.h"

/* Handles a request of the server, for example a question. */
void sgi_server_question_handle(segue_session *session, const sgi_message *msg);
/* Handles a malformed request of the server. If the request has an id, the client answers
 * with an error. */
void sgi_server_question_refuse_malformed(segue_session *session, const sgi_message *msg);
/* True when the server's request is a question of a kind that the client did not declare.
 * sgi_server_question_handle answers such a request with an error. */
bool sgi_server_question_is_undeclared(const segue_session *session,
                                       const sgi_message *msg);
/* Closes the question that `params` names, because the server has withdrawn the question.
 * Returns false when the server has not asked such a question. */
bool sgi_server_question_withdraw(segue_session *session, sgi_json params);
/* Answers the question with this key. Returns SEGUE_E_NOT_FOUND when no open question has
 * the key, and SEGUE_E_INVALID when the value cannot be an answer. */
segue_status sgi_server_question_answer(segue_request *request, const char *key,
                                        sgi_json answer);
/* Answers the question with this key. The answer is an error object. */
segue_status sgi_server_question_answer_error(segue_request *request, const char *key,
                                              sgi_json error);
/* Sends the answers that wait because too many messages were under way. Called when a
 * message has reached the server. */
void sgi_server_questions_send_answers(segue_session *session);
/* Sends the answer to the question with this id again, because the answer may not have
 * reached the server. A server that gets an answer twice recognizes the id (R-975-16) or
 * drops the second answer. */
void sgi_server_question_resend_answer(segue_session *session, sgi_str id);
/* Notes that the server has taken the answer to this question, or has refused it for
 * good. */
void sgi_server_question_note_taken(segue_session *session, sgi_str id);
/* Returns the application's request to which a question belongs
 * (server_question_owner.c). task_id: the task that the question names; empty = no task.
 * Returns NULL when the question belongs to no request. */
segue_request *sgi_server_question_owner(segue_session *session, sgi_json task_id);
/* True when at least one revision of the protocol has a question with this method. */
bool sgi_server_question_is_known_method(sgi_str method);
/* True when the application has declared at least one kind of question. */
bool sgi_server_questions_are_declared(const segue_session *session);
/* True when the application has received a question of this request and has not answered
 * it yet. */
bool sgi_server_questions_are_open(const segue_request *request);
/* Closes the questions of a request that has ended. If the server may still need the
 * answer to an open question, the client answers with an error. */
void sgi_server_questions_end(segue_request *request);
void sgi_server_questions_clear(segue_request *request);

#endif
