/* The errors of a server that ends or has ended. The first is sent shortly before the
 * end, for requests that the server has not begun, and for requests that wait for the
 * result of a task that the server has released. The client sends such a request again
 * later, and the server that has replaced the ended server answers the request. The
 * second is sent when a request ends without an answer. The request may have begun, and
 * the client handles the error like a lost connection. The third is the end of a stored
 * operation whose handler was lost with its process. */
#ifndef SGI_ENDING_H
#define SGI_ENDING_H

#define SGI_ENDING_REASON "server_ending"
#define SGI_ENDING_TEXT "The server is about to end"
#define SGI_ENDING_DATA "{\"reason\":\"" SGI_ENDING_REASON "\",\"retryAfterMs\":1000}"

#define SGI_UNANSWERED_REASON "request_ended"
#define SGI_UNANSWERED_TEXT "The server ended the request before its answer was ready"
#define SGI_UNANSWERED_DATA "{\"reason\":\"" SGI_UNANSWERED_REASON "\"}"

#define SGI_RESTARTED_REASON "server_restarted"
#define SGI_RESTARTED_TEXT "Server restarted"
#define SGI_RESTARTED_DATA "{\"reason\":\"" SGI_RESTARTED_REASON "\"}"

#endif
