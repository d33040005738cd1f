/* The parts of a tools/call, or of a question: the tool, the idempotency key and the
 * task. The struct also holds the decision on how the server answers the call
 * (dialects.h, negotiate.h). */
#ifndef SGI_CALL_REQUEST_H
#define SGI_CALL_REQUEST_H

#include "engine/server/dialects.h"

struct sgi_call_request {
    const sgi_call_kind *kind;
    sgi_str name;
    sgi_item *tool;
    sgi_verdict verdict;
    /* the dialect of the task if this call can make a task; NULL = the call cannot make a
     * task */
    const sgi_srv_dialect *dialect;
    /* the capabilities that the client has declared for this request: a set of sgi_cap */
    uint32_t caps;
    bool has_key;
    uint8_t key[SGI_DIGEST_SIZE];
    uint8_t digest[SGI_DIGEST_SIZE];
    /* time to live that the client requests for the task; 0 = the client names no time */
    int64_t ttl_ms;
    /* the response modes that the request lists: a set of sgi_response_mode */
    uint8_t listed_modes;
    /* the listed response modes that the server may use: a set of sgi_response_mode */
    uint8_t modes;
    /* the form of the pieces in which the client gets a growing result; NULL = only the
     * whole result is sent */
    const struct sgi_pieces_ops *pieces;
    /* the token with which the client recognises pieces of the result */
    sgi_json token;
    /* the functions of a lasting call (its client can leave and come back); NULL = the
     * call is not lasting */
    const sgi_lasting_call_ops *lasting;
};

/* Reads a tools/call. Returns false when the request is refused; the error has then been
 * sent. Also returns false when the application is asked whether the caller sees the
 * tool; the request is then handled again. */
bool sgi_call_request_read(const sgi_inbound *in, sgi_call_request *request);
/* Reads a question that the other end of the connection asks with a request. Returns
 * false when the question is refused; the error has then been sent. */
bool sgi_call_request_read_question(const sgi_inbound *in, const sgi_call_kind *kind,
                                    sgi_call_request *request);
/* Decides whether the client gets pieces of the result: fills `pieces` and `token`. */
void sgi_call_request_read_pieces(const sgi_inbound *in, sgi_call_request *request);
/* True when this request can be answered with several responses (PR 776). */
bool sgi_request_allows_several_responses(const sgi_inbound *in);
/* Decides how the server answers the call: fills the members verdict, dialect, caps and
 * modes. Returns false when the request is refused; the error has then been sent. */
bool sgi_call_request_negotiate(const sgi_inbound *in, sgi_call_request *request);

#endif
