/* The response that an exchange of the client receives at present. While the engine wants
 * no input, received bytes of an event stream are held here, and also the outcome of the
 * transfer if it ends meanwhile. */
#ifndef SGI_HTTP_CLIENT_RESPONSE_H
#define SGI_HTTP_CLIENT_RESPONSE_H

#include "transport/fetch.h"
#include "wire/sse.h"

typedef struct sgi_client_response {
    int32_t status; /* HTTP status; 0 = no response yet */
    bool is_events; /* true = the response is an event stream */
    bool is_json;
    sgi_buf body; /* JSON, or the text of an error */
    sgi_sse sse;
    /* received bytes that wait because the engine wants no input now */
    sgi_buf held;
    bool ended; /* true = the transfer has ended, and `held` has its last bytes */
    /* the fault with which the transfer has ended; valid if `ended` is true */
    sgi_fetch_fault fault;
    sgi_buf fault_text;
} sgi_client_response;

/* max_message: the maximum size of a message in bytes. */
void sgi_client_response_init(sgi_client_response *response, const sgi_mem *mem,
                              size_t max_message);
void sgi_client_response_free(sgi_client_response *response);
/* Called before a request is sent, again or for the first time. */
void sgi_client_response_begin(sgi_client_response *response);
/* True when the status is from 200 to 299. */
bool sgi_client_response_is_fine(const sgi_client_response *response);
/* Adds bytes to the body. If the body would be larger than max_message, or than the
 * maximum of an error, empties the body and returns false. */
bool sgi_client_response_add_body(sgi_client_response *response, sgi_str bytes,
                                  size_t max_message);
/* Holds bytes of an event stream. When out of memory, drops all held bytes and returns
 * false. */
bool sgi_client_response_hold(sgi_client_response *response, sgi_str bytes);
/* Stores the outcome of the transfer until the engine has read the held bytes. */
void sgi_client_response_keep_outcome(sgi_client_response *response,
                                      const sgi_fetch_outcome *outcome);
/* Moves out the stored outcome. *text receives its text, which the caller frees. */
sgi_fetch_outcome sgi_client_response_take_outcome(sgi_client_response *response,
                                                   sgi_buf *text);

#endif
