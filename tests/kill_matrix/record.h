/* What clients have seen of one task. */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct findings {
    uint64_t segments; /* seen by some client; each counted once */
    uint64_t lost;
    uint64_t duplicated;
    uint64_t altered;
} findings;

typedef struct record {
    char **texts; /* [number - 1]; NULL = seen by nobody yet */
    size_t count; /* how many the tool makes */
    findings *found;
} record;

/* One client's way through the task. */
typedef struct view {
    uint64_t last; /* number */
} view;

bool record_begin(record *r, size_t count, findings *found);
void record_free(record *r);

/* A view has been given a segment. False when out of memory. */
bool record_see(record *r, view *v, uint64_t number, const char *text, size_t len);

/* A view has come to the end and was given the whole result. */
void record_judge(record *r, view *v, const char *json, size_t len);

/* What was not seen by the time that a task has failed is lost. */
void record_give_up(record *r, const view *v);

/* A digest of all texts, in hexadecimal: what every other view of the task must have. */
void record_digest(const record *r, char hex[65]);

/* Tries the counting with right and wrong results; false when it is wrong. */
bool record_self_test(void);

#endif
