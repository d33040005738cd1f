/* Counts answers of clients, and their bytes, while the server looks up the question in
 * the store or forwards the answer to another server. late_answer.c and mailbox.c share
 * these counts. */
#ifndef SGI_LATE_USE_H
#define SGI_LATE_USE_H

#include "base/thresholds.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

/* The maximum number of counted answers at a time, and the maximum number of their bytes.
 * A single answer can have any size. */
#define SGI_LATE_ANSWERS_MAX SGI_THRESHOLD(late_answers_max)
#define SGI_LATE_ANSWERS_BYTES SGI_THRESHOLD(late_answers_bytes)

typedef struct sgi_late_answer_usage {
    size_t answers;
    size_t bytes;
    /* the answers whose POST is answered when the store has the answer */
    LIST_HEAD(, sgi_late_answer) waiting;
} sgi_late_answer_usage;

static inline bool sgi_late_answer_usage_has_room(const sgi_late_answer_usage *use,
                                                  size_t len)
{
    return use->answers < SGI_LATE_ANSWERS_MAX &&
           (!use->bytes || use->bytes + len <= SGI_LATE_ANSWERS_BYTES);
}

static inline void sgi_late_answer_usage_begin(sgi_late_answer_usage *use, size_t len)
{
    use->answers++;
    use->bytes += len;
}

static inline void sgi_late_answer_usage_end(sgi_late_answer_usage *use, size_t len)
{
    use->answers--;
    use->bytes -= len;
}

#endif
