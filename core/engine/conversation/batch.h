/* Batches of 2025-03-26 (basic, "Batching"; JSON-RPC 2.0, 6): several messages in one
 * text. Their answers are sent back as one array. Over HTTP they may also be the events
 * of a stream.
 *
 * sending.c recognises an answer of a batch by its id and collects it here. So the code
 * that answers a request does not know about batches. All functions are called under the
 * engine's lock. */
#ifndef SGI_BATCH_H
#define SGI_BATCH_H

#include "engine/conversation/conn.h"

#define SGI_BATCH_MAX 64 /* the largest number of messages in a batch */

/* ---- input ---- */

/* Returns why this JSON array is not a valid batch; NULL when the array is a valid
 * batch. */
const char *sgi_batch_find_problem(sgi_str text);
/* True when at least one message of the batch gets an answer. */
bool sgi_batch_wants_answer(sgi_engine *engine, sgi_str text);
/* Begins to collect the answers of a batch. The batch stays open at least until
 * sgi_batch_close. Returns NULL when out of memory. */
sgi_batch_answer *sgi_batch_open(sgi_conn *conn);
/* Adds the id of a request whose answer is to be collected. False when out of memory. */
bool sgi_batch_expect(sgi_batch_answer *batch, sgi_str id);
/* Called when all messages of the batch were handed to the role. If all answers are
 * there, or if the conversation was lost, frees the batch; otherwise the last answer
 * frees it. */
void sgi_batch_close(sgi_conn *conn, sgi_batch_answer *batch);

/* ---- output ---- */

/* Returns the batch that contains the request with this id, while that request has no
 * answer; otherwise NULL. */
sgi_batch_answer *sgi_batch_of(const sgi_conn *conn, sgi_str id);
/* Stores an answer until all answers of the batch have come. Returns false when out of
 * memory. */
bool sgi_batch_keep(sgi_conn *conn, sgi_batch_answer *batch, sgi_str message);
/* Notes that the answer to this id was collected or sent. When no other request of the
 * batch waits, frees the batch. */
void sgi_batch_answered(sgi_conn *conn, sgi_batch_answer *batch, sgi_str id);
/* Notes that no answer to this id will come, so that the batch does not wait for it. */
void sgi_batch_drop(sgi_conn *conn, sgi_str id);
/* Sends the answers that were collected so far, because the exchange has become an event
 * stream. */
void sgi_batch_release(sgi_conn *conn);
/* Frees all batches of a conversation that was lost. */
void sgi_batches_free(sgi_conn *conn);

#endif
