/* Functions for two dialects in which a result comes in pieces while it grows. In dialect
 * P (PR 776) the pieces are further responses. In dialect PN (SEP-2998) the pieces of a
 * call are notifications. */
#ifndef SGI_CLI_PIECES_H
#define SGI_CLI_PIECES_H

#include "engine/client/request.h"

/* True when the result of this request can come in pieces in this dialect: the result has
 * a list, and the session has switched the dialect on. */
bool sgi_cli_pieces_are_possible(const segue_request *request, uint32_t dialect);

/* Notes that a piece has arrived, and restarts the time limit of the request. A piece
 * without content does not restart the time limit. *empty counts such pieces in a row;
 * when it exceeds a limit, the request ends (R-776-29) and the function returns false. */
bool sgi_cli_pieces_note_received(segue_request *request, int32_t *empty, sgi_json list,
                                  sgi_json structured);
/* Stops reading input while the inbox is full. Credit is the number of segments that the
 * application still takes. An exchange that carries only this request is not read until
 * the application gives credit. A pipe also carries other requests. So a request with
 * credit stops a pipe until its callbacks have run, and a request without credit does not
 * stop a pipe: the function returns false. */
bool sgi_cli_pieces_pause_when_full(segue_request *request);

/* Drops the exchange and ends the request with this error. */
void sgi_cli_pieces_fail(segue_request *request, segue_status status, const char *why);
void sgi_cli_pieces_fail_too_large(segue_request *request);
void sgi_cli_pieces_fail_limit(segue_request *request, const char *what, sgi_limit limit);
/* Checks the size of the pieces that wait in the inbox until the application takes more
 * segments (gives credit). The client cannot fetch these pieces again. When the pieces
 * are larger than max_result_bytes, ends the request and returns false. */
bool sgi_cli_pieces_check_waiting_size(segue_request *request);

#endif
