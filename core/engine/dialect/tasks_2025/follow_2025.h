/* What the client's files of dialect L (tasks of 2025-11-25) share. client.c decides
 * which calls ask for a task. answer_2025.c handles the first answer of a call.
 * next_2025.c decides the next step, and follow_2025.c performs it. wait_2025.c meanwhile
 * waits for the result. segments_2025.c handles segments and results. */
#ifndef SGI_FOLLOW_2025_H
#define SGI_FOLLOW_2025_H

#include "base/thresholds.h"
#include "engine/dialect/rows.h"
#include "engine/dialect/following/follow.h"
#include "engine/dialect/tasks_2025/response_2025.h"
#include "engine/dialect/tasks_2025/tool_tasks.h"
#include "engine/dialect/tasks_2025/tracker.h"

/* Who has set params.task of a call. */
typedef enum sgi_task_wish {
    SGI_TASK_WISH_NONE = 0,
    SGI_TASK_WISH_OWN,  /* the application's params have params.task */
    SGI_TASK_WISH_ADDED /* the library adds params.task */
} sgi_task_wish;

/* The members of a call that are about tasks (client.c). */
typedef struct sgi_call_form {
    sgi_task_wish wish;
    uint8_t modes;   /* response modes of SEP-1905 that params.task lists */
    bool may_stream; /* the call may get several responses (SEP-1905) */
    bool waits;      /* the call waits until the session has read tools/list */
    /* the call was sent a second time, because its tool requires or forbids
     * params.task */
    bool reformed;
} sgi_call_form;

/* What the client must still ask when a stream of segments has ended with an error. */
typedef enum sgi_why {
    SGI_WHY_KNOWN = 0, /* the reason is known, or there was no error */
    /* the client must send tasks/get, to find out whether the task was cancelled */
    SGI_WHY_LOOK,
    /* the client must send tasks/result, to find out whether the task ended with an error
     * or with a result that has isError */
    SGI_WHY_FETCH
} sgi_why;

typedef struct sgi_task_2025 {
    /* a pointer without a reference, because the request contains this state */
    segue_request *request;
    sgi_tracker tracker;
    sgi_emitter *asking; /* the exchange of tasks/result, or NULL */
    /* true: the tasks/result in `asking` requests the whole result; false: segments by
     * number */
    bool is_fetch;
    /* The tasks/result in `asking` requests the segments after this number. Not used when
     * is_fetch is set. */
    uint64_t after;
    /* the exchange of the tasks/result that waits for the end of the task, or NULL */
    sgi_emitter *waiting;
    int64_t waiting_since; /* time at which the exchange in `waiting` began; monotonic */
    /* number of waits in a row that were answered before the end of the task */
    int32_t vain_waits;
    /* the plain result that the waiting tasks/result has brought; empty = none */
    sgi_buf kept;
    sgi_timer gap;
    int32_t tries; /* number of pulls in a row that brought no segment */
    /* number of tasks/result in a row that the server refused; a pause follows each */
    int32_t refusals;
    /* The last pull brought nothing. tasks/get must now show whether the task is asking a
     * question. */
    bool idle;
    /* number of tasks/get in a row that reported a question, although no question has
     * come */
    int32_t unasked;
    bool pull_due; /* a pull is due now, not at the next interval */
    /* the whole result has to be fetched, because pulling cannot bring the missing
     * segments */
    bool fetch_due;
    /* the server no longer has the missing segments, so nothing is pulled any more */
    bool no_pull;
    /* what the client knows about the error with which the stream ended */
    sgi_why why;
    bool backing_off; /* nothing is sent before the timer fires */
    /* the server no longer knows the task, and the client makes a last attempt */
    bool unknown;
    bool some; /* at least one segment has come */
    /* pushed segments have come since the client last began to wait for them */
    bool got_segments;
    bool is_error;   /* the value of isError in the result */
    uint64_t voided; /* segments up to this number are void */
} sgi_task_2025;

/* The state of dialect L for a request: the members of its call, and the task that it
 * follows. */
typedef struct sgi_call_2025 {
    sgi_cli_state state;
    sgi_call_form form;
    sgi_task_2025 *task; /* NULL = the request follows no task of this dialect */
} sgi_call_2025;

/* The exchanges of a session that wait for the end of tasks (wait_2025.c). */
typedef struct sgi_result_waits {
    int32_t count;
    int32_t max; /* the limit SGI_WAITS_MAX; tests make it small */
} sgi_result_waits;

/* The state of dialect L for a session: which tools can be called as tasks, and how far
 * tools/list was read to find this out. */
typedef struct sgi_session_2025 {
    sgi_cli_state state;
    sgi_tool_tasks tools;
    sgi_emitter *listing; /* the exchange of tools/list, or NULL */
    sgi_buf cursor;       /* cursor of the page that is being read */
    int32_t pages;
    bool stale; /* the list of tools has changed while it was being read */
    sgi_result_waits waits;
} sgi_session_2025;

static inline sgi_session_2025 *sgi_session_2025_of(const segue_session *session)
{
    return sgi_cli_session_state(session, &sgi_cli_tasks_2025);
}

/* Returns the state of the task that a request follows; NULL = the request follows no
 * task of 2025-11-25. */
static inline sgi_task_2025 *sgi_2025_of(const segue_request *request)
{
    const sgi_call_2025 *call = sgi_cli_state_of(request, &sgi_cli_tasks_2025);
    return call ? call->task : NULL;
}

/* Returns the members of the call that are about tasks. A request without a state asks
 * for no task. */
static inline sgi_call_form sgi_2025_form(const segue_request *request)
{
    const sgi_call_2025 *call = sgi_cli_state_of(request, &sgi_cli_tasks_2025);
    return call ? call->form
                : (sgi_call_form){SGI_TASK_WISH_NONE, 0, false, false, false};
}

static inline bool sgi_2025_is_live(const segue_request *request)
{
    return request->phase == SGI_PHASE_FOLLOW;
}

static inline bool sgi_2025_can_pull(const sgi_task_2025 *task)
{
    bool has_number = sgi_tracker_prefix(&task->tracker) > 0;
    return !task->no_pull &&
           (has_number || task->request->session->server.pulls_from_start);
}

/* ---- next_2025.c ---- */

typedef enum sgi_step {
    /* wait for the exchange or the timer under way */
    SGI_STEP_NONE = 0,
    SGI_STEP_LOOK,  /* send tasks/get */
    SGI_STEP_PULL,  /* send tasks/result with a number */
    SGI_STEP_FETCH, /* send tasks/result without a number */
    /* wait, because more pushed segments may come after the end of the task */
    SGI_STEP_LISTEN
} sgi_step;

sgi_step sgi_2025_next_step(const segue_request *request);
/* True when the client may send a tasks/result that waits for the end, in addition to
 * polling by tasks/get. */
bool sgi_2025_may_wait(const segue_request *request);
/* True when a message about the task may arrive before segments that were pushed earlier.
 * This is so over HTTP while the call is under way. */
bool sgi_2025_is_overtaken(const segue_request *request);

/* ---- segments_2025.c ---- */

/* Handles a response that is not a whole result. pulled: it is the answer to
 * tasks/result. Returns false when the response was dropped. */
bool sgi_2025_take_response(segue_request *request, const sgi_response *reply,
                            bool pulled);
/* Stores the state from a description of the task, unless the description is older than
 * the known state. */
void sgi_2025_note_state(segue_request *request, sgi_json task);
/* End the request: sgi_2025_finish with a whole result, sgi_2025_conclude with the merge
 * of all segments. */
void sgi_2025_finish(segue_request *request, const sgi_response *reply);
void sgi_2025_conclude(segue_request *request);
/* Stops asking with which error the stream ended, because the server's next answer shows
 * it. */
void sgi_2025_stop_asking_reason(segue_request *request);
void sgi_2025_fail(segue_request *request, sgi_json error);

/* ---- wait_2025.c ---- */

/* If the poll interval (in ms) is this long or longer, the client also sends a
 * tasks/result that waits for the end of the task. Polling alone would show the end too
 * late. */
#define SGI_WAIT_POLL_MS SGI_THRESHOLD(wait_poll_ms)
/* The largest number of such waiting tasks/result that a session has under way: over HTTP
 * each needs a connection. Further tasks are only polled. */
#define SGI_WAITS_MAX SGI_THRESHOLD(waits_max)
/* When this number of waits in a row were answered before the next poll, the client stops
 * waiting for this task. */
#define SGI_VAIN_WAITS_MAX SGI_THRESHOLD(vain_waits_max)

/* Sends a tasks/result that waits for the task's end, if sgi_2025_may_wait allows it. */
void sgi_2025_wait_begin(segue_request *request);
/* Drops the exchange that waits for the task's end. */
void sgi_2025_wait_drop(segue_request *request, sgi_task_2025 *task);
/* Returns the result that a wait has brought; empty = there is none. The caller frees the
 * buffer. */
sgi_buf sgi_2025_wait_take(segue_request *request);

/* ---- answer_2025.c ---- */

/* Handles the first answer of a request. Returns true when the answer was handled; false
 * for a plain result. */
bool sgi_2025_answer(segue_request *request, sgi_json result);
/* Handles one of several responses. Returns false when it is the last. */
bool sgi_2025_take_partial_answer(sgi_emitter *emitter, sgi_json result);

/* ---- client.c ---- */

/* Returns the response modes (SEP-1905) that these capabilities declare. */
uint8_t sgi_task_calls_modes(sgi_json capabilities);
/* Check the option response_modes. sgi_task_calls_may_declare: whether a session may
 * declare these modes. sgi_task_calls_may_list: whether a call may list them. */
segue_status sgi_task_calls_may_declare(sgi_engine *engine,
                                        const segue_session_options *options,
                                        sgi_json capabilities);
segue_status sgi_task_calls_may_list(segue_session *session, uint32_t modes);

/* ---- follow_2025.c ---- */

/* The table of functions by which a request follows a task of this dialect. */
extern const sgi_cli_following sgi_2025_following;
/* Performs the next step that is due. */
void sgi_2025_send_due(segue_request *request);
/* Frees what is known of the task of a call, with its segments. */
void sgi_2025_free(segue_request *request, sgi_call_2025 *call);
/* Ends the request if nothing is missing; otherwise does what is due. Called after each
 * answer or notification. */
void sgi_2025_end_or_send(segue_request *request);
/* Decides the next step again, because the state of the task may have changed. */
void sgi_2025_act_on_state(segue_request *request);

#endif
