/* Serves each message of a batch as if it had been sent alone. conversation/batch.h
 * collects the answers. */
#ifndef SGI_SERVE_BATCH_H
#define SGI_SERVE_BATCH_H

#include "engine/server/serving.h"

/* The function `batch` of the server's role: serves a batch. Returns false when the
 * negotiated revision has no batches. */
bool sgi_peer_batch(void *peer, sgi_str text);
/* Serves a text for which sgi_conn_is_batch is true. */
void sgi_serve_batch(sgi_peer *peer, sgi_str text);

#endif
