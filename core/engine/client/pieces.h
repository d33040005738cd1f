/* Functions that two dialects share in which a result comes in pieces before its end: by
 * further responses (dialect P) or by notifications (dialect PN, calls only). */
#ifndef SGI_CLI_PIECES_H
#define SGI_CLI_PIECES_H

#include "engine/client/request.h"

/* True when the result of this request can come in pieces in this dialect: the result has
 * a list, and the dialect is switched on for the session. */
bool sgi_cli_pieces_wanted(const segue_request *request, uint32_t dialect);

/* Notes that a piece has arrived, and restarts the time limit of the request. A piece
 * without content does not restart the time limit, and the number of such pieces in a row
 * (*empty) is limited (R-776-29). Returns false when this limit has ended the request. */
bool sgi_cli_pieces_received(segue_request *request, int32_t *empty, sgi_json list,
                             sgi_json structured);
/* Stops reading input while the inbox is full. An exchange that carries only this request
 * is not read until the application gives credit. A pipe also carries other requests: it
 * is not read until callbacks have run, but it does not wait for the credit of one
 * request. In this last case the function stops nothing and returns false. */
bool sgi_cli_pieces_keep_pace(segue_request *request);

/* Drops the exchange and ends the request with this error. */
void sgi_cli_pieces_fail(segue_request *request, segue_status status, const char *why);
void sgi_cli_pieces_fail_size(segue_request *request);
void sgi_cli_pieces_fail_limit(segue_request *request, const char *what, sgi_limit limit);
/* Checks the size of the pieces that wait in the inbox for credit. The server does not
 * keep these pieces for a second fetch. When they are larger than max_result_bytes, ends
 * the request and returns false. */
bool sgi_cli_pieces_may_wait(segue_request *request);

#endif
