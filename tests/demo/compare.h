/* What became of a text on its way. */
#ifndef COMPARE_H
#define COMPARE_H

#include "text.h"

typedef struct comparison {
    size_t segments;   /* that arrived */
    size_t lost;       /* are not there */
    size_t duplicated; /* are there and should not be */
    size_t altered;    /* are there with other bytes */
    bool same_bytes;   /* the two texts are equal, byte by byte */
} comparison;

/* Compares what was sent with what arrived, segment by segment and byte by byte. False
 * when out of memory. */
bool compare_texts(const text *sent, const text *arrived, comparison *out);

#endif
