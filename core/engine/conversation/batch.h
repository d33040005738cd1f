/* Batches of 2025-03-26 (basic, "Batching"; JSON-RPC 2.0, 6): several messages in one
 * text. The answers to a batch are sent as one array. Over HTTP, the answers can instead
 * be events of a stream.
 *
 * sending.c recognises the answer to a request of a batch by its id, and this file
 * collects the answer. So the code that answers a request does not know about batches.
 * All functions are called under the engine's lock. */
#ifndef SGI_BATCH_H
#define SGI_BATCH_H

#include "engine/conversation/conn.h"

#define SGI_BATCH_MAX 64 /* maximum number of messages in a batch */

/* ---- input ---- */

/* Returns the reason why this JSON array is not a valid batch, or NULL when the array is
 * a valid batch. */
const char *sgi_batch_find_problem(sgi_str text);
/* True when at least one message of the batch gets an answer. */
bool sgi_batch_wants_answer(sgi_engine *engine, sgi_str text);
/* Begins to collect the answers of a batch. The batch stays open at least until
 * sgi_batch_close. Returns NULL when out of memory. */
sgi_batch_answer *sgi_batch_open(sgi_conn *conn);
/* Adds the id of a request whose answer must be collected. Returns false when out of
 * memory. */
bool sgi_batch_expect(sgi_batch_answer *batch, sgi_str id);
/* Called when all messages of the batch were handed to the role. Frees the batch if all
 * answers are collected or the conversation was lost. Otherwise the last answer frees the
 * batch. */
void sgi_batch_close(sgi_conn *conn, sgi_batch_answer *batch);

/* ---- output ---- */

/* Returns the batch with the unanswered request that has this id, or NULL when there is
 * no such batch. */
sgi_batch_answer *sgi_batch_of_request(const sgi_conn *conn, sgi_str id);
/* Stores an answer until all answers of the batch are collected. Returns false when out
 * of memory. */
bool sgi_batch_keep_answer(sgi_conn *conn, sgi_batch_answer *batch, sgi_str message);
/* Notes that the answer to this id was collected or sent. Frees the batch if no other
 * request of the batch waits for an answer. */
void sgi_batch_note_answered(sgi_conn *conn, sgi_batch_answer *batch, sgi_str id);
/* Notes that the request with this id gets no answer, so that the batch does not wait for
 * the answer. */
void sgi_batch_note_no_answer(sgi_conn *conn, sgi_str id);
/* Sends the answers that were collected so far. Called when the exchange has become an
 * event stream. */
void sgi_batch_send_collected(sgi_conn *conn);
/* Frees all batches of a conversation that was lost. */
void sgi_batches_free(sgi_conn *conn);

#endif
