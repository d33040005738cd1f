/* One task after the other: each is made, read by one or two clients, and compared. */
#ifndef READER_H
#define READER_H

#include <segue/segue.h>

#include "record.h"

#define MOST_SESSIONS 4

/* Data that all readers share. */
typedef struct crowd {
    segue_session *sessions[MOST_SESSIONS];
    size_t session_count;
    size_t modern_count; /* the first sessions are modern; a token is valid for sessions
                          * of one revision */
    uint64_t random;
    int64_t count; /* number of segments */
    int64_t size;  /* further arguments of the tool */
    int64_t pace_us;
    findings found;
    uint64_t tasks;   /* number of tasks that have ended */
    uint64_t failed;  /* number of tasks that ended with an error */
    uint64_t resumed; /* number of views that went on with a token in another session */
    size_t running;
    bool stopping; /* true = no more tasks are made */
} crowd;

/* Starts the first task of a reader. The reader lives until its last task has ended after
 * `stopping` was set. Returns false when memory runs out. */
bool reader_start(crowd *c);

#endif
