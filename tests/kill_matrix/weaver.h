/* The restartable, streaming tool of the kill matrix. */
#ifndef WEAVER_H
#define WEAVER_H

#include <segue/segue.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct weaving;

typedef struct weaver {
    LIST_HEAD(, weaving) weavings;
    uint64_t resumed; /* number of runs that went on from an earlier one */
    uint64_t let_go;  /* number of runs that were told to stop */
} weaver;

/* Runs the tool; user is the weaver. Arguments: count, size (maximum bytes of a text),
 * paceUs (from one segment to the next). */
void weaver_call(void *user, segue_call *call);

/* Sends what is due; returns the milliseconds until the next segment. */
int64_t weaver_work(weaver *owner, int64_t most_ms);

#endif
