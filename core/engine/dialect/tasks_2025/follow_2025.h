/* What the client's files of dialect L (tasks of 2025-11-25) share. client.c decides
 * which calls ask for a task. answer_2025.c handles the first answer of a call.
 * next_2025.c decides the next step, and follow_2025.c performs this step. result_2025.c
 * asks for segments and results. In parallel, wait_2025.c can wait for the result.
 * segments_2025.c handles segments and results that have arrived. */
#ifndef SGI_FOLLOW_2025_H
#define SGI_FOLLOW_2025_H

#include "base/thresholds.h"
#include "engine/dialect/rows.h"
#include "engine/dialect/following/follow.h"
#include "engine/dialect/tasks_2025/response_2025.h"
#include "engine/dialect/tasks_2025/tool_tasks.h"
#include "engine/dialect/tasks_2025/tracker.h"
#include "engine/response_modes.h"

/* Whether a call has params.task, and who has set it. */
typedef enum sgi_task_wish {
    SGI_TASK_WISH_NONE = 0,
    SGI_TASK_WISH_OWN,  /* the application has set params.task */
    SGI_TASK_WISH_ADDED /* the library sets params.task */
} sgi_task_wish;

/* The part of a call that is about tasks (client.c). */
typedef struct sgi_2025_call_members {
    sgi_task_wish wish;
    uint8_t modes;   /* the response modes of SEP-1905 that params.task lists */
    bool may_stream; /* true when the call may get several responses (SEP-1905) */
    bool waits;      /* true while the call waits until the session has read tools/list */
    /* true when the call was sent a second time, because its tool requires or forbids
     * params.task */
    bool reformed;
} sgi_2025_call_members;

/* What the client must still ask the server when the segments have ended with an
 * error. */
typedef enum sgi_why {
    SGI_WHY_KNOWN = 0, /* nothing: the client knows the error, or there was no error */
    /* the client must send tasks/get, to learn whether the task was cancelled */
    SGI_WHY_LOOK,
    /* the client must send tasks/result, to learn whether the task ended with an error or
     * with a result that has isError */
    SGI_WHY_FETCH
} sgi_why;

typedef struct sgi_task_2025 {
    /* a pointer without a reference, because the request contains this state */
    segue_request *request;
    sgi_tracker tracker;
    /* the exchange of tasks/result; NULL = no such exchange is under way */
    sgi_emitter *asking;
    /* what the exchange `asking` requests: true = the whole result, false = segments
     * after a number */
    bool is_fetch;
    /* the exchange `asking` requests the segments after this number; not used when
     * is_fetch is true */
    uint64_t after;
    /* the exchange of the tasks/result that waits for the end of the task; NULL = no such
     * exchange is under way */
    sgi_emitter *waiting;
    int64_t waiting_since; /* monotonic time at which the exchange `waiting` began */
    /* number of waits in a row that the server answered before the end of the task */
    int32_t vain_waits;
    /* the plain result that the exchange `waiting` has brought; empty = no such result */
    sgi_buf kept;
    sgi_timer gap;
    int32_t tries; /* number of pulls in a row that brought no new segment */
    /* number of tasks/result in a row that the server refused to answer; a pause follows
     * each refusal */
    int32_t refusals;
    /* True when the last pull brought no segment. The client then sends tasks/get, to
     * learn whether the task asks a question. */
    bool idle;
    /* number of tasks/get in a row that reported a question which the client has not
     * received */
    int32_t unasked;
    /* true when segments must be pulled now and not at the next interval */
    bool pull_due;
    /* true when the whole result must be fetched, because a pull cannot bring the missing
     * segments */
    bool fetch_due;
    /* true when nothing is pulled any more, because pulls bring no missing segment */
    bool no_pull;
    /* what the client must still ask about the error with which the segments ended */
    sgi_why why;
    bool backing_off; /* true while nothing may be sent until the timer fires */
    /* true when the server no longer knows the task and the client makes one last attempt
     * to get its segments */
    bool unknown;
    bool some; /* true when at least one segment has arrived */
    /* true when segments have arrived since the client last began to wait for pushed
     * segments */
    bool got_segments;
    bool is_error;   /* the value of isError in the last response */
    uint64_t voided; /* segments up to this number are void */
} sgi_task_2025;

/* The state of dialect L (tasks of 2025-11-25) for a request: how its call asks for a
 * task, and the task that the request follows. */
typedef struct sgi_call_2025 {
    sgi_cli_dialect_state state;
    sgi_2025_call_members form;
    /* the task that the request follows; NULL = the request follows no task of this
     * dialect */
    sgi_task_2025 *task;
} sgi_call_2025;

/* Counts the exchanges of a session that wait for the end of tasks (wait_2025.c). */
typedef struct sgi_2025_wait_counts {
    int32_t count;
    /* the largest number of such exchanges: SGI_WAITS_MAX; tests set a smaller limit */
    int32_t max;
} sgi_2025_wait_counts;

/* The state of dialect L (tasks of 2025-11-25) for a session: which tools can be called
 * as tasks, and which page of tools/list the session reads to learn this. */
typedef struct sgi_session_2025 {
    sgi_cli_dialect_state state;
    sgi_tool_tasks tools;
    /* the exchange of tools/list; NULL = no such exchange is under way */
    sgi_emitter *listing;
    /* cursor (JSON) of the page that is being read; empty = the first page */
    sgi_buf cursor;
    int32_t pages;
    bool stale; /* true when the list of tools has changed while it was being read */
    sgi_2025_wait_counts waits;
} sgi_session_2025;

static inline sgi_session_2025 *sgi_session_2025_of(const segue_session *session)
{
    return sgi_cli_dialect_session_state(session, &sgi_cli_tasks_2025);
}

/* Returns the state of the task that a request follows; NULL when the request follows no
 * task of 2025-11-25. */
static inline sgi_task_2025 *sgi_2025_of(const segue_request *request)
{
    const sgi_call_2025 *call = sgi_cli_dialect_state_find(request, &sgi_cli_tasks_2025);
    return call ? call->task : NULL;
}

/* Returns how the call of a request asks for a task. When the request has no state of
 * dialect L (tasks of 2025-11-25), the returned form asks for no task. */
static inline sgi_2025_call_members sgi_2025_form(const segue_request *request)
{
    const sgi_call_2025 *call = sgi_cli_dialect_state_find(request, &sgi_cli_tasks_2025);
    return call ? call->form
                : (sgi_2025_call_members){SGI_TASK_WISH_NONE, 0, false, false, false};
}

static inline bool sgi_2025_is_live(const segue_request *request)
{
    return request->phase == SGI_PHASE_FOLLOW;
}

/* True when the client may ask for the segments from segment 1 on. Every server of this
 * library has them for a task that has failed, whose result is the error alone. Another
 * server does not know the member that asks for them and answers with the result. */
static inline bool sgi_2025_can_pull_from_start(const sgi_task_2025 *task)
{
    const segue_request *request = task->request;
    bool failed = request->follow && request->follow->state == SEGUE_TASK_FAILED;
    return request->session->server.pulls_from_start ||
           (failed && request->session->server.modes & SGI_MODE_STREAMING);
}

static inline bool sgi_2025_can_pull(const sgi_task_2025 *task)
{
    bool has_number = sgi_tracker_prefix(&task->tracker) > 0;
    return !task->no_pull && (has_number || sgi_2025_can_pull_from_start(task));
}

/* ---- next_2025.c ---- */

typedef enum sgi_step {
    /* nothing to do until an exchange or timer under way ends */
    SGI_STEP_NONE = 0,
    SGI_STEP_LOOK,  /* send tasks/get */
    SGI_STEP_PULL,  /* send tasks/result with a number, to get the segments after it */
    SGI_STEP_FETCH, /* send tasks/result without a number, to get the whole result */
    /* wait for one more interval, because pushed segments may come after the end of the
     * task */
    SGI_STEP_LISTEN
} sgi_step;

sgi_step sgi_2025_next_step(const segue_request *request);
/* True when the client may send a tasks/result that waits for the end of the task, in
 * addition to polling by tasks/get. */
bool sgi_2025_may_wait_for_result(const segue_request *request);
/* True when a message about the task may overtake segments that were pushed earlier. This
 * is possible over HTTP while the exchange of the call is under way. */
bool sgi_2025_segments_can_be_late(const segue_request *request);

/* ---- segments_2025.c ---- */

/* Handles a response that is not a whole result. pulled: the response answers
 * tasks/result. Returns false when the response was dropped. */
bool sgi_2025_take_response(segue_request *request, const sgi_2025_response *reply,
                            bool pulled);
/* Stores the state from a description of the task. Ignores a description that is older
 * than the known state. */
void sgi_2025_note_state(segue_request *request, sgi_json task);
/* These two functions end the request: sgi_2025_finish_with_result with a whole result,
 * sgi_2025_finish_with_segments with the merge of all segments. */
void sgi_2025_finish_with_result(segue_request *request, const sgi_2025_response *reply);
void sgi_2025_finish_with_segments(segue_request *request);
/* Makes the client not ask which error ended the segments, because the server's next
 * answer shows this. */
void sgi_2025_stop_asking_for_error(segue_request *request);
void sgi_2025_fail(segue_request *request, sgi_json error);

/* ---- wait_2025.c ---- */

/* The shortest poll interval (in ms) at which the client also sends a tasks/result that
 * waits for the end of the task. With such an interval, polling alone would show the end
 * too late. */
#define SGI_WAIT_POLL_MS SGI_THRESHOLD(wait_poll_ms)
/* The largest number of waiting tasks/result that a session has under way, because over
 * HTTP each of them needs a connection. Further tasks are only polled. */
#define SGI_WAITS_MAX SGI_THRESHOLD(waits_max)
/* The number of waits in a row that are answered before the task's end, after which the
 * client stops waiting for this task. */
#define SGI_VAIN_WAITS_MAX SGI_THRESHOLD(vain_waits_max)

/* Sends a tasks/result that waits for the task's end, if sgi_2025_may_wait_for_result
 * allows this. */
void sgi_2025_result_wait_begin(segue_request *request);
/* Drops the exchange that waits for the task's end. */
void sgi_2025_result_wait_drop(segue_request *request, sgi_task_2025 *task);
/* Moves out the result that a wait has brought; empty = no such result. The caller frees
 * the buffer. */
sgi_buf sgi_2025_result_wait_take(segue_request *request);

/* ---- result_2025.c ---- */

/* Sends tasks/result for the segments after the ones that the client has. */
void sgi_2025_pull(segue_request *request);
/* Takes the result that a waiting tasks/result has brought, or sends tasks/result for the
 * whole result. */
void sgi_2025_fetch(segue_request *request);
/* True while the request is being cancelled, unless the outcome is a result that is no
 * error. Such a result shows that the task was completed. Any other outcome may be that
 * of the cancelled task, and only the answer to tasks/cancel says whether it is. */
bool sgi_2025_may_be_cancelled(const segue_request *request, const sgi_outcome *outcome);
/* True when the error is only a refusal to answer now. It can also be the result of a
 * failed task, because such an error can ask for a pause too. The reason in the error
 * decides. */
bool sgi_2025_is_refusal(const segue_request *request, sgi_json error);

/* ---- answer_2025.c ---- */

/* Handles the first answer to a call. Returns false for a plain result, which the
 * function does not handle. */
bool sgi_2025_take_first_answer(segue_request *request, sgi_json result);
/* Handles one of several responses. Returns false for the last one. */
bool sgi_2025_take_partial_answer(sgi_emitter *emitter, sgi_json result);

/* ---- client.c ---- */

/* Returns the response modes (SEP-1905) that these capabilities declare. */
uint8_t sgi_2025_modes_of_capabilities(sgi_json capabilities);
/* These two functions check the option response_modes. sgi_2025_check_modes_of_session:
 * whether a session may declare these modes. sgi_2025_check_modes_of_call: whether a call
 * may list these modes. */
segue_status sgi_2025_check_modes_of_session(sgi_engine *engine,
                                             const segue_session_options *options,
                                             sgi_json capabilities);
segue_status sgi_2025_check_modes_of_call(segue_session *session, uint32_t modes);

/* ---- follow_2025.c ---- */

/* The table of functions by which a request follows a task of this dialect. */
extern const sgi_cli_follow_ops sgi_2025_following;
/* Performs the next step of following the task, if a step is due. */
void sgi_2025_send_due(segue_request *request);
/* Frees the task of a call, with its segments. */
void sgi_2025_free_task(segue_request *request, sgi_call_2025 *call);
/* Called after each answer or notification. Ends the request if nothing is missing,
 * otherwise performs the next step. */
void sgi_2025_end_or_send(segue_request *request);
/* Sends nothing about the task for a while, at least at_least_ms. */
void sgi_2025_back_off(segue_request *request, int64_t at_least_ms);
/* Sends the next step again after a pause, or ends the request, because an exchange of
 * the task has failed. */
void sgi_2025_try_again(segue_request *request, const sgi_outcome *outcome);
/* True when the application can answer questions of the server. */
bool sgi_2025_can_be_asked(const segue_request *request);
/* Decides the next step again, because the state of the task may have changed. */
void sgi_2025_act_on_state(segue_request *request);

#endif
