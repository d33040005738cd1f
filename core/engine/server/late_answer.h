/* Handles an answer to a question of a stored operation that this server has not asked in
 * this session. The process that asked the question may have ended, another server on the
 * store may have asked, or the client may answer in another session. The answer's id
 * names the operation and the question (question_id.h). The server looks up both and
 * accepts the answer only from the owner of the operation. If another server runs the
 * operation, the answer is forwarded to that server as a command (forwarding.h).
 *
 * Over HTTP the POST that brings such an answer gets 202 when the store has the answer,
 * and 503 when that fails. The server that asked does not see the answer, so only the
 * client can send the answer again. */
#ifndef SGI_LATE_ANSWER_H
#define SGI_LATE_ANSWER_H

#include "engine/input/question_id.h"
#include "engine/server/peer.h"

sgi_answered sgi_take_late_answer(sgi_peer *peer, const sgi_question_id_parts *parts,
                                  bool is_error, sgi_json answer);
/* Answers the POST that brought an answer: 202 when the answer was taken, otherwise 503,
 * after which the client sends the answer again. */
void sgi_answer_end_post(sgi_conn *post, bool taken);
/* Ends the POSTs whose answers the store has not confirmed. Called when the runtime
 * ends. */
void sgi_late_answers_end_all(segue_server *server);
/* Counts and logs an answer that is dropped because no open question has its id. */
void sgi_answer_log_dropped(sgi_engine *engine, sgi_json id);

#endif
