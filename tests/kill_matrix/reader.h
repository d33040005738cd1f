/* One task after the other: made, read by one or two clients, compared. */
#ifndef READER_H
#define READER_H

#include <segue/segue.h>

#include "record.h"

#define MOST_SESSIONS 4

/* What all readers share. */
typedef struct crowd {
    segue_session *sessions[MOST_SESSIONS];
    size_t session_count;
    size_t modern_count; /* the first ones; tokens are for sessions of one revision */
    uint64_t random;
    int64_t count; /* of segments; */
    int64_t size;  /* and the other arguments of the tool */
    int64_t pace_us;
    findings found;
    uint64_t tasks;   /* that have ended */
    uint64_t failed;  /* ... otherwise than well */
    uint64_t resumed; /* views that went on with a token, in another session */
    size_t running;
    bool stopping; /* no more tasks are made */
} crowd;

/* Begins the first task of a reader. The reader lives until its last task has ended after
 * stopping was set. False when out of memory. */
bool reader_start(crowd *c);

#endif
