/* What a response says under 2025-11-25 and SEP-1905, by its members (R-1905-52): a plain
 * result, a task, or segments of one. Views. */
#ifndef SGI_RESPONSE_2025_H
#define SGI_RESPONSE_2025_H

#include "wire/json_read.h"
#include "wire/json_write.h"

typedef enum sgi_response_kind {
    SGI_RESPONSE_PLAIN = 0, /* the result, whole */
    SGI_RESPONSE_TASK,      /* a task, without segments */
    SGI_RESPONSE_SEGMENTS,
    SGI_RESPONSE_MALFORMED
} sgi_response_kind;

typedef struct sgi_response {
    sgi_response_kind kind;
    sgi_json result;
    sgi_json task;     /* the member, or empty */
    sgi_json named;    /* an object with the taskId, or empty */
    sgi_json segments; /* the list */
    bool complete;
    bool is_error;
    bool fell_back;  /* a task, as the server has no mode that was asked for */
    sgi_json error;  /* that ended it, from a server of this library; or empty */
    uint64_t voided; /* segments up to this one do not count for the result */
} sgi_response;

void sgi_response_read(sgi_json result, sgi_response *reply);

/* Segments are objects with a seqNr from 1 to 2^53 - 1; a list with any other is dropped
 * whole (R-1905-61). */
bool sgi_response_has_good_segments(const sgi_response *reply);
uint64_t sgi_response_number(sgi_json segment);
/* The segment without its number, as the result has it. */
void sgi_response_block(sgi_json segment, sgi_buf *out);
/* The members beside the list (R-1905-64), as an object; without any, "{}". */
void sgi_response_fields(const sgi_response *reply, sgi_buf *out);
/* A whole result without what only this dialect says of it; false: it says nothing. */
bool sgi_response_clean(const sgi_response *reply, sgi_buf *out);
/* A result of any version without what it says of segments that were replaced, or went
 * on; false: it says nothing. */
bool sgi_response_drop_void(sgi_json result, sgi_buf *out);

#endif
