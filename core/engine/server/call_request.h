/* The parts of a tools/call, or of a question: the tool, the idempotency key and the
 * task. It also has the decision how the call is served in its era (dialects.h,
 * negotiate.h). */
#ifndef SGI_CALL_REQUEST_H
#define SGI_CALL_REQUEST_H

#include "engine/server/dialects.h"

struct sgi_call_request {
    const sgi_call_kind *kind;
    sgi_str name;
    sgi_item *tool;
    sgi_verdict verdict;
    const sgi_srv_dialect *dialect; /* the dialect of the task that this call makes */
    /* sgi_cap: what the client has declared for this request */
    uint32_t caps;
    bool has_key;
    uint8_t key[SGI_DIGEST_SIZE];
    uint8_t digest[SGI_DIGEST_SIZE];
    /* time to live that the client requests for the task; 0 = none requested */
    int64_t ttl_ms;
    uint8_t listed_modes; /* sgi_response_mode: the modes that the request lists */
    uint8_t modes;        /* the listed modes that may be used */
    /* how the client receives the result while it grows; NULL = it receives only the
     * whole result */
    const struct sgi_pieces_form *pieces;
    /* the token by which the client identifies these pieces */
    sgi_json token;
    /* the functions of a lasting call; NULL = the call is not lasting */
    const sgi_lasting_form *lasting;
};

/* Reads the request. Returns false when the request was answered with an error. */
bool sgi_call_request_read(const sgi_inbound *in, sgi_call_request *request);
/* Reads a question that the other end of the connection asks. Returns false when the
 * question was answered with an error. */
bool sgi_call_request_read_question(const sgi_inbound *in, const sgi_call_kind *kind,
                                    sgi_call_request *request);
/* Fills pieces and token. */
void sgi_call_request_read_pieces(const sgi_inbound *in, sgi_call_request *request);
/* True when this request may be answered with several responses (dialect P). */
bool sgi_request_allows_partial(const sgi_inbound *in);
/* Negotiates how the call is served: fills verdict, dialect, caps and modes. Returns
 * false when the request was answered with an error. */
bool sgi_call_request_negotiate(const sgi_inbound *in, sgi_call_request *request);

#endif
