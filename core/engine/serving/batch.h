/* Batches of 2025-03-26 (basic, "Batching"; JSON-RPC 2.0, 6): several messages in one
 * text, whose answers come back as one array. Over HTTP they may also be the events of a
 * stream.
 *
 * The messages are served as if they had come alone. What answers them is caught on its
 * way out (sending.c) by its id, so whoever answers a request knows of no batch. Under
 * the engine's lock. */
#ifndef SGI_BATCH_H
#define SGI_BATCH_H

#include "engine/conn.h"

#define SGI_BATCH_MAX 64 /* messages */

typedef struct sgi_peer sgi_peer;

/* ---- coming in ---- */

/* Of sgi_role: takes a batch, where the handshake allows one. */
bool sgi_peer_batch(void *peer, sgi_str text);
/* Serves what sgi_conn_is_batch has found to be one. */
void sgi_batch_serve(sgi_peer *peer, sgi_str text);
/* Is any of its messages to be answered? */
bool sgi_batch_wants_answer(sgi_engine *engine, sgi_str text);

/* ---- going out ---- */

/* The batch that waits for the answer to this id; NULL when none does. */
sgi_batch_answer *sgi_batch_of(const sgi_conn *conn, sgi_str id);
/* Keeps an answer until all are there. False when out of memory. */
bool sgi_batch_keep(sgi_conn *conn, sgi_batch_answer *batch, sgi_str message);
/* The answer to this id was kept or sent. After the last one the batch is over. */
void sgi_batch_answered(sgi_conn *conn, sgi_batch_answer *batch, sgi_str id);
/* This id will not be answered. */
void sgi_batch_drop(sgi_conn *conn, sgi_str id);
/* The exchange has become an event stream: what was kept goes out. */
void sgi_batch_release(sgi_conn *conn);
/* Nobody is there to be answered. */
void sgi_batches_free(sgi_conn *conn);

#endif
