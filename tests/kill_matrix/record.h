/* The segments that clients have seen of one task. */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct findings {
    uint64_t segments; /* segments seen by any client; each counted once */
    uint64_t lost;
    uint64_t duplicated;
    uint64_t altered;
} findings;

typedef struct record {
    char **texts; /* [number - 1]; NULL = not seen yet */
    size_t count; /* how many segments the tool makes */
    findings *found;
} record;

/* One client's way through the task. */
typedef struct view {
    uint64_t last; /* number of its last segment */
} view;

bool record_begin(record *r, size_t count, findings *found);
void record_free(record *r);

/* Notes a segment that a view got. Returns false when memory runs out. */
bool record_see(record *r, view *v, uint64_t number, const char *text, size_t len);

/* Checks the whole result that a view got at its end. */
void record_judge(record *r, view *v, const char *json, size_t len);

/* Counts the segments as lost that were not seen when a task has failed. */
void record_give_up(record *r, const view *v);

/* Writes a digest of all texts, in hexadecimal: every other view of the task must have
 * the same. */
void record_digest(const record *r, char hex[65]);

/* Tests the counts with right and wrong results; returns false when one is wrong. */
bool record_self_test(void);

#endif
