/* The client's side of the dialects (drafts and versions of the protocol that change how
 * a result arrives). Each dialect is a table of functions. A request and its session call
 * the tables in order at the moments that are named here, and have no other code for
 * dialects. A function that is NULL is skipped.
 *
 * The data that a dialect stores for a request or for a session is a struct of its own,
 * called its state. The state of a request exists from sgi_cli_state_new until the
 * request is freed or the dialect drops the state. The state of a session exists as long
 * as the session. */
#ifndef SGI_CLI_DIALECTS_H
#define SGI_CLI_DIALECTS_H

#include "engine/client/request.h"

typedef struct sgi_cli_session_hooks sgi_cli_session_hooks;

/* The state of a dialect for one request or one session: the first member of a struct
 * that the dialect defines. */
struct sgi_cli_state {
    const sgi_cli_dialect *dialect;
    sgi_cli_state *next;
};

/* The functions by which a dialect follows a task. A request that has become a task, or
 * that was made from a task handle, has one such table in request->follower and calls no
 * other dialect. */
struct sgi_cli_following {
    /* The method of the message that carries the answer to a question; used in error
     * messages. */
    const char *answers_by;
    /* True when tasks that are made in this session belong to this dialect. */
    bool (*fits)(const segue_session *session);
    /* Makes the state with which the request follows its task. Does nothing when the
     * state exists: the function is called before each message about the task. Returns
     * false when out of memory. */
    bool (*begin)(segue_request *request);
    /* Sends the message about the task that is due now, if there is one. */
    void (*due)(segue_request *request);
    /* Sends the application's answer to a question of the task, or notes that the answer
     * has to be sent. */
    void (*answered)(segue_request *request, sgi_question *question);
    /* Called at the end of the exchange of the call: this exchange brings no more
     * segments. */
    void (*pushed)(segue_request *request, const sgi_outcome *outcome);
    /* Handles a description of the task that the server sent without a request. Returns
     * false when the description has no effect. */
    bool (*status)(segue_request *request, sgi_json task);
    /* Called when the application's on_task callback has run. */
    void (*task_reported)(segue_request *request);
    /* Asks the server to stop the stream of segments, because the application gives no
     * more credit. */
    void (*pause)(segue_request *request);
    /* True when the server sends parts of the result without a request for each part. */
    bool (*is_streamed)(const segue_request *request);
    /* Called when the inbox has room for segments again. was_full: the inbox was full
     * before. */
    void (*has_room)(segue_request *request, bool was_full);
    /* Returns the exchange that brings parts of the result; NULL = there is none. */
    sgi_emitter *(*streaming)(const segue_request *request);
    /* True when an exchange about the task waits until a user has decided about a
     * token. */
    bool (*is_held)(const segue_request *request);
    /* Asks the server to cancel the task. Its answer ends the request with this status,
     * SEGUE_E_CANCELLED or SEGUE_E_TIMEOUT. Returns false when the server was asked
     * before. */
    bool (*cancel)(segue_request *request, segue_status status);
    /* Drops all exchanges about the task, because the request ends. */
    void (*end)(segue_request *request);
    /* Writes the task's part of a resume token. */
    void (*write_token)(const segue_request *request, sgi_jw *w);
    /* True when the progress token of the call stays valid while the task lives. */
    bool (*keeps_call_token)(const segue_request *request);
    /* Writes members that each message about the task must have. */
    void (*write_about)(const segue_request *request, sgi_jw *w);
    /* Returns a text from the server's description of a task that the client must send
     * back with its next message about the task; empty = there is no such text. */
    sgi_json (*echo_of)(sgi_json task);
};

/* The functions by which a dialect asks the server about a request that is not a task.
 * The application has a handle of this request (segue_task). */
struct sgi_cli_inquiry {
    const char *method;
    void (*write_params)(const segue_task *task, sgi_jw *w);
    /* Returns the state (segue_task_state) according to the server's answer. */
    int32_t (*state)(sgi_json result);
    /* Returns the state according to an error; SEGUE_TASK_UNKNOWN = the error does not
     * show the state. The error answers the inquiry, or the request itself. */
    int32_t (*refused)(const segue_request *request, sgi_json error);
};

/* The functions that a dialect has for a session and its handshake. */
struct sgi_cli_session_hooks {
    /* Size of the session's state; 0 = the dialect has no such state, and `state` is
     * NULL. The state is zeroed when it is made. `begin` initializes it. `free` frees
     * what the state points to, but not the state. */
    size_t state_size;
    void (*begin)(segue_session *session, sgi_cli_state *state);
    void (*free)(segue_session *session, sgi_cli_state *state);
    /* capability: the name of a capability without members that the client declares in
     * initialize, unless the application declares it. modern_capability: the name of a
     * capability that the client declares in each request of 2026-07-28, where the
     * application cannot declare it. NULL = none. declares: returns false when the
     * dialect is switched off. */
    const char *capability, *modern_capability;
    bool (*declares)(const segue_session *session);
    /* The protocol version that only this dialect has; SGI_VERSION_UNKNOWN = there is
     * none. initialize offers this version when `declares` returns true. */
    sgi_version version;
    /* Writes members of the capabilities in initialize. given: the capabilities that the
     * application declares. */
    void (*write_capabilities)(const segue_session *session, sgi_json given, sgi_jw *w);
    /* Returns the name of an experimental capability that the client declares in
     * initialize; NULL = the dialect declares none. */
    const char *(*experimental)(const segue_session *session, sgi_json given);
    /* Reads the capabilities that the client declares in initialize. */
    void (*declared)(segue_session *session, sgi_json capabilities);
    /* Reads the capabilities that the server has declared. */
    void (*read_server_capabilities)(segue_session *session, sgi_json capabilities);
    /* Handles a refusal of an exchange that the dialect itself has begun, because the
     * server may now be one of another era. Returns true when the request that waits for
     * the exchange may be sent once more. */
    bool (*may_be_another_era)(sgi_emitter *emitter);
};

struct sgi_cli_dialect {
    const char *name;
    const sgi_cli_following *following; /* NULL = the dialect makes no tasks */
    /* NULL = the dialect does nothing for a session */
    const sgi_cli_session_hooks *session_hooks;
    /* NULL = the dialect has no requests for which the application can have a handle */
    const sgi_cli_inquiry *inquiry;
    size_t state_size;
    /* Frees what the state points to, but not the state. */
    void (*free_state)(segue_request *request, sgi_cli_state *state);

    /* Fills the state of a request that is made from a resume token. The request was
     * begun earlier, perhaps by another process. Returns false when out of memory. */
    bool (*take_over)(segue_request *request, const sgi_request_spec *spec);
    /* write_token writes the dialect's part of a resume token; it is called for a request
     * that has a state of the dialect. read_token reads this part. It returns false when
     * the token belongs to another dialect. Otherwise it sets *status, which says whether
     * the token is valid. */
    void (*write_token)(const segue_request *request, sgi_jw *w);
    bool (*read_token)(sgi_json token, sgi_request_spec *spec, segue_status *status);

    /* True when the client can ask in this session for the answer of the request again.
     * When it cannot, the function ends the request and returns false. */
    bool (*fits)(segue_request *request);
    /* Asks for the answer of a request again, under the old id of the request. Called
     * when the request has to be sent again and has a state of the dialect. Requests of a
     * dialect that has this function are resumable. */
    void (*send_again)(segue_request *request);
    /* Returns the token (JSON, may be empty) with which the client can ask for the answer
     * again. Called only for a request that has a state of the dialect. */
    sgi_str (*resume_token)(const segue_request *request);
    /* Asks for the answer of a call whose request has already ended, with the resume
     * token of the call. Returns NULL when this is not possible now. */
    sgi_emitter *(*resume)(segue_session *session, int64_t id, sgi_str token);
    /* Called before the call is sent. Returns false when the call has to wait, or when
     * the function has ended the request. */
    bool (*prepare)(segue_request *request);
    /* Adds to the message of a call the members that request the dialect. Called before
     * the message is sent. emitter->repeats: the message asks for the answer of an
     * earlier exchange. */
    void (*offer)(segue_request *request, sgi_emitter *emitter);
    /* Write members of params and of _meta for a call. A comma precedes each member of
     * _meta. */
    void (*write_params)(const segue_request *request, sgi_jw *w);
    void (*write_meta)(const segue_request *request, sgi_buf *out, int64_t id);

    /* Handles the result with which the call was answered. Returns true when the result
     * belongs to this dialect. */
    bool (*answer)(segue_request *request, sgi_json result);
    /* Handles the error with which the call was answered. Returns true when the dialect
     * will send the call again in another form. */
    bool (*change_form)(segue_request *request, sgi_json error);
    /* Handles a notification. Returns true when the notification belongs to the dialect.
     * *taken is then set when a request has used it. */
    bool (*notified)(segue_session *session, sgi_str method, const sgi_message *msg,
                     bool *taken);
    /* Over HTTP. position returns the id of the last stream event that was processed, if
     * a message with this method must name it (Last-Event-ID). set_position stores this
     * id. */
    sgi_str (*position)(const segue_request *request, sgi_str method);
    void (*set_position)(segue_request *request, sgi_str id);
    /* Called when the exchange of the call was lost and the request has a state. */
    void (*lost)(segue_request *request);
    /* Called when the application has cancelled the call, before the exchange of the call
     * is dropped. Returns true when the exchange must go on, without the request. */
    bool (*keep_exchange)(sgi_emitter *emitter);
    /* asks_for_task: true when the message of the call asks for a task. may_be_task: true
     * when the server may answer the call with a task. */
    bool (*asks_for_task)(const segue_request *request);
    bool (*may_be_task)(const segue_request *request);
    /* True when a result of this resultType is a round of questions under another name
     * than that of the protocol. */
    bool (*is_round)(const segue_session *session, sgi_json type);
    /* Returns the task in the answer of a call; empty = the answer has no task. */
    sgi_json (*task_in)(const segue_session *session, sgi_json result);
    /* Called when the call has become a task. Drops the parts of the result that were
     * received before, because the result of the task will contain them. */
    void (*became_task)(segue_request *request);
    /* Reads a description of a task. The task is that of the request or, for a request
     * made from a handle, that of the handle. is_answer: the description answers a
     * message of the client. */
    void (*note_task)(segue_request *request, sgi_json task, bool is_answer);
    /* Reads a page of the list of tools that the application has requested. */
    void (*tools_listed)(const segue_request *request, sgi_json result);
    /* Called for each request that has a state, when a message of the server could not be
     * read: it may have been a part of the result. */
    void (*note_lost_message)(segue_request *request);
    /* Called for a request that has a state, when a user has decided about a token. ms:
     * the duration of the decision, which does not count as time without a server. */
    void (*exclude_user_time)(segue_request *request, int64_t ms);
    /* has_received: true when the dialect has received a part of the result that is not
     * in the request's fold (the collected result). write_received writes this part as
     * members of an object. Both are called for a request that has a state. */
    bool (*has_received)(const segue_request *request);
    void (*write_received)(const segue_request *request, sgi_jw *w);
    /* Returns the number up to which no segment is missing; -1 = not known. */
    int64_t (*received_up_to)(const segue_request *request);
};

/* All dialects, ended by NULL (engine/dialect/rows.def). */
extern const sgi_cli_dialect *const sgi_cli_dialects[];

/* Returns the state that a dialect has for a request; NULL = none. */
void *sgi_cli_state_of(const segue_request *request, const sgi_cli_dialect *dialect);
/* Returns the state that a dialect has for a request. Makes the state if there is none.
 * NULL when out of memory. */
void *sgi_cli_state_new(segue_request *request, const sgi_cli_dialect *dialect);
void sgi_cli_state_drop(segue_request *request, const sgi_cli_dialect *dialect);
void sgi_cli_states_free(segue_request *request);

/* Returns the state that a dialect has for a session; NULL = none. */
void *sgi_cli_session_state(const segue_session *session, const sgi_cli_dialect *dialect);
/* Makes the states of all dialects for a session. Returns false when out of memory. */
bool sgi_cli_session_states_begin(segue_session *session);
void sgi_cli_session_states_free(segue_session *session);
/* Returns the version that initialize offers because a dialect has it;
 * SGI_VERSION_UNKNOWN = none. */
sgi_version sgi_cli_own_version(const segue_session *session);
void sgi_cli_write_capabilities(const segue_session *session, sgi_json given, sgi_jw *w);
/* sgi_cli_write_plain_capabilities writes the capabilities without members that
 * initialize declares. sgi_cli_write_modern_capabilities writes the capabilities that
 * requests of 2026-07-28 declare. It also writes the members of `given`, except the
 * member named `except`. */
void sgi_cli_write_plain_capabilities(const segue_session *session, sgi_json given,
                                      sgi_jw *w);
void sgi_cli_write_modern_capabilities(const segue_session *session, sgi_json given,
                                       const char *except, sgi_jw *w);
/* Writes the experimental capabilities of the dialects, except those that the application
 * declares itself (own). */
void sgi_cli_write_experimental(const segue_session *session, sgi_json given,
                                sgi_json own, sgi_jw *w);
/* True when sgi_cli_write_experimental would write at least one member. */
bool sgi_cli_declares_experimental(const segue_session *session, sgi_json given);
void sgi_cli_note_declared(segue_session *session, sgi_json capabilities);
void sgi_cli_read_server_capabilities(segue_session *session, sgi_json capabilities);
bool sgi_cli_may_be_another_era(sgi_emitter *emitter);

/* Returns the table of the dialect that follows the tasks of this session. */
const sgi_cli_following *sgi_cli_following_of(const segue_session *session);

bool sgi_cli_take_over(segue_request *request, const sgi_request_spec *spec);
/* Writes the dialects' part of a resume token. Returns false when no dialect has written
 * anything. */
bool sgi_cli_write_token(const segue_request *request, sgi_jw *w);
bool sgi_cli_read_token(sgi_json token, sgi_request_spec *spec, segue_status *status);
/* True when a dialect can ask again for the answer of this request. */
bool sgi_cli_is_resumable(const segue_request *request);
bool sgi_cli_can_send_again(segue_request *request);
/* Asks for the answer of a request again. Returns false when no dialect can ask for
 * it. */
bool sgi_cli_send_again(segue_request *request);
sgi_str sgi_cli_resume_token(const segue_request *request);
sgi_emitter *sgi_cli_resume(segue_session *session, int64_t id, sgi_str token);
bool sgi_cli_prepare(segue_request *request);
void sgi_cli_offer(segue_request *request, sgi_emitter *emitter);
void sgi_cli_write_params(const segue_request *request, sgi_jw *w);
void sgi_cli_write_meta(const segue_request *request, sgi_buf *out, int64_t id);
bool sgi_cli_take_answer(segue_request *request, sgi_json result);
bool sgi_cli_change_form(segue_request *request, sgi_json error);
/* Passes a notification to the dialects. Returns false when the notification belongs to
 * none of them. */
bool sgi_cli_take_notification(segue_session *session, sgi_str method,
                               const sgi_message *msg, bool *taken);
/* True for a method by which a dialect asks about a request that is not a task
 * (sgi_cli_inquiry). */
bool sgi_cli_is_inquiry(sgi_str method);
sgi_str sgi_cli_last_event_id(const segue_request *request, sgi_str method);
void sgi_cli_set_last_event_id(segue_request *request, sgi_str id);
void sgi_cli_note_exchange_lost(segue_request *request);
bool sgi_cli_keep_exchange(sgi_emitter *emitter);
bool sgi_cli_asks_for_task(const segue_request *request);
bool sgi_cli_may_be_task(const segue_request *request);
bool sgi_cli_is_round(const segue_session *session, sgi_json type);
sgi_json sgi_cli_task_in(const segue_session *session, sgi_json result);
void sgi_cli_became_task(segue_request *request);
void sgi_cli_note_task(segue_request *request, sgi_json task, bool is_answer);
void sgi_cli_tools_listed(const segue_request *request, sgi_json result);
void sgi_cli_note_lost_message(segue_request *request);
void sgi_cli_exclude_user_time(segue_request *request, int64_t ms);
/* Returns the exchange that brings parts of the result of the request's task; NULL =
 * there is none. */
sgi_emitter *sgi_cli_streaming(const segue_request *request);
/* True when a dialect has received a part of the result that is not in the request's
 * fold. */
bool sgi_cli_has_received(const segue_request *request);
/* Writes the parts of a result that dialects have received. Returns false when there are
 * none. */
bool sgi_cli_write_received(const segue_request *request, sgi_jw *w);
int64_t sgi_cli_received_up_to(const segue_request *request);

#endif
