/* The functions that all dialects of tasks share: how a request begins to follow a task,
 * the known state of the task, cancelling the task, and polling by tasks/get. The table
 * request->follower has the functions in which dialects differ. */
#ifndef SGI_FOLLOW_H
#define SGI_FOLLOW_H

#include "engine/client/dialects.h"

/* The functions in which dialects differ when they ask for the state of a task by
 * tasks/get (follow_look.c). A function that is NULL is skipped. */
typedef struct sgi_task_get_ops {
    /* write: writes the members of tasks/get that only this dialect has. unsent: called
     * when tasks/get could not be sent; undoes the changes of `write`. */
    void (*write)(segue_request *request, sgi_emitter *emitter, sgi_jw *w);
    void (*unsent)(segue_request *request, const sgi_emitter *emitter);
    /* Handles the end of a tasks/get. Returns true when tasks/get must be sent again,
     * because it carried an answer of the application and the server has refused this
     * answer. */
    bool (*came)(segue_request *request, const sgi_emitter *emitter,
                 const sgi_outcome *outcome);
    /* True when this description of the task is older than the state that the client
     * knows. */
    bool (*is_overtaken)(segue_request *request, sgi_json task);
    /* Called when the task is completed. Returns true when the answer to tasks/get does
     * not contain the result of the task. */
    bool (*completed)(segue_request *request);
    /* Called when the answer to tasks/get shows that the task has not ended. */
    void (*goes_on)(segue_request *request);
    /* True when tasks/get must be sent at each poll interval. NULL = tasks/get is always
     * sent at each interval. */
    bool (*is_polled)(const segue_request *request);
} sgi_task_get_ops;

/* What a request knows about the task that it follows. The struct is made when the
 * request gets a task, and freed with the request. */
struct sgi_task_follow {
    sgi_cli_dialect_state base;
    const sgi_task_get_ops
        /* how the dialect polls by tasks/get; NULL = the dialect has its own functions
         * for tasks/get */
        *look;
    /* value of conn->credentials when the task was made or resumed; shows whether the
     * credentials have changed since */
    uint32_t credentials;
    /* JSON text of _meta in the answer that made the task; NULL = the answer had no
     * _meta */
    char *meta;
    size_t meta_len;
    int32_t state; /* the task's state, a segue_task_state */
    /* hash of the status that was last reported to the application */
    uint64_t status_reported;
    /* lastUpdatedAt of the message that gave the present state, in ms since 1970; 0 = not
     * known */
    int64_t updated_ms;
    int64_t poll_ms;
    /* the task's time to live in ms; -1 = unlimited, 0 = not known */
    int64_t ttl_ms;
    int64_t known_ms; /* monotonic time at which the client learnt of the task */
    /* the exchange of tasks/get; NULL = no such exchange is under way */
    sgi_emitter *getting;
    /* the exchange of tasks/cancel, whose answer ends the request; NULL = no such
     * exchange is under way */
    sgi_emitter *cancelling;
    segue_status cancel_status;
    /* number of answers to tasks/get in a row that contradict the end which a
     * notification has reported */
    int32_t contradictions;
    bool look_due; /* true when tasks/get must be sent, even if a stream is open */
    /* true while on_task has not run; the client must send no message about the task
     * before on_task has run (R-2557-60) */
    bool hook_pending;
    /* true while the stream is stopped, because the inbox is full and the application has
     * given no credit */
    bool paused;
    /* true when the merged result lacks segments of the task, so that the whole result
     * must be fetched */
    bool partial;
};

/* Returns the state of the request's task (segue_task_state); SEGUE_TASK_UNKNOWN for a
 * request without a task. */
static inline int32_t sgi_follow_state(const segue_request *request)
{
    return request->follow ? request->follow->state : SEGUE_TASK_UNKNOWN;
}

/* ---- follow_begin.c: a request that is a task ---- */

/* The table of a request that knows only the id of its task. When the session opens, the
 * version of the session decides which dialect follows the task. */
extern const sgi_cli_follow_ops sgi_follow_unknown;

/* Makes the request follow the task with this id. Returns false when out of memory. */
bool sgi_follow_new(segue_request *request, sgi_str task_id);
/* Makes a request follow the task in the answer to its tools/call. meta: _meta of the
 * answer; may be empty. */
void sgi_follow_begin(segue_request *request, sgi_json task, sgi_json meta);
/* Returns a member of the _meta that came with the task, as a view; empty when _meta has
 * no such member. */
sgi_json sgi_follow_meta(const segue_request *request, const char *key);
/* Chooses the dialect in which the task was made, so that this dialect follows the task.
 * Ends the request and returns false when the session cannot follow the task. */
bool sgi_follow_choose_dialect(segue_request *request);
/* Returns true when other messages about the task may be sent now. If tasks/cancel is
 * due, sends it and returns false. */
bool sgi_follow_send_cancel_or_allow(segue_request *request);
/* Sends the message about the task that is due now, if a message is due. */
static inline void sgi_follow_send_due(segue_request *request)
{
    request->follower->due(request);
}

/* ---- follow_begin.c: functions of the tables ---- */

void sgi_follow_on_task_reported(segue_request *request);
void sgi_follow_pause(segue_request *request);
void sgi_follow_on_room(segue_request *request, bool was_full);
bool sgi_follow_is_held(const segue_request *request);
bool sgi_follow_returns_false(const segue_request *request);
void sgi_follow_end(segue_request *request);
void sgi_follow_write_token(const segue_request *request, sgi_jw *w);
/* Reads the part of a resume token that is about the task. The caller finds out which
 * dialect follows the task. */
bool sgi_follow_read_token(sgi_json token, sgi_request_spec *spec, segue_status *status);

/* ---- follow_look.c: tasks/get ---- */

/* Asks for the task's state now, without waiting for the poll interval. */
void sgi_follow_send_tasks_get_now(segue_request *request);
/* Sends tasks/get. If a tasks/get is under way, sends the next one after its answer. */
void sgi_follow_send_tasks_get(segue_request *request);
/* True for an error code which means that the server does not have the method. */
static inline bool sgi_follow_is_missing_method(int64_t code)
{
    return code == SGI_RPC_METHOD_NOT_FOUND || code == SGI_RPC_MISSING_CAPABILITY;
}

/* ---- follow_cancel.c ---- */

/* Asks the server to cancel the task. The server's answer then ends the request with
 * `status`, which is SEGUE_E_CANCELLED or SEGUE_E_TIMEOUT. Returns false when the server
 * was asked before. */
bool sgi_follow_cancel(segue_request *request, segue_status status);
/* Sends tasks/cancel now or as soon as the session can send it. */
void sgi_follow_send_cancel(segue_request *request);
/* Cancels the task of a request that has ended. The client ignores the server's
 * answer. */
void sgi_follow_cancel_abandoned_task(segue_request *request);
/* Ends the request, because the server reports that the task is cancelled. Any client may
 * have cancelled the task. */
void sgi_follow_end_as_cancelled(segue_request *request);

/* ---- task_state.c: a server's description of a task ---- */

/* Stores status and statusMessage of a task. When one of them has changed, reports both
 * by on_status. */
void sgi_task_note_status(segue_request *request, sgi_json object);
/* Stores the poll interval and the time to live from a description of the task. */
void sgi_task_note_poll_interval(segue_request *request, sgi_json task);
/* True when the task's time to live is over by this client's clock. */
bool sgi_task_is_overdue(const segue_request *request);
/* Returns the error text for a task that the server does not know. If the client's
 * credentials have changed since the task was made, the text says that the task may
 * belong to another user. */
const char *sgi_task_unknown_error_text(const segue_request *request);
/* True when this message about the task is older than the known state. A terminal state
 * is final, so every later message is stale. Before that, lastUpdatedAt decides
 * (R-2557-47). */
bool sgi_task_description_is_stale(segue_request *request, sgi_json task);
/* True when the message names a task that is not the task of the request. */
bool sgi_task_description_is_of_another(const segue_request *request, sgi_json task);
/* Schedules tasks/get after the poll interval. */
void sgi_task_poll_later(segue_request *request);
/* Returns the poll interval in ms: the server's value, within the limits of this
 * client. */
int64_t sgi_task_poll_interval(const segue_request *request);
/* Begins a message about the task, with the member taskId. Returns NULL when out of
 * memory. */
sgi_emitter *sgi_task_begin_request(segue_request *request, sgi_sending *sending,
                                    const char *method,
                                    void (*done)(sgi_emitter *, const sgi_outcome *));

#endif
