/* Reads a response of 2025-11-25 and SEP-1905. The members of the response show whether
 * it is a plain result, a task, or segments of a task (R-1905-52). All texts are views
 * into the response. */
#ifndef SGI_RESPONSE_2025_H
#define SGI_RESPONSE_2025_H

#include "wire/json_read.h"
#include "wire/json_write.h"

typedef enum sgi_2025_response_kind {
    SGI_2025_RESPONSE_PLAIN = 0, /* the response is the whole result */
    SGI_2025_RESPONSE_TASK,      /* the response is a task, without segments */
    SGI_2025_RESPONSE_SEGMENTS,
    SGI_2025_RESPONSE_MALFORMED
} sgi_2025_response_kind;

typedef struct sgi_2025_response {
    sgi_2025_response_kind kind;
    sgi_json result;
    sgi_json task; /* the member `task` of the response; empty = no such member */
    /* an object of the response that has a taskId; empty = no such object */
    sgi_json named;
    sgi_json segments; /* the list of segments (JSON array) */
    bool complete;
    bool is_error;
    /* true when the server supports none of the modes that the call listed and has made a
     * plain task */
    bool fell_back;
    /* the error object that ended the task, which only servers of this library send;
     * empty = no such object */
    sgi_json error;
    uint64_t voided; /* segments up to this number are void */
} sgi_2025_response;

void sgi_2025_response_read(sgi_json result, sgi_2025_response *reply);

/* True when each segment is an object with a seqNr from 1 to 2^53 - 1. When the result is
 * false, the caller drops the whole list (R-1905-61). */
bool sgi_2025_response_has_good_segments(const sgi_2025_response *reply);
uint64_t sgi_2025_segment_number(sgi_json segment);
/* Writes a segment as a block of the result: without its number. */
void sgi_2025_segment_write_block(sgi_json segment, sgi_buf *out);
/* Writes the members of the response outside the list (R-1905-64) as one object; "{}"
 * when there are no such members. */
void sgi_2025_response_write_fields(const sgi_2025_response *reply, sgi_buf *out);
/* Writes a whole result without the members that only this dialect has. Returns false,
 * and writes nothing, when the result has no such members. */
bool sgi_2025_response_write_stripped(const sgi_2025_response *reply, sgi_buf *out);
#endif
