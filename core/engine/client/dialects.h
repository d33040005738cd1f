/* The client's side of the dialects (drafts and versions of the protocol that change how
 * a result arrives). Each dialect is a table of functions. A request and its session call
 * the functions of all tables, in order, at the moments that the comments below name.
 * Requests and sessions have no other code for dialects. A function that is NULL is
 * skipped.
 *
 * The data that a dialect stores for a request or for a session is a struct of its own,
 * called its state. The state of a request exists from sgi_cli_dialect_state_find_or_new
 * until the request is freed or the dialect drops the state. The state of a session
 * exists as long as the session. */
#ifndef SGI_CLI_DIALECTS_H
#define SGI_CLI_DIALECTS_H

#include "engine/client/request.h"

typedef struct sgi_cli_session_hooks sgi_cli_session_hooks;

/* The head of a dialect's state. Each dialect defines a struct for its state, and this
 * struct is the first member. */
struct sgi_cli_dialect_state {
    const sgi_cli_dialect *dialect;
    sgi_cli_dialect_state *next;
};

/* The functions by which a dialect follows a task. To follow a task is to ask for its
 * state or read its stream until it ends. request->follower points to such a table when
 * the request has become a task, or was made from a task handle. The request then calls
 * no other dialect. */
struct sgi_cli_follow_ops {
    /* The era of the sessions of this dialect, and what a session of another dialect is
     * told about a task of this one. */
    int32_t era;
    const char *other_session;
    /* The name of the method that carries the answer to a question, for error
     * messages. */
    const char *answers_by;
    /* True when tasks that are made in this session belong to this dialect. */
    bool (*fits)(const segue_session *session);
    /* Makes the object that holds what the request knows about its task. Called before
     * each message about the task, so it does nothing when the object exists. Returns
     * false when out of memory. */
    bool (*begin)(segue_request *request);
    /* Sends the message about the task that is due now; does nothing when no message is
     * due. */
    void (*due)(segue_request *request);
    /* Sends the application's answer to a question of the task, or notes that the answer
     * must be sent later. */
    void (*answered)(segue_request *request, sgi_question *question);
    /* Called when the exchange of the call has ended and brings no more segments. */
    void (*pushed)(segue_request *request, const sgi_outcome *outcome);
    /* Handles a description of the task that the server sent without being asked. Returns
     * false when the description changes nothing. */
    bool (*status)(segue_request *request, sgi_json task);
    /* Called when the application's on_task callback has run. */
    void (*task_reported)(segue_request *request);
    /* Asks the server to stop the stream of segments, because the application gives no
     * credit (permission) for more segments. */
    void (*pause)(segue_request *request);
    /* True when the server sends parts of the result without a request for each part. */
    bool (*is_streamed)(const segue_request *request);
    /* Called when the inbox has room for segments again. was_full: before this call the
     * inbox was full. */
    void (*has_room)(segue_request *request, bool was_full);
    /* Returns the exchange that brings parts of the result; NULL when there is no such
     * exchange. */
    sgi_emitter *(*streaming)(const segue_request *request);
    /* True while an exchange about the task waits for a user who decides about an access
     * token (OAuth). */
    bool (*is_held)(const segue_request *request);
    /* Asks the server to cancel the task. The server's answer then ends the request with
     * `status`, which is SEGUE_E_CANCELLED or SEGUE_E_TIMEOUT. Returns false when the
     * server was asked before. */
    bool (*cancel)(segue_request *request, segue_status status);
    /* Drops all exchanges about the task. Called when the request ends. */
    void (*end)(segue_request *request);
    /* Writes the part of a resume token that is about the task. */
    void (*write_token)(const segue_request *request, sgi_jw *w);
    /* True when the progress token of the call stays valid as long as the task. */
    bool (*keeps_call_token)(const segue_request *request);
    /* Writes the members that every message about the task must have. */
    void (*write_about)(const segue_request *request, sgi_jw *w);
    /* Returns a text in the server's description of a task that the client must send back
     * with its next message about the task; empty when the description has no such
     * text. */
    sgi_json (*echo_of)(sgi_json task);
};

/* The functions by which a dialect asks the server for the state of a resumable request,
 * which is not a task. The application has a handle of the request (segue_task). */
struct sgi_cli_inquiry_ops {
    const char *method;
    void (*write_params)(const segue_task *task, sgi_jw *w);
    /* Returns the state (segue_task_state) that the server's answer shows. */
    int32_t (*state)(sgi_json result);
    /* Returns the state that an error shows; SEGUE_TASK_UNKNOWN when the error does not
     * show the state. The error answers the inquiry, or the request itself. */
    int32_t (*refused)(const segue_request *request, sgi_json error);
};

/* The functions that a dialect has for a session and its handshake. */
struct sgi_cli_session_hooks {
    /* Size of the dialect's state for a session; 0 = the dialect has no such state, and
     * the argument `state` is NULL. A new state is filled with zeros. `begin` initializes
     * the state. `free` frees what the state points to, but not the state itself. */
    size_t state_size;
    void (*begin)(segue_session *session, sgi_cli_dialect_state *state);
    void (*free)(segue_session *session, sgi_cli_dialect_state *state);
    /* `capability`: name of a capability without members. The client declares this
     * capability in initialize, unless the application declares it. `modern_capability`:
     * name of a capability that the client declares in each request of 2026-07-28; the
     * application cannot declare it. NULL = the dialect has no such capability.
     * `declares` returns false when the dialect is switched off. */
    const char *capability, *modern_capability;
    bool (*declares)(const segue_session *session);
    /* The protocol version that only this dialect has. initialize offers this version
     * when `declares` returns true. SGI_VERSION_UNKNOWN = the dialect has no version of
     * its own. */
    sgi_version version;
    /* Writes members of the capabilities for initialize. given: the capabilities that the
     * application declares. */
    void (*write_capabilities)(const segue_session *session, sgi_json given, sgi_jw *w);
    /* Returns the name of the experimental capability that the client declares in
     * initialize; NULL when the dialect declares no such capability. */
    const char *(*experimental)(const segue_session *session, sgi_json given);
    /* Reads the capabilities that the client declares in initialize. */
    void (*declared)(segue_session *session, sgi_json capabilities);
    /* Reads the capabilities that the server has declared. */
    void (*read_server_capabilities)(segue_session *session, sgi_json capabilities);
    /* Called when the server refused an exchange that the dialect itself has begun.
     * Another server, of another era, may have replaced the first one. Returns true when
     * the request that waits for the exchange may be sent once more. */
    bool (*may_be_another_era)(sgi_emitter *emitter);
};

struct sgi_cli_dialect {
    const char *name;
    /* how the dialect follows tasks; NULL = the dialect makes no tasks */
    const sgi_cli_follow_ops *following;
    /* what the dialect does for a session; NULL = nothing */
    const sgi_cli_session_hooks *session_hooks;
    /* how the dialect asks for the state of a resumable request; NULL = the dialect has
     * no resumable requests */
    const sgi_cli_inquiry_ops *inquiry;
    size_t state_size;
    /* Frees what the state of a request points to, but not the state itself. */
    void (*free_state)(segue_request *request, sgi_cli_dialect_state *state);

    /* Fills the state of a request that is made from a resume token. The request was
     * begun before, perhaps by another process. Returns false when out of memory. */
    bool (*take_over)(segue_request *request, const sgi_request_spec *spec);
    /* write_token writes the dialect's part of a resume token. It is called only for a
     * request that has a state of the dialect. read_token reads this part. It returns
     * false when the token belongs to another dialect; otherwise it sets *status, which
     * says whether the token is valid. */
    void (*write_token)(const segue_request *request, sgi_jw *w);
    bool (*read_token)(sgi_json token, sgi_request_spec *spec, segue_status *status);

    /* True when the client can ask for the answer of the request again in this session.
     * Otherwise the function ends the request and returns false. */
    bool (*fits)(segue_request *request);
    /* Asks for the answer of a request again, under the old id of the request. Called
     * when the request has to be sent again and has a state of the dialect. A dialect has
     * this function when its requests are resumable. */
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
    /* Adds to the message of a call the members by which the client asks for this
     * dialect. Called before the message is sent. emitter->repeats: the message asks for
     * the answer of an earlier exchange. */
    void (*offer)(segue_request *request, sgi_emitter *emitter);
    /* write_params writes members of the params of a call. write_meta writes members of
     * its _meta, each with a comma before it. */
    void (*write_params)(const segue_request *request, sgi_jw *w);
    void (*write_meta)(const segue_request *request, sgi_buf *out, int64_t id);

    /* Handles the result with which the call was answered. Returns true when the result
     * belongs to this dialect. */
    bool (*answer)(segue_request *request, const sgi_result *result);
    /* Handles the error that answers the call. Returns true when the dialect will send
     * the call again in another form. */
    bool (*change_form)(segue_request *request, sgi_json error);
    /* Handles a notification. Returns false when the notification does not belong to the
     * dialect. Otherwise sets *taken if a request has used the notification, and returns
     * true. */
    bool (*notified)(segue_session *session, sgi_str method, const sgi_message *msg,
                     bool *taken);
    /* Used over HTTP. `position` returns the id of the last stream event that was
     * processed, if a message with this method must name the id (Last-Event-ID).
     * `set_position` stores such an id. */
    sgi_str (*position)(const segue_request *request, sgi_str method);
    void (*set_position)(segue_request *request, sgi_str id);
    /* Called when the exchange of the call was lost and the request has a state of the
     * dialect. */
    void (*lost)(segue_request *request);
    /* Called when the application has cancelled the call, before the exchange of the call
     * is dropped. Returns true when the exchange must continue without the request. */
    bool (*keep_exchange)(sgi_emitter *emitter);
    /* asks_for_task: true when the message of the call asks for a task. may_be_task: true
     * when the server may answer the call with a task. */
    bool (*asks_for_task)(const segue_request *request);
    bool (*may_be_task)(const segue_request *request);
    /* True when `type`, the resultType of a result, is the dialect's own name for an
     * answer that asks questions (a round). */
    bool (*is_round)(const segue_session *session, sgi_json type);
    /* Returns the task in the answer of a call; empty when the answer contains no
     * task. */
    sgi_json (*task_in)(const segue_session *session, sgi_json result);
    /* Called when the call has become a task. Drops the parts of the result that were
     * received before, because the result of the task will contain them. */
    void (*became_task)(segue_request *request);
    /* Reads a description of a task. The task belongs to the request, or to the handle
     * from which the request was made. is_answer: the description answers a message of
     * the client. */
    void (*note_task)(segue_request *request, sgi_json task, bool is_answer);
    /* Reads a page of the list of tools that the application has requested. */
    void (*tools_listed)(const segue_request *request, sgi_json result);
    /* Called for each request with a state of the dialect when a message of the server
     * could not be read. The lost message may have been a part of the result. */
    void (*note_lost_message)(segue_request *request);
    /* Called for a request with a state of the dialect when a user has decided about an
     * access token (OAuth). ms: the duration of the decision, which does not count as
     * time without a server. */
    void (*exclude_user_time)(segue_request *request, int64_t ms);
    /* has_received: true when the dialect has received a part of the result that is not
     * in the request's fold (the collected result). write_received writes this part as
     * members of an object. Both functions are called only for a request with a state of
     * the dialect. */
    bool (*has_received)(const segue_request *request);
    void (*write_received)(const segue_request *request, sgi_jw *w);
    /* Returns the number up to which all segments have arrived; -1 = not known. */
    int64_t (*received_up_to)(const segue_request *request);
};

/* all dialects, in the order of engine/dialect/rows.def; NULL ends the list */
extern const sgi_cli_dialect *const sgi_cli_dialects[];

/* Returns the dialect's state for a request; NULL when the request has no such state. */
void *sgi_cli_dialect_state_find(const segue_request *request,
                                 const sgi_cli_dialect *dialect);
/* Returns the dialect's state for a request, and makes it if it does not exist. Returns
 * NULL when out of memory. */
void *sgi_cli_dialect_state_find_or_new(segue_request *request,
                                        const sgi_cli_dialect *dialect);
void sgi_cli_dialect_state_drop(segue_request *request, const sgi_cli_dialect *dialect);
void sgi_cli_dialect_states_free(segue_request *request);

/* Returns the dialect's state for a session; NULL when the session has no such state. */
void *sgi_cli_dialect_session_state(const segue_session *session,
                                    const sgi_cli_dialect *dialect);
/* Makes the states of all dialects for a session. Returns false when out of memory. */
bool sgi_cli_dialect_session_states_new(segue_session *session);
void sgi_cli_dialect_session_states_free(segue_session *session);
/* Returns the version that only one dialect has and that initialize offers;
 * SGI_VERSION_UNKNOWN when no dialect has such a version. */
sgi_version sgi_cli_version_to_offer(const segue_session *session);
void sgi_cli_write_capabilities(const segue_session *session, sgi_json given, sgi_jw *w);
/* sgi_cli_write_empty_capabilities writes the capabilities without members for
 * initialize. sgi_cli_write_modern_capabilities writes the capabilities for requests of
 * 2026-07-28, and also the members of `given` except the member named `except`. */
void sgi_cli_write_empty_capabilities(const segue_session *session, sgi_json given,
                                      sgi_jw *w);
void sgi_cli_write_modern_capabilities(const segue_session *session, sgi_json given,
                                       const char *except, sgi_jw *w);
/* Writes the experimental capabilities that dialects declare. Leaves out those in `own`,
 * which the application declares itself. */
void sgi_cli_write_experimental(const segue_session *session, sgi_json given,
                                sgi_json own, sgi_jw *w);
/* True when sgi_cli_write_experimental would write at least one member. */
bool sgi_cli_declares_experimental(const segue_session *session, sgi_json given);
void sgi_cli_note_declared_capabilities(segue_session *session, sgi_json capabilities);
void sgi_cli_read_server_capabilities(segue_session *session, sgi_json capabilities);
bool sgi_cli_handle_possible_era_change(sgi_emitter *emitter);

/* Returns the table of the dialect that follows the tasks of this session. */
const sgi_cli_follow_ops *sgi_cli_follow_ops_of(const segue_session *session);

bool sgi_cli_restore_resumed_request(segue_request *request,
                                     const sgi_request_spec *spec);
/* Writes the dialects' part of a resume token. Returns false when no dialect has a
 * part. */
bool sgi_cli_write_token_part(const segue_request *request, sgi_jw *w);
bool sgi_cli_read_token_part(sgi_json token, sgi_request_spec *spec,
                             segue_status *status);
/* True when a dialect can ask for the answer of this request again. */
bool sgi_cli_is_resumable(const segue_request *request);
bool sgi_cli_can_ask_answer_again(segue_request *request);
/* Asks for the answer of a request again. Returns false when no dialect can do this. */
bool sgi_cli_ask_answer_again(segue_request *request);
sgi_str sgi_cli_server_resume_token(const segue_request *request);
sgi_emitter *sgi_cli_resume_ended_call(segue_session *session, int64_t id, sgi_str token);
bool sgi_cli_prepare_call(segue_request *request);
void sgi_cli_offer_dialects(segue_request *request, sgi_emitter *emitter);
void sgi_cli_write_call_params(const segue_request *request, sgi_jw *w);
void sgi_cli_write_call_meta(const segue_request *request, sgi_buf *out, int64_t id);
bool sgi_cli_take_answer(segue_request *request, const sgi_result *result);
bool sgi_cli_retry_in_other_form(segue_request *request, sgi_json error);
/* Passes a notification to the dialects. Returns false when no dialect uses notifications
 * with this method. */
bool sgi_cli_take_notification(segue_session *session, sgi_str method,
                               const sgi_message *msg, bool *taken);
/* True for a method by which a dialect asks for the state of a resumable request
 * (sgi_cli_inquiry_ops). */
bool sgi_cli_is_inquiry(sgi_str method);
sgi_str sgi_cli_last_event_id(const segue_request *request, sgi_str method);
void sgi_cli_set_last_event_id(segue_request *request, sgi_str id);
void sgi_cli_note_exchange_lost(segue_request *request);
bool sgi_cli_keep_cancelled_exchange(sgi_emitter *emitter);
bool sgi_cli_asks_for_task(const segue_request *request);
bool sgi_cli_may_be_task(const segue_request *request);
bool sgi_cli_type_is_round(const segue_session *session, sgi_json type);
sgi_json sgi_cli_task_in_answer(const segue_session *session, sgi_json result);
void sgi_cli_became_task(segue_request *request);
void sgi_cli_note_task(segue_request *request, sgi_json task, bool is_answer);
void sgi_cli_note_listed_tools(const segue_request *request, sgi_json result);
void sgi_cli_note_lost_message(segue_request *request);
void sgi_cli_exclude_user_time(segue_request *request, int64_t ms);
/* Returns the exchange that brings parts of the task's result; NULL when there is no such
 * exchange. */
sgi_emitter *sgi_cli_streaming_exchange(const segue_request *request);
/* True when a dialect has received a part of the result that is not in the request's
 * fold. */
bool sgi_cli_has_received_result_part(const segue_request *request);
/* Writes the parts of a result that dialects have received. Returns false when no dialect
 * has received a part. */
bool sgi_cli_write_received_result_part(const segue_request *request, sgi_jw *w);
int64_t sgi_cli_segments_received_up_to(const segue_request *request);

#endif
