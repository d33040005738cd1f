/* A request of the client, as the application sees it. It starts once, delivers segments
 * and questions in the order in which they come, and ends exactly once, even when
 * connections break in between (core/docs/requirements.md 5.4.3). The most important
 * phases are:
 *     WAIT    the call, or an answer to questions of the server, has to be sent or is
 *             under way (questions.c)
 *     FOLLOW  the request is a task, which a dialect follows (dialects.h)
 *     DONE    the outcome is known; on_complete runs when the inbox is empty
 *
 * A request lives longer than its exchanges. When the connection breaks, a request in
 * WAIT sends the call again if the call has an idempotency key or is resumable. A request
 * in FOLLOW continues at its cursor. Any other request ends. */
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
     * sends nothing. It gets the questions that belong to no other request. */
    SGI_PHASE_STAND,
    SGI_PHASE_FOLLOW,
    SGI_PHASE_DONE, /* the outcome is known, in this phase and all later phases */
    /* The application cancelled the request after the outcome was known. The remaining
     * segments are delivered even if the application has given no credit for them. */
    SGI_PHASE_GIVEN_UP,
    SGI_PHASE_REPORTED /* on_complete has begun */
} sgi_phase;

/* The largest valid number of an event or a segment. A larger number in a message of the
 * server is an error. */
#define SGI_COUNT_MAX (INT64_C(1) << 53)

/* The idempotency key of a call. */
typedef struct sgi_idempotency_key {
    char *text; /* the text of the key; NULL = the call has no key */
    /* True when the key comes from a resume token. Without this key, the call would run a
     * second time. */
    bool needed;
    bool sent;
    /* True when the application can resume the call later, because it chose the key
     * itself or has a resume token that contains the key. */
    bool kept;
} sgi_idempotency_key;

/* What a request had received of its result when its call was sent again. The new message
 * brings the result from the first segment on. Until it has brought a segment that no
 * earlier message had brought, the earlier part is the larger one (received_part.c). */
typedef struct sgi_earlier_part {
    sgi_buf json;  /* the part as a JSON object; empty = no part */
    uint64_t next; /* number of the first segment that is not in the part */
} sgi_earlier_part;

typedef struct sgi_task_follow sgi_task_follow;
typedef struct sgi_cli_dialect sgi_cli_dialect;
typedef struct sgi_cli_follow_ops sgi_cli_follow_ops;
typedef struct sgi_cli_inquiry_ops sgi_cli_inquiry_ops;

/* What was done about the log level of a request in the handshake eras (log_wish.c). */
typedef struct sgi_log_wish {
    int32_t session; /* the wire session in which logging/setLevel was sent; 0 = none */
    /* the application has set a level after that, so the level of the request does not
     * count any more */
    bool overruled;
} sgi_log_wish;

/* Who made a request, if the engine itself did (reverse/question_task.c). `ended` is then
 * called under the lock when the request ends, and no events are called. NULL = the
 * application made the request. */
typedef struct sgi_request_maker {
    void (*ended)(segue_request *request);
    void *owner;
} sgi_request_maker;

struct segue_request {
    sgi_handle handle;
    sgi_engine *engine;
    /* One reference each for the application's handle, the session's list and the ready
     * queue. */
    int32_t refs;
    segue_session *session; /* a counted reference */
    TAILQ_ENTRY(segue_request) link;
    /* the task handle from which the request was made, with a counted reference; NULL =
     * no handle */
    segue_task *task;
    /* true when the method is tools/call; only such a request can become a task */
    bool is_call;
    sgi_phase phase;
    char *method;
    /* the params, an object; the text is the request's. Empty = it has no params */
    sgi_json params;
    sgi_json own_meta; /* _meta of params, a part of their text; empty = none */
    segue_request_options options;
    char *log_level;
    /* the members of _meta that declare the capabilities of the request in 2026-07-28;
     * NULL = those of the session */
    char *meta;
    sgi_idempotency_key key;
    /* number of pages of tools/list that were fetched after the server refused the
     * headers of the call */
    int32_t pages;
    sgi_log_wish wish;
    /* true when the request was sent again because the server seemed to be of another
     * era; this is done only once */
    bool era_doubted;
    /* id of the last message that carried the request; progress notifications name this
     * id */
    int64_t call_id;
    /* number of the wire session in which the message `call_id` was sent */
    int32_t call_session;
    /* number of messages that carried the request and may have reached the server */
    int32_t sent;
    /* value of cache.changes when the request was sent; the result is cached only if
     * cache.changes still has this value; 0 = the result must not be cached */
    uint64_t cache_mark;
    segue_request_events events;
    sgi_timer deadline;
    /* counts the attempts to send the call; for a task, the attempts of tasks/get */
    sgi_tries tries;
    /* the exchange that carries the request itself; NULL = no such exchange is under
     * way */
    sgi_emitter *calling;
    sgi_fold fold;
    sgi_earlier_part earlier;

    /* The task that the request has become, or the task of the handle from which the
     * request was made. follower: the functions of the task's dialect. Both members are
     * NULL for a request without a task. */
    const sgi_cli_follow_ops *follower;
    char *task_id;
    /* true when tasks/cancel is due or under way; only the answer to tasks/cancel ends
     * the request */
    bool cancel_due;
    /* the state of following that all dialects of tasks share (following/follow.h); NULL
     * = the request has no task */
    sgi_task_follow *follow;

    sgi_questions questions;

    /* the states of the dialects for this request, as a list (dialects.h) */
    sgi_cli_dialect_state *states;
    bool taken_over; /* true when another process began the request */
    /* the highest progress that was reported; NAN = no progress was reported */
    double last_progress;

    /* The following members are for the delivery of events to the application. */
    sgi_ready_object ready;
    sgi_segment_numbering numbering;
    sgi_delivery delivery;

    /* The following members hold the outcome of the request. */
    int64_t began_ms; /* monotonic time at which the request was made */
    segue_status status;
    sgi_buf result;
    bool says_error; /* the result has "isError": true */
    segue_error *error;
    sgi_request_maker maker;
};

/* ---- request.c, request_life.c, request_end.c ---- */

typedef struct sgi_request_spec {
    sgi_str method;
    sgi_json params; /* a JSON object; empty = the request has no params */
    const segue_request_options *options;
    const segue_request_events *events; /* NULL = the request has no callbacks */
    /* the idempotency key from a resume token; empty = the key, if any, is in the
     * options */
    sgi_str key;
    /* id of the task that the request follows; empty = the request sends `method` */
    sgi_str task_id;
    /* the texts of a resume token; members of this struct point into this buffer */
    sgi_buf *room;
    uint64_t next_event;
    /* for a task with a stream, from a resume token: the task waits for answers */
    bool asks;
    uint64_t next_segment;
    /* For a request that is made from a token: number of segments that the application
     * has already. These segments are not delivered again. */
    int64_t seen;
    uint64_t void_segments;
    /* the dialect that follows the task; NULL = the version of the session decides on the
     * dialect */
    const sgi_cli_follow_ops *follower;
    /* for the handle of a resumable request: the functions that ask for its state; NULL =
     * the handle is that of a task */
    const sgi_cli_inquiry_ops *inquiry;
    /* a text (JSON) from the server, which the client must send back with each message
     * about the task; may be empty */
    sgi_json echo;
    segue_task *task;
    /* resume token of the call whose answer the client asks for; empty = the request
     * sends `method` */
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
/* Frees a request. The request must have no references. */
void sgi_request_free(segue_request *request);
/* Puts the request into the ready queue. Called when the request has events for the
 * application. */
void sgi_request_queue_callbacks(segue_request *request);

segue_status sgi_request_cancel(segue_request *request);
/* Cancels a call, because its session closes. Does nothing when the idempotency key of
 * the call is known outside this session, because the application can then resume the
 * call. */
void sgi_request_cancel_at_close(segue_request *request);
segue_status sgi_request_detach(segue_request *request);
segue_status sgi_request_answer(segue_request *request, const char *key, sgi_json answer);
/* Answers a question with an error. data: JSON, may be empty. */
segue_status sgi_request_answer_error(segue_request *request, const char *key,
                                      int32_t code, sgi_str message, sgi_json data);
/* Returns the status for an answer that comes when the request is over: SEGUE_E_TERMINAL
 * when on_complete has begun, otherwise SEGUE_E_NOT_FOUND. */
static inline segue_status sgi_request_no_question_status(const segue_request *request)
{
    return request->phase == SGI_PHASE_REPORTED ? SEGUE_E_TERMINAL : SEGUE_E_NOT_FOUND;
}
segue_status sgi_request_grant_credit(segue_request *request, int64_t n);

/* Ends the request with this result. Does nothing when the request has already ended. */
void sgi_request_finish(segue_request *request, sgi_json result);
/* Like sgi_request_finish, but moves the content out of the buffer instead of copying it,
 * and does not read the content: the content has a list if it must have one. */
void sgi_request_finish_with_buffer(segue_request *request, sgi_buf *result,
                                    bool says_error);
/* Ends the request with the server's error. what: the method of the message that the
 * error answers, if that message is not the request itself; otherwise NULL. */
void sgi_request_finish_error(segue_request *request, const char *what, sgi_json error);
/* Like sgi_request_finish_error, but with this status. The application also gets the part
 * of the result that was received. */
void sgi_request_fail_error(segue_request *request, segue_status status, const char *what,
                            sgi_json error);
void sgi_request_fail(segue_request *request, segue_status status, const char *text);
/* Ends the request because it exceeded a limit of this client. what: the text before the
 * limit. */
void sgi_request_fail_limit(segue_request *request, segue_status status, const char *what,
                            sgi_limit limit);
/* Ends the request because the collected result is larger than max_result_bytes. */
void sgi_request_fail_too_large(segue_request *request);

/* Drops the received part of the result, because the server sends the whole result
 * again. */
void sgi_request_drop_received_result(segue_request *request);

/* ---- received_part.c ---- */

/* Keeps the received part, because the call is about to be sent again. */
void sgi_received_part_set_aside(segue_request *request);
/* Writes the received part into request->result, which on_complete gets together with the
 * error that ended the request. Writes nothing when out of memory or without a part. */
void sgi_received_part_write(segue_request *request);
/* Handles the outcome of the exchange that carries the request itself. */
void sgi_request_take_outcome(segue_request *request, const sgi_outcome *outcome);
/* True when the error says that the server is closing and has not begun the call
 * (wire/ending.h). */
bool sgi_error_is_server_closing(sgi_json error);
/* True when the error says that the server ended before its answer was ready. The call
 * may have begun (wire/ending.h). */
bool sgi_error_is_unanswered(sgi_json error);
/* True when the error says that the handler of the call was lost with an earlier process
 * of the server (wire/ending.h). */
bool sgi_error_is_restarted(sgi_json error);
/* True when the error says that the server cannot read its store now, and asks for a
 * pause. Such an error is not the outcome of the call. */
bool sgi_error_is_unread_store(sgi_json error);
/* Sends the message that is due in the current phase. The session must be open. */
void sgi_request_send_due(segue_request *request);

/* ---- notices.c: events of the session ---- */

void sgi_requests_on_session_open(segue_session *session);
void sgi_requests_on_session_close(segue_session *session, segue_status status,
                                   const char *text);
/* Makes each request fetch its result. Called when a message of the server could not be
 * read, because the message may have been an event of a stream. */
void sgi_requests_fetch_results(segue_session *session);
/* Finds the running call, or the task of a call, with this progress token. Returns NULL
 * when there is no such call. */
segue_request *sgi_requests_find_by_progress_token(segue_session *session,
                                                   sgi_json token);
/* Passes a notification to its request. Returns false when the notification belongs to no
 * request. */
bool sgi_requests_take_notification(segue_session *session, sgi_str method,
                                    const sgi_message *msg);

/* ---- log_wish.c: the log level that a request needs ---- */

/* Sends logging/setLevel before the request is sent, if the request needs another log
 * level. Returns false when the request has to wait for the answer to
 * logging/setLevel. */
bool sgi_request_prepare_log_level(segue_request *request);
/* Notes the log level that the application itself has set. Called when a request has got
 * a result; does nothing unless the request was logging/setLevel. */
void sgi_request_note_set_log_level(segue_request *request);
/* Delivers a log message to the request on whose exchange the message came. Over stdio
 * the message names no request, so the oldest request that wants messages of this level
 * gets it. Returns false when no request wants the message. */
bool sgi_requests_take_log_message(segue_session *session, sgi_json params);

/* ---- result_check.c ---- */

/* Reads whether the result says that it is an error. Returns false when the member that
 * has to be the list of the result is not an array. A missing list is accepted, because
 * some servers of versions up to 2025-11-25 leave out an empty list. */
bool sgi_request_look_at_result(segue_request *request);
/* Checks a tool's output against the tool's outputSchema. If the output does not fit,
 * ends the request with an error. Called before on_complete. */
void sgi_request_validate_result(segue_request *request);
/* Returns the name of the member that holds the list in a result of this request's
 * method, such as "tools"; NULL when the method has no such list. */
const char *sgi_result_list_member(const segue_request *request);

/* ---- tool_lookup.c ---- */

/* Handles the error that answers tools/call. Returns true when the error says that the
 * headers of the call are wrong. The client then lists the tools and sends the call
 * again. */
bool sgi_request_look_up_tool_headers(segue_request *request, sgi_json error);
/* Stores the header parameters and the schemas of the tools from a whole result of
 * tools/list. Ignores results of other methods. */
void sgi_request_store_listed_tools(segue_request *request, sgi_json result);
/* Writes the result of tools/list to `out` without its invalid tools. Returns false, and
 * writes nothing, when all tools are valid. The caller checks out->failed. */
bool sgi_tool_list_remove_invalid(segue_request *request, sgi_json result, sgi_buf *out);

/* ---- token.c ---- */

segue_status sgi_resume_token_write(segue_request *request, sgi_buf *out);
/* Sets *era to the era of the sessions that can resume the token; SEGUE_ERA_AUTO = all
 * can. */
segue_status sgi_resume_token_era(sgi_engine *engine, const char *token, int32_t *era);
/* Makes a request from a resume token. The request continues at the position that the
 * token contains. */
segue_status sgi_request_new_from_token(segue_session *session, const char *token,
                                        const segue_request_options *options,
                                        const segue_request_events *events,
                                        segue_request **out);
/* Makes a task handle from a resume token. */
segue_status sgi_task_handle_new_from_token(segue_session *session, const char *token,
                                            segue_task **out);
/* Like sgi_request_new_from_token. The token is the one from which the task handle was
 * made. */
segue_status sgi_task_handle_watch_by_token(segue_task *task,
                                            const segue_request_options *options,
                                            const segue_request_events *events,
                                            segue_request **out);

/* ---- task_handle.c ---- */

struct segue_task {
    sgi_handle handle;
    int32_t refs;
    segue_session *session; /* a counted reference */
    /* id of the task; "" for the handle of a resumable request, which has a
     * resume_token */
    char *id;
    int32_t state;
    /* the dialect of the task; NULL = the version of the session decides on the
     * dialect */
    const sgi_cli_follow_ops *follower;
    /* for the handle of a resumable request: the functions that ask for its state; NULL =
     * the handle is that of a task */
    const sgi_cli_inquiry_ops *inquiry;
    /* a text (JSON) from the server, which the client must send back with each message
     * about the task; may be empty */
    sgi_buf echo;
    /* the token from which the handle was made; NULL = the handle was made from an id */
    char *token;
    /* JSON text of a resumable request's token (SEP-975); NULL for a task */
    char *resume_token;
    int64_t call_id; /* id of the resumable request; not used for a task */
};

#define SGI_TASK_ID_MAX 4096

/* Returns the state (segue_task_state) that the server's word `status` means. */
int32_t sgi_task_state_from_status(sgi_json status);
static inline bool sgi_task_state_is_terminal(int32_t state)
{
    return state == SEGUE_TASK_COMPLETED || state == SEGUE_TASK_FAILED ||
           state == SEGUE_TASK_CANCELLED;
}

/* Makes a task handle from the id of a task. */
segue_status sgi_task_handle_new_for_id(segue_session *session, const char *id,
                                        segue_task **out);
/* Makes a task handle. spec: the content of a token, or only a task_id. token: the text
 * of the token; "" = the handle is not made from a token. */
segue_status sgi_task_handle_new(segue_session *session, const sgi_request_spec *spec,
                                 sgi_str token, segue_task **out);
void sgi_task_handle_unref(segue_task *task);
/* Stores the state that the server reports for the task. Once a terminal state is stored,
 * the state never changes (R-2557-47). */
void sgi_task_handle_set_state(segue_task *task, int32_t state);

/* ---- task_requests.c ---- */

/* Returns true when a request that was made from a task handle may be sent in this
 * session. Otherwise ends the request and returns false. */
bool sgi_task_handle_check_session(segue_request *request);
/* Stores in the task handle the state that this error shows. The error answers a request
 * of the handle, or has ended such a request. */
void sgi_task_handle_note_error(segue_request *request, sgi_json error);
/* Sends tasks/get after the server has refused tasks/cancel, to learn the state of the
 * task. Returns false when the request was not tasks/cancel, or when out of memory. */
bool sgi_task_handle_get_if_cancel_refused(segue_request *request, sgi_json error);
/* Ends tasks/get of a handle if the error says that the server does not know the task.
 * Returns false for another request or error. */
bool sgi_task_handle_take_unknown(segue_request *request, sgi_json error);
/* Stores the state that this result shows in the task handle of the request. Does nothing
 * when the request was not made from a handle. */
void sgi_task_handle_note_answer(segue_request *request, sgi_json result);
segue_status sgi_task_handle_get(segue_task *task, const segue_request_events *events,
                                 segue_request **out);
/* Sends tasks/cancel. Returns SEGUE_E_UNSUPPORTED for the handle of a resumable request,
 * because only a task can be cancelled by a handle. */
segue_status sgi_task_handle_cancel(segue_task *task, const segue_request_events *events,
                                    segue_request **out);
segue_status sgi_task_handle_watch(segue_task *task, const segue_request_options *options,
                                   const segue_request_events *events,
                                   segue_request **out);

#endif
