/* Serves each message of a batch as if it had been sent alone. conversation/batch.h
 * collects the answers. */
#ifndef SGI_SERVE_BATCH_H
#define SGI_SERVE_BATCH_H

#include "engine/server/serving.h"

/* Serves a batch. This function is the member `batch` of the server's role. Returns false
 * when the text is not a batch, or when the negotiated version has no batches. */
bool sgi_peer_serve_batch(void *peer, sgi_str text);
/* Serves a batch. The caller has checked that the text is a batch (sgi_conn_is_batch). */
void sgi_serve_batch(sgi_peer *peer, sgi_str text);

#endif
