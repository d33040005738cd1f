/* Functions shared by the dialects in which a result comes in pieces before its end: by
 * further responses (dialect P) or by notifications (dialect PN, calls only). */
#ifndef SGI_CLI_PIECES_H
#define SGI_CLI_PIECES_H

#include "engine/client/request.h"

/* True when the result of this request has a list and the session has not switched this
 * dialect off. */
bool sgi_cli_pieces_wanted(const segue_request *request, uint32_t dialect);

/* Notes that a piece has arrived and restarts the time limit. A piece without content
 * does not restart it, and the number of such pieces in a row (*empty) has a limit
 * (R-776-29). Returns false when the request has ended. */
bool sgi_cli_pieces_received(segue_request *request, int32_t *empty, sgi_json list,
                             sgi_json structured);
/* Stops reading input while the inbox is full. An exchange that carries nothing but this
 * request waits for the application's credit as long as needed. A pipe that other
 * requests share waits for callbacks, but not for the credit of one request. In this case
 * the function stops nothing and returns false. */
bool sgi_cli_pieces_keep_pace(segue_request *request);

/* Drops the exchange and ends the request with this error. */
void sgi_cli_pieces_fail(segue_request *request, segue_status status, const char *why);
void sgi_cli_pieces_fail_size(segue_request *request);
void sgi_cli_pieces_fail_limit(segue_request *request, const char *what, sgi_limit limit);
/* Checks the size of pieces that were read although the application gave no credit for
 * them, and that the server does not send again. When more than max_result_bytes wait,
 * the function ends the request and returns false. */
bool sgi_cli_pieces_may_wait(segue_request *request);

#endif
