/* An answer to a question of an operation in the store that is not out here: the process
 * that asked has ended, or another server of the same store asked, or the client answers
 * in another session. Its id says which operation and which question it is for
 * (question_id.h); it is looked for by them, and belongs to whoever owns the operation.
 * At another server it goes on as a letter (errands.h). */
#ifndef SGI_LATE_ANSWER_H
#define SGI_LATE_ANSWER_H

#include "engine/question_id.h"
#include "engine/serving/peer.h"

/* That are looked for at once; bytes that they hold. One by itself goes, whatever its
 * size. */
#define SGI_LATE_ANSWERS_MAX 64
#define SGI_LATE_ANSWERS_BYTES ((size_t)16 * 1024 * 1024)

bool sgi_late_has_room(const segue_server *server, size_t len);
sgi_answered sgi_late_answer(sgi_peer *peer, const sgi_question_parts *parts,
                             bool is_error, sgi_json answer);
/* Nobody waits for an answer with this id: that is counted, and the log says so. */
void sgi_answer_dropped(sgi_engine *engine, sgi_json id);

#endif
