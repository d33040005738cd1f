/* What a tools/call, or a question, asks for: the tool, the idempotency key, the task,
 * and what becomes of it by the rules of its era (negotiate.h,
 * dialect/response_modes.h). */
#ifndef SGI_CALL_REQUEST_H
#define SGI_CALL_REQUEST_H

#include "engine/dialect/dialect.h"

typedef struct sgi_call_request {
    const sgi_call_kind *kind;
    sgi_str name;
    sgi_item *tool;
    sgi_verdict verdict;
    const sgi_dialect *dialect; /* that a task of it is born in */
    uint32_t caps;              /* what the client can do for this request */
    bool has_key;
    uint8_t key[SGI_DIGEST_SIZE];
    uint8_t digest[SGI_DIGEST_SIZE];
    int64_t ttl_ms;       /* that the client wishes for its task; 0 = none */
    uint8_t listed_modes; /* sgi_response_mode: of the request, */
    uint8_t modes;        /* ... and those of them that may be used */
    const struct sgi_pieces_form *pieces; /* its client sees the result grow; or NULL */
    sgi_json token;                       /* ... and knows it by this */
    bool resumable;                       /* its client may come again for it (Z) */
} sgi_call_request;

/* False when it was answered with an error. */
bool sgi_call_request_read(const sgi_inbound *in, sgi_call_request *request);
/* The same of a question that somebody answers. */
bool sgi_call_request_read_question(const sgi_inbound *in, const sgi_call_kind *kind,
                                    sgi_call_request *request);
/* Fills pieces and token. */
void sgi_call_request_pieces(const sgi_inbound *in, sgi_call_request *request);
/* Fills the rest: verdict, dialect, caps and modes; false when it was answered with an
 * error. */
bool sgi_call_request_decide(const sgi_inbound *in, sgi_call_request *request);

#endif
