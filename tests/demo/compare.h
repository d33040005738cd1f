/* Compares the text that was sent with the text that arrived. */
#ifndef COMPARE_H
#define COMPARE_H

#include "text.h"

typedef struct comparison {
    size_t segments;   /* segments that arrived */
    size_t lost;       /* segments that are missing */
    size_t duplicated; /* segments that should not be there */
    size_t altered;    /* segments with other bytes */
    bool same_bytes;   /* the two texts are equal, byte by byte */
} comparison;

/* Compares what was sent with what arrived, segment by segment and byte by byte. Returns
 * false when memory runs out. */
bool compare_texts(const text *sent, const text *arrived, comparison *out);

#endif
