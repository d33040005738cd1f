/* A request of the client, as the application sees it. It starts once, delivers segments
 * and questions in the order in which they come, and ends exactly once, even when
 * connections break in between (core/docs/requirements.md 5.4.3). The most important
 * phases are:
 *     WAIT    the call, or an answer to questions of the server, has to be sent or is
 *             under way (questions.c)
 *     FOLLOW  the request is a task, which a dialect follows (dialects.h)
 *     DONE    the outcome is known; on_complete runs when the inbox is empty
 *
 * A request outlives its exchanges. When the connection breaks, a request in WAIT sends
 * the call again if it has an idempotency key, and a request in FOLLOW continues at its
 * cursor. Any other request ends. */
#ifndef SGI_REQUEST_H
#define SGI_REQUEST_H

#include "engine/error.h"
#include "base/limit.h"
#include "engine/log/fold.h"
#include "engine/client/deliver.h"
#include "engine/client/emitter.h"
#include "engine/client/questions.h"
#include "engine/client/session.h"

typedef enum sgi_phase {
    SGI_PHASE_WAIT = 0,
    /* The request receives questions for the whole session (segue_session_take_input). It
     * sends nothing, and gets the questions that belong to no other request. */
    SGI_PHASE_STAND,
    SGI_PHASE_FOLLOW,
    SGI_PHASE_DONE, /* from this phase on the outcome is known */
    /* The application cancelled the request after the outcome was known. The remaining
     * segments are delivered without credit. */
    SGI_PHASE_GIVEN_UP,
    SGI_PHASE_REPORTED /* on_complete has begun */
} sgi_phase;

/* The largest valid number of an event or a segment. A larger number in a message of the
 * server is an error. */
#define SGI_COUNT_MAX (INT64_C(1) << 53)

/* The idempotency key of a call. */
typedef struct sgi_call_key {
    char *text; /* the key; NULL = the call has no key */
    /* The key comes from a resume token. Without the key, the call would run a second
     * time. */
    bool needed;
    bool sent;
    /* The application can resume the call later, because it chose the key itself or has a
     * resume token that contains the key. */
    bool kept;
} sgi_call_key;

typedef struct sgi_follow sgi_follow;
typedef struct sgi_cli_dialect sgi_cli_dialect;
typedef struct sgi_cli_following sgi_cli_following;
typedef struct sgi_cli_inquiry sgi_cli_inquiry;

struct segue_request {
    sgi_handle handle;
    sgi_engine *engine;
    /* The application's handle, the session's list and the ready queue have one reference
     * each. */
    int32_t refs;
    segue_session *session; /* a counted reference */
    TAILQ_ENTRY(segue_request) link;
    /* a counted reference to the handle from which the request was made, or NULL */
    segue_task *task;
    bool is_call; /* the method is tools/call, so the request may become a task */
    sgi_phase phase;
    char *method;
    char *params; /* JSON object or NULL */
    size_t params_len;
    segue_request_options options;
    char *log_level;
    sgi_call_key key;
    /* number of pages of tools/list that were fetched after the server had refused the
     * headers of the call */
    int32_t pages;
    /* the wire session in which logging/setLevel was sent for this request */
    int32_t wish_session;
    /* the request was sent again, because the server seemed to be of another era; only
     * done once */
    bool era_doubted;
    /* the id of the last message that carried the request; progress notifications name
     * it */
    int64_t call_id;
    int32_t call_session; /* the wire session in which this last message was sent */
    /* number of messages that carried the request and may have reached the server */
    int32_t sent;
    /* value of cache.changes when the request was sent; the result is cached only if
     * cache.changes has not changed; 0 = the result must not be cached */
    uint64_t cache_mark;
    segue_request_events events;
    sgi_timer deadline;
    sgi_tries tries;      /* counts the attempts of the call, later those of tasks/get */
    sgi_emitter *calling; /* the exchange that carries the request itself, or NULL */
    sgi_fold fold;

    /* The task that the request has become, or from which it was made. follower: the
     * functions of the task's dialect. Both members are NULL for a request without a
     * task. */
    const sgi_cli_following *follower;
    char *task_id;
    /* tasks/cancel is due or under way, and only its answer ends the request */
    bool cancel_due;
    /* the state that the dialects of tasks share (following/follow.h); NULL = the request
     * has no task */
    sgi_follow *follow;

    sgi_questions questions;

    sgi_cli_state *states; /* the states of the dialects for this request (dialects.h) */
    bool taken_over;       /* the request was begun by another process */
    double last_progress;  /* the highest progress that was reported; NAN = none */

    /* The following members are used to deliver events to the application. */
    sgi_ready ready;
    sgi_segment_numbering numbering;
    sgi_delivery delivery;

    /* The following members are the outcome of the request. */
    segue_status status;
    sgi_buf result;
    segue_error *error;
    /* Only for a request that the engine itself made (reverse/question_task.c): called
     * under the lock when the request ends, instead of the events. */
    void (*ended)(segue_request *request);
    void *owner;
};

/* ---- request.c, request_life.c, request_end.c ---- */

typedef struct sgi_request_spec {
    sgi_str method;
    sgi_json params; /* an object, or empty */
    const segue_request_options *options;
    const segue_request_events *events; /* NULL = no callbacks */
    /* the idempotency key in a resume token; empty = the options have the key, if any */
    sgi_str key;
    /* the task that the request follows; empty = the request sends `method` */
    sgi_str task_id;
    /* buffer with the texts of a resume token, to which members of the spec point */
    sgi_buf *room;
    uint64_t next_event;
    uint64_t next_segment;
    /* For a request made from a token: number of segments that the application already
     * has, which are not delivered again. */
    int64_t seen;
    uint64_t void_segments;
    /* the dialect that follows the task; NULL = the version of the session decides */
    const sgi_cli_following *follower;
    /* the functions that ask about a resumable request; NULL = the handle is that of a
     * task */
    const sgi_cli_inquiry *inquiry;
    /* text of the server (JSON), which the client sends back with each message about the
     * task; may be empty */
    sgi_json echo;
    segue_task *task;
    /* resume token of the call whose answer is requested; empty = the request sends
     * `method` */
    sgi_json resume_token;
    int64_t resume_id;
    int64_t resume_min_ms;
    sgi_str resume_event;
} sgi_request_spec;

/* Changes the phase. The allowed moves are:
 *     WAIT -> FOLLOW
 *     WAIT, STAND, FOLLOW -> DONE
 *     DONE -> GIVEN_UP
 *     DONE, GIVEN_UP -> REPORTED
 *
 * Any other move fails an assertion. */
void sgi_request_set_phase(segue_request *request, sgi_phase phase);
static inline bool sgi_request_is_over(const segue_request *request)
{
    return request->phase >= SGI_PHASE_DONE;
}

segue_status sgi_request_new(segue_session *session, const sgi_request_spec *spec,
                             segue_request **out);
void sgi_request_ref(segue_request *request);
void sgi_request_unref(segue_request *request);
/* Frees a request that has no references. */
void sgi_request_free(segue_request *request);
/* Puts the request into the ready queue, because it has events for the application. */
void sgi_request_queue_callbacks(segue_request *request);

segue_status sgi_request_cancel(segue_request *request);
/* Cancels a call, because its session closes. A call whose idempotency key is known
 * outside this session is not cancelled. */
void sgi_request_withdraw(segue_request *request);
segue_status sgi_request_detach(segue_request *request);
segue_status sgi_request_answer(segue_request *request, const char *key, sgi_json answer);
/* Answers a question by an error. data: JSON, may be empty. */
segue_status sgi_request_answer_error(segue_request *request, const char *key,
                                      int32_t code, sgi_str message, sgi_json data);
/* Returns the status for an answer that comes after the request is over: SEGUE_E_TERMINAL
 * when on_complete has begun, otherwise SEGUE_E_NOT_FOUND. */
static inline segue_status sgi_request_no_question_status(const segue_request *request)
{
    return request->phase == SGI_PHASE_REPORTED ? SEGUE_E_TERMINAL : SEGUE_E_NOT_FOUND;
}
segue_status sgi_request_grant(segue_request *request, int64_t n);

/* Ends the request with this result. When several functions end a request, only the first
 * has an effect. */
void sgi_request_finish(segue_request *request, sgi_json result);
/* Like sgi_request_finish, but takes the content of the buffer instead of copying it. */
void sgi_request_finish_by(segue_request *request, sgi_buf *result);
/* Ends the request with the server's error. what: if the error answers another message
 * than the request itself, the method of that message; otherwise NULL. */
void sgi_request_finish_error(segue_request *request, const char *what, sgi_json error);
/* Like sgi_request_finish_error, but with this status. The error also contains the part
 * of the result that was received. */
void sgi_request_fail_error(segue_request *request, segue_status status, const char *what,
                            sgi_json error);
void sgi_request_fail(segue_request *request, segue_status status, const char *text);
/* Ends the request because a limit of this client was exceeded. */
void sgi_request_fail_limit(segue_request *request, segue_status status, const char *what,
                            sgi_limit limit);
/* Ends the request because the collected result is larger than max_result_bytes. */
void sgi_request_fail_size(segue_request *request);

/* Drops the received part of the result, because the server sends the result from its
 * beginning. */
void sgi_request_forget_received(segue_request *request);
/* Handles the outcome of the exchange that carries the call. */
void sgi_request_take_outcome(segue_request *request, const sgi_outcome *outcome);
/* True when the error says that the server is closing and has not begun the call
 * (wire/ending.h). */
bool sgi_error_is_ending(sgi_json error);
/* Sends the message that is due in the current phase. The session must be open. */
void sgi_request_send_due(segue_request *request);

/* ---- notices.c: events of the session ---- */

void sgi_requests_on_session_open(segue_session *session);
void sgi_requests_on_session_close(segue_session *session, segue_status status,
                                   const char *text);
/* Makes each request fetch its result. Called when a message of the server could not be
 * read: it may have been an event of a stream. */
void sgi_requests_fetch_results(segue_session *session);
/* Finds the running call with this progress token. The call may have become a task. NULL
 * = there is no such call. */
segue_request *sgi_requests_find_by_progress_token(segue_session *session,
                                                   sgi_json token);
/* Passes a notification to its request. Returns false when the notification belongs to no
 * request. */
bool sgi_requests_take_notification(segue_session *session, sgi_str method,
                                    const sgi_message *msg);

/* ---- log_wish.c: the log level that a request needs ---- */

/* Sets the log level that the request needs, before the request is sent. Returns false
 * when the request has to wait for the answer to logging/setLevel. */
bool sgi_log_wish_prepare(segue_request *request);
/* Notes the log level that the application itself has set: the request was
 * logging/setLevel, and its answer was a result. */
void sgi_log_wish_note_result(segue_request *request);
/* Delivers a log message to the request on whose exchange it came. On stdio the message
 * names no request, so the oldest request that wants such messages gets it. Returns false
 * when no request wants the message. */
bool sgi_log_wish_take_message(segue_session *session, sgi_json params);

/* ---- result_check.c ---- */

/* Checks a tool's output against the tool's outputSchema. If the output does not fit,
 * ends the request with an error. Called before on_complete. */
void sgi_result_check(segue_request *request);
/* Returns the name of the member that is the list of a result of this request's method;
 * NULL = unknown method. */
const char *sgi_result_list_name(const segue_request *request);

/* ---- tool_lookup.c ---- */

/* Handles the error that answers tools/call. Returns true when the server has refused the
 * headers of the call. The client then lists the tools and sends the call again. */
bool sgi_tool_lookup_after_refusal(segue_request *request, sgi_json error);
/* Stores the header parameters and the schemas of the tools in a whole result of
 * tools/list. Results of other methods are ignored. */
void sgi_tool_lookup_learn(segue_request *request, sgi_json result);
/* Removes invalid tools from a result of tools/list. Returns true when a tool was
 * removed; `out` then has the changed result, unless out->failed. */
bool sgi_tool_list_remove_invalid(segue_request *request, sgi_json result, sgi_buf *out);

/* ---- token.c ---- */

segue_status sgi_token_write(segue_request *request, sgi_buf *out);
/* Makes a request from a resume token. The request continues at the position that the
 * token contains. */
segue_status sgi_request_from_token(segue_session *session, const char *token,
                                    const segue_request_options *options,
                                    const segue_request_events *events,
                                    segue_request **out);
/* Makes a task handle from a token. */
segue_status sgi_task_handle_from_token(segue_session *session, const char *token,
                                        segue_task **out);
/* Like sgi_request_from_token, with the token from which the task handle was made. */
segue_status sgi_task_handle_watch_token(segue_task *task,
                                         const segue_request_options *options,
                                         const segue_request_events *events,
                                         segue_request **out);

/* ---- task_handle.c ---- */

struct segue_task {
    sgi_handle handle;
    int32_t refs;
    segue_session *session; /* a counted reference */
    /* the id of the task; "" for the handle of a resumable request, which has a
     * resume_token */
    char *id;
    int32_t state;
    /* the dialect of the task; NULL = the version of the session decides */
    const sgi_cli_following *follower;
    /* functions that ask about a resumable request; NULL for the handle of a task */
    const sgi_cli_inquiry *inquiry;
    /* text of the server (JSON), which the client sends back with each message about the
     * task */
    sgi_buf echo;
    /* the token from which the handle was made; NULL = the handle was made from an id */
    char *token;
    char *resume_token; /* JSON text: the token of a resumable request (SEP-975) */
    int64_t call_id;    /* id of the resumable request */
};

#define SGI_TASK_ID_MAX 4096

/* Returns the state (segue_task_state) for a status word of the server. */
int32_t sgi_task_state_of(sgi_json status);
static inline bool sgi_task_state_is_terminal(int32_t state)
{
    return state == SEGUE_TASK_COMPLETED || state == SEGUE_TASK_FAILED ||
           state == SEGUE_TASK_CANCELLED;
}

/* Makes a handle from the id of a task. */
segue_status sgi_task_handle_new_for_id(segue_session *session, const char *id,
                                        segue_task **out);
/* Makes a handle. spec: what was read from a token, or only a task_id. token: the text of
 * the token; "" = none. */
segue_status sgi_task_handle_new(segue_session *session, const sgi_request_spec *spec,
                                 sgi_str token, segue_task **out);
void sgi_task_handle_unref(segue_task *task);
/* Stores the state that the server reports for the task. A stored terminal state never
 * changes (R-2557-47). */
void sgi_task_handle_set_state(segue_task *task, int32_t state);

/* ---- task_requests.c ---- */

/* Returns true when a request that was made from a task handle may be sent in this
 * session. Otherwise ends the request and returns false. */
bool sgi_task_handle_check_session(segue_request *request);
/* Stores in the task handle the state that this error shows. The error is the server's
 * answer to a request of the handle, or the error that has ended the request. */
void sgi_task_handle_note_error(segue_request *request, sgi_json error);
/* Sends tasks/get after the server has refused tasks/cancel, to find out the state of the
 * task. Returns false when the request was not tasks/cancel, or when out of memory. */
bool sgi_task_handle_get_instead(segue_request *request, sgi_json error);
/* Stores the state that this result shows in the handle from which the request was made.
 * Does nothing when the request was not made from a handle. */
void sgi_task_handle_note_answer(segue_request *request, sgi_json result);
segue_status sgi_task_handle_get(segue_task *task, const segue_request_events *events,
                                 segue_request **out);
/* Sends tasks/cancel. Returns SEGUE_E_UNSUPPORTED for the handle of a resumable request,
 * which is not a task. */
segue_status sgi_task_handle_cancel(segue_task *task, const segue_request_events *events,
                                    segue_request **out);
segue_status sgi_task_handle_watch(segue_task *task, const segue_request_options *options,
                                   const segue_request_events *events,
                                   segue_request **out);

#endif
