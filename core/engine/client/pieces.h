/* Functions shared by the dialects in which a result comes in pieces before its end: by
 * further responses (dialect P) or by notifications (dialect PN, calls only). */
#ifndef SGI_CLI_PIECES_H
#define SGI_CLI_PIECES_H

#include "engine/client/request.h"

/* True when the result of this request has a list, so that it can come in pieces, and the
 * session has this dialect switched on. */
bool sgi_cli_pieces_wanted(const segue_request *request, uint32_t dialect);

/* Notes that a piece has arrived and restarts the time limit of the request. A piece
 * without content does not restart it, and the number of such pieces in a row (*empty)
 * has a limit (R-776-29). Returns false when the limit ended the request. */
bool sgi_cli_pieces_received(segue_request *request, int32_t *empty, sgi_json list,
                             sgi_json structured);
/* Stops reading input while the inbox is full. An exchange that carries nothing but this
 * request waits until the application gives credit. A pipe that other requests share
 * waits for callbacks, but not for the credit of one request: then nothing is stopped,
 * and the function returns false. */
bool sgi_cli_pieces_keep_pace(segue_request *request);

/* Drops the exchange and ends the request with this error. */
void sgi_cli_pieces_fail(segue_request *request, segue_status status, const char *why);
void sgi_cli_pieces_fail_size(segue_request *request);
void sgi_cli_pieces_fail_limit(segue_request *request, const char *what, sgi_limit limit);
/* Checks the size of the pieces that wait in the inbox for credit and cannot be fetched
 * again. When they are larger than max_result_bytes, the function ends the request and
 * returns false. */
bool sgi_cli_pieces_may_wait(segue_request *request);

#endif
