/* The error that a server sends shortly before it ends, for requests that it has not
 * begun. The client sends such a request again later, and the server that has replaced
 * the ended server answers the request. */
#ifndef SGI_ENDING_H
#define SGI_ENDING_H

#define SGI_ENDING_REASON "server_ending"
#define SGI_ENDING_TEXT "The server is about to end"
#define SGI_ENDING_DATA "{\"reason\":\"" SGI_ENDING_REASON "\",\"retryAfterMs\":1000}"

#endif
