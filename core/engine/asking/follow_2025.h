/* The inside of following a task of 2025-11-25: next_2025.c says what is due,
 * follow_2025.c asks, wait_2025.c waits for the result beside that, segments_2025.c takes
 * what comes, answer_2025.c looks at the first answer of the call. */
#ifndef SGI_FOLLOW_2025_H
#define SGI_FOLLOW_2025_H

#include "engine/asking/response_2025.h"
#include "engine/asking/request.h"

/* What is known of why a stream of segments ended with an error. */
typedef enum sgi_why {
    SGI_WHY_KNOWN = 0, /* all that there is to know, or it did not end so */
    SGI_WHY_LOOK,      /* tasks/get tells whether it was cancelled */
    SGI_WHY_FETCH      /* tasks/result tells an error from a result with isError */
} sgi_why;

typedef struct sgi_task_2025 {
    segue_request *request; /* not counted: it has this */
    sgi_tracker tracker;
    sgi_emitter *asking;   /* tasks/result is under way, or NULL */
    bool is_fetch;         /* asking: it has no number */
    uint64_t after;        /* asking: else it has this number */
    sgi_emitter *waiting;  /* tasks/result is to be answered when the task ends */
    int64_t waiting_since; /* monotonic */
    int32_t vain_waits;    /* in a row, that ended before the task did */
    sgi_buf kept;          /* what such an answer was: the result, or nothing */
    sgi_timer gap;
    int32_t tries;    /* pulls in a row that brought nothing */
    bool idle;        /* the last pull brought nothing: does the task ask something? */
    int32_t unasked;  /* looks in a row that say so, and no question has come */
    bool pull_due;    /* now, not at the next interval */
    bool fetch_due;   /* only the whole result will do */
    bool no_pull;     /* the server does not retain what is missing */
    sgi_why why;      /* it ended with an error: which one? */
    bool backing_off; /* nothing is asked before the timer */
    bool unknown;     /* the server does not know it any more: one last try */
    bool some;        /* segments have come, */
    bool heard;       /* ... since it was last listened for them */
    bool is_error;    /* of the result */
    uint64_t voided;  /* segments up to this one do not count */
} sgi_task_2025;

static inline bool sgi_2025_is_live(const segue_request *request)
{
    return request->phase == SGI_PHASE_FOLLOW;
}

static inline bool sgi_2025_can_pull(const sgi_task_2025 *task)
{
    bool has_number = sgi_tracker_prefix(&task->tracker) > 0;
    return !task->no_pull && (has_number || task->request->session->pulls_from_start);
}

/* ---- next_2025.c ---- */

typedef enum sgi_step {
    SGI_STEP_NONE = 0, /* what is under way, or a timer, goes on */
    SGI_STEP_LOOK,     /* tasks/get */
    SGI_STEP_PULL,     /* tasks/result with a number */
    SGI_STEP_FETCH,    /* ... without one */
    SGI_STEP_LISTEN    /* the push may have more of a task that has ended */
} sgi_step;

sgi_step sgi_2025_next(const segue_request *request);
/* The result is to be waited for while tasks/get is not due. */
bool sgi_2025_may_wait(const segue_request *request);
/* Over HTTP what is said of the task may overtake what is pushed. */
bool sgi_2025_is_overtaken(const segue_request *request);

/* ---- segments_2025.c ---- */

/* Anything but a whole result. false: it was dropped. */
bool sgi_2025_take(segue_request *request, const sgi_response *reply, bool pulled);
/* What is said of the task, unless it is older than what is known. */
void sgi_2025_note(segue_request *request, sgi_json task);
/* The end: by a whole result, by the merge of all segments, by the server's error. */
void sgi_2025_finish(segue_request *request, const sgi_response *reply);
void sgi_2025_conclude(segue_request *request);
/* The server's next answer tells why it ended. */
void sgi_2025_drop_why(segue_request *request);
void sgi_2025_fail(segue_request *request, sgi_json error);

/* ---- wait_2025.c ---- */

/* From this poll interval on a result is waited for: looks alone would come late. */
#define SGI_WAIT_POLL_MS 1001
/* Waits of a session at once: over HTTP each has a connection. Tasks beyond them are only
 * looked at. */
#define SGI_WAITS_MAX 16
/* Waits of a task, in a row, that end sooner than the next look: then there is none any
 * more. */
#define SGI_VAIN_WAITS_MAX 3

/* Sends tasks/result, if the result is to be waited for. */
void sgi_2025_wait_go(segue_request *request);
/* Nobody waits any more. */
void sgi_2025_wait_drop(segue_request *request);
/* Takes the result that a wait has brought; empty when there is none. To be freed. */
sgi_buf sgi_2025_wait_take(segue_request *request);

/* ---- follow_2025.c ---- */

/* Something was taken: ends the request if that was all, else asks for what is due. */
void sgi_2025_settle(segue_request *request);
/* What the task's state means for what is done next. */
void sgi_2025_heed_state(segue_request *request);

#endif
