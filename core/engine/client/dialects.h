/* The client's side of the dialects (drafts and versions of the protocol that change how
 * a result arrives). Each dialect is a table of functions. The data that a dialect stores
 * for a request or for a session is a struct of its own, called its state. A request and
 * its session call the tables in order at each moment that is named here, and contain no
 * other code for dialects. A NULL function is skipped. The state of a request exists from
 * sgi_cli_state_new until the request is freed, or until the dialect drops it. The state
 * of a session lives as long as the session. */
#ifndef SGI_CLI_DIALECTS_H
#define SGI_CLI_DIALECTS_H

#include "engine/client/request.h"

typedef struct sgi_cli_session_hooks sgi_cli_session_hooks;

/* The state of a dialect for one request, or for one session. It is the first member of a
 * struct that the dialect defines. */
struct sgi_cli_state {
    const sgi_cli_dialect *dialect;
    sgi_cli_state *next;
};

/* The functions with which a dialect follows a task. A request that has become a task, or
 * was made from one, has one such table in request->follower and calls no other. */
struct sgi_cli_following {
    /* The name of the exchange that carries the answer to a question, for error
     * messages. */
    const char *answers_by;
    /* True when the tasks of this session belong to this dialect. */
    bool (*fits)(const segue_session *session);
    /* Makes the state with which the request follows its task, unless the state exists
     * already. It is called often, and always before a message about the task is sent.
     * Returns false when out of memory. */
    bool (*begin)(segue_request *request);
    /* Sends the message about the task that is due now. */
    void (*due)(segue_request *request);
    /* Sends the application's answer to a question of the task, or notes that it has to
     * be sent. */
    void (*answered)(segue_request *request, sgi_question *question);
    /* Handles the end of the exchange of the call. No more segments come on this
     * exchange. */
    void (*pushed)(segue_request *request, const sgi_outcome *outcome);
    /* Takes a state of the task that the server has sent without being asked. Returns
     * false when the state has no effect. */
    bool (*status)(segue_request *request, sgi_json task);
    /* Called when the application's on_task callback has run. */
    void (*task_reported)(segue_request *request);
    /* Stops the stream of segments, because the application gives no credit for those
     * that have arrived. */
    void (*pause)(segue_request *request);
    /* True when the server sends parts of the result without a request for each part. */
    bool (*is_streamed)(const segue_request *request);
    /* Called when the inbox has room for segments. was_full: before, it had none. */
    void (*has_room)(segue_request *request, bool was_full);
    /* Returns the exchange that brings parts of the result; NULL = there is no such
     * exchange. */
    sgi_emitter *(*streaming)(const segue_request *request);
    /* True when an exchange about the task waits until a user has decided about a
     * token. */
    bool (*is_held)(const segue_request *request);
    /* Asks the server to cancel the task. The answer ends the request with
     * SEGUE_E_CANCELLED or SEGUE_E_TIMEOUT. Returns false when the server was asked
     * before. */
    bool (*cancel)(segue_request *request, segue_status status);
    /* Drops all exchanges about the task. */
    void (*end)(segue_request *request);
    /* Writes the task's part of a resume token. */
    void (*write_token)(const segue_request *request, sgi_jw *w);
    /* True when the progress token of the call stays valid as long as the task lives. */
    bool (*keeps_call_token)(const segue_request *request);
    /* Writes members that each message about the task must have. */
    void (*write_about)(const segue_request *request, sgi_jw *w);
    /* Returns the text in the server's description of a task that the client sends back
     * with its next message about the task; empty = there is no such text. */
    sgi_json (*echo_of)(sgi_json task);
};

/* The functions with which a dialect asks the server about a request that is no task, but
 * of which the application has a handle (segue_task). */
struct sgi_cli_inquiry {
    const char *method;
    void (*write_params)(const segue_task *task, sgi_jw *w);
    /* Returns the state (segue_task_state) that the server's answer shows. */
    int32_t (*state)(sgi_json result);
    /* Returns the state that an error shows. The error answers the inquiry or the request
     * itself. SEGUE_TASK_UNKNOWN = the error shows no state. */
    int32_t (*refused)(const segue_request *request, sgi_json error);
};

/* The functions of a dialect for a session and its handshake. */
struct sgi_cli_session_hooks {
    /* The size of the session's state; 0 = the dialect has none, and `state` is NULL. The
     * engine fills it with zeros. begin initializes it, and free frees what it holds. */
    size_t state_size;
    void (*begin)(segue_session *session, sgi_cli_state *state);
    void (*free)(segue_session *session, sgi_cli_state *state);
    /* The name of a capability without members that the client declares in initialize,
     * unless the application does, and of one that it declares in each request of
     * 2026-07-28, where the application cannot; NULL = none. declares: false = the
     * dialect is off. */
    const char *capability, *modern_capability;
    bool (*declares)(const segue_session *session);
    /* The protocol version that only this dialect has. initialize offers the version
     * unless the dialect is off (declares). SGI_VERSION_UNKNOWN = none. */
    sgi_version version;
    /* Writes members of the capabilities in initialize. given: the capabilities that the
     * application declares. */
    void (*write_capabilities)(const segue_session *session, sgi_json given, sgi_jw *w);
    /* Returns the name of an experimental capability that the client declares in
     * initialize; NULL = the dialect declares none. */
    const char *(*experimental)(const segue_session *session, sgi_json given);
    /* Reads the capabilities that the client has written for initialize. */
    void (*declared)(segue_session *session, sgi_json capabilities);
    /* Reads the capabilities that the server has declared. */
    void (*read_server_capabilities)(segue_session *session, sgi_json capabilities);
    /* Handles a refusal of an exchange that the dialect itself began. The server may be
     * of another era. Returns true when the request that waits for the exchange may be
     * sent once more. */
    bool (*may_be_another_era)(sgi_emitter *emitter);
};

struct sgi_cli_dialect {
    const char *name;
    const sgi_cli_following *following; /* NULL = the dialect has no tasks */
    /* NULL = the dialect does nothing for a session */
    const sgi_cli_session_hooks *session_hooks;
    /* NULL = the dialect has no requests of which there can be handles */
    const sgi_cli_inquiry *inquiry;
    size_t state_size;
    /* Frees what the state holds, but not the state itself. */
    void (*free_state)(segue_request *request, sgi_cli_state *state);

    /* Fills the state of a request that is made from a resume token. Returns false when
     * out of memory. */
    bool (*take_over)(segue_request *request, const sgi_request_spec *spec);
    /* write_token writes the dialect's part of a resume token, for a request that has a
     * state. read_token reads this part. It returns false if the token is not of this
     * dialect. Otherwise *status says whether the token is valid. */
    void (*write_token)(const segue_request *request, sgi_jw *w);
    bool (*read_token)(sgi_json token, sgi_request_spec *spec, segue_status *status);

    /* True when the client can ask for the answer of the request again in this session.
     * Otherwise the function ends the request. */
    bool (*fits)(segue_request *request);
    /* Asks for the answer of a request again, under the request's old id. It is called
     * for a request that has a state, when the request has to be sent again. A dialect
     * with this function makes requests resumable. */
    void (*send_again)(segue_request *request);
    /* Returns the token (JSON, may be empty) with which the client can ask for the answer
     * again. It is called only for a request that has a state of this dialect. */
    sgi_str (*resume_token)(const segue_request *request);
    /* Asks for the answer of a call whose request has ended. Returns NULL when this
     * session cannot ask for it now. */
    sgi_emitter *(*resume)(segue_session *session, int64_t id, sgi_str token);
    /* Called before the call is sent. Returns false when the call has to wait, or when
     * the function has ended the request. */
    bool (*prepare)(segue_request *request);
    /* Adds to the exchange of a call what the dialect asks for, before the exchange is
     * sent. emitter->repeats: the exchange asks for the answer of an earlier exchange. */
    void (*offer)(segue_request *request, sgi_emitter *emitter);
    /* Write members of params and of _meta for a call. A comma precedes each member of
     * _meta. */
    void (*write_params)(const segue_request *request, sgi_jw *w);
    void (*write_meta)(const segue_request *request, sgi_buf *out, int64_t id);

    /* Handles the result with which the call was answered. Returns true when the result
     * belongs to this dialect. */
    bool (*answer)(segue_request *request, sgi_json result);
    /* Handles the error with which the call was answered. Returns true when the dialect
     * sends the call again with other params. */
    bool (*change_form)(segue_request *request, sgi_json error);
    /* Handles a notification. Returns true when the notification belongs to this dialect.
     * *taken is set when it concerned a request. */
    bool (*notified)(segue_session *session, sgi_str method, const sgi_message *msg,
                     bool *taken);
    /* Over HTTP: position returns the id of the last stream event that was processed, if
     * a request with this method names it. set_position sets this id. */
    sgi_str (*position)(const segue_request *request, sgi_str method);
    void (*set_position)(segue_request *request, sgi_str id);
    /* Called when the exchange of the call was lost and the request has a state. */
    void (*lost)(segue_request *request);
    /* Called when the application has cancelled the call, before the exchange of the call
     * is dropped. Returns true when the exchange goes on without its request. */
    bool (*keep_exchange)(sgi_emitter *emitter);
    /* asks_for_task: true when the call itself asks to become a task. may_be_task: true
     * when the server may answer the call with a task. */
    bool (*asks_for_task)(const segue_request *request);
    bool (*may_be_task)(const segue_request *request);
    /* True when a result of this type is a round of questions, although the protocol
     * names such results otherwise. */
    bool (*is_round)(const segue_session *session, sgi_json type);
    /* Returns the task that the answer of a call names; empty = the answer names no
     * task. */
    sgi_json (*task_in)(const segue_session *session, sgi_json result);
    /* Called when the call has become a task. The task's result will contain all that was
     * received before. */
    void (*became_task)(segue_request *request);
    /* Reads a description of the request's task, or of the task of the handle from which
     * the request was made. is_answer: the client had asked the server for the
     * description. */
    void (*note_task)(segue_request *request, sgi_json task, bool is_answer);
    /* Reads a page of a list of tools that the application has asked for. */
    void (*tools_listed)(const segue_request *request, sgi_json result);
    /* Called when a message of the server could not be read, for each request that has a
     * state. The message may have been a part of the result. */
    void (*note_lost_message)(segue_request *request);
    /* Called when a user needed ms to decide about a token, for a request that has a
     * state. */
    void (*exclude_user_time)(segue_request *request, int64_t ms);
    /* has_received: true when a part of the result was received that the fold (the
     * collected result) does not have. write_received writes this part as members of an
     * object. Both are called for a request that has a state. */
    bool (*has_received)(const segue_request *request);
    void (*write_received)(const segue_request *request, sgi_jw *w);
    /* Returns the number of the last segment before which no segment is missing; -1 = not
     * known. */
    int64_t (*received_up_to)(const segue_request *request);
};

/* All dialects, ended by NULL (engine/dialect/rows.def). */
extern const sgi_cli_dialect *const sgi_cli_dialects[];

/* Returns the state of a dialect for a request; NULL = the request has no such state. */
void *sgi_cli_state_of(const segue_request *request, const sgi_cli_dialect *dialect);
/* Returns the state of a dialect for a request. Makes the state if there is none. NULL =
 * out of memory. */
void *sgi_cli_state_new(segue_request *request, const sgi_cli_dialect *dialect);
void sgi_cli_state_drop(segue_request *request, const sgi_cli_dialect *dialect);
void sgi_cli_states_free(segue_request *request);

/* Returns the state of a dialect for a session; NULL = the session has no such state. */
void *sgi_cli_session_state(const segue_session *session, const sgi_cli_dialect *dialect);
/* Makes the states of all dialects for a session. Returns false when out of memory. */
bool sgi_cli_session_states_begin(segue_session *session);
void sgi_cli_session_states_free(segue_session *session);
/* Returns the version of a dialect that initialize offers; SGI_VERSION_UNKNOWN = none. */
sgi_version sgi_cli_own_version(const segue_session *session);
void sgi_cli_write_capabilities(const segue_session *session, sgi_json given, sgi_jw *w);
/* The first function writes the capabilities without members of initialize. The second
 * writes the members of `given`, except the one named `except`, and the capabilities
 * without members of 2026-07-28. */
void sgi_cli_write_plain_capabilities(const segue_session *session, sgi_json given,
                                      sgi_jw *w);
void sgi_cli_write_modern_capabilities(const segue_session *session, sgi_json given,
                                       const char *except, sgi_jw *w);
/* Writes the experimental capabilities of the dialects, except those that `own` already
 * has. */
void sgi_cli_write_experimental(const segue_session *session, sgi_json given,
                                sgi_json own, sgi_jw *w);
/* True when sgi_cli_write_experimental would write at least one member. */
bool sgi_cli_declares_experimental(const segue_session *session, sgi_json given);
void sgi_cli_note_declared(segue_session *session, sgi_json capabilities);
void sgi_cli_read_server_capabilities(segue_session *session, sgi_json capabilities);
bool sgi_cli_may_be_another_era(sgi_emitter *emitter);

/* Returns the functions that follow the tasks of this session. */
const sgi_cli_following *sgi_cli_following_of(const segue_session *session);

bool sgi_cli_take_over(segue_request *request, const sgi_request_spec *spec);
/* Returns false when no dialect has written a part of the request's token. */
bool sgi_cli_write_token(const segue_request *request, sgi_jw *w);
bool sgi_cli_read_token(sgi_json token, sgi_request_spec *spec, segue_status *status);
/* True when the client can ask for the answer of this request again. */
bool sgi_cli_is_resumable(const segue_request *request);
bool sgi_cli_can_send_again(segue_request *request);
/* Returns false when no dialect can ask for the answer again. */
bool sgi_cli_send_again(segue_request *request);
sgi_str sgi_cli_resume_token(const segue_request *request);
sgi_emitter *sgi_cli_resume(segue_session *session, int64_t id, sgi_str token);
bool sgi_cli_prepare(segue_request *request);
void sgi_cli_offer(segue_request *request, sgi_emitter *emitter);
void sgi_cli_write_params(const segue_request *request, sgi_jw *w);
void sgi_cli_write_meta(const segue_request *request, sgi_buf *out, int64_t id);
bool sgi_cli_take_answer(segue_request *request, sgi_json result);
bool sgi_cli_change_form(segue_request *request, sgi_json error);
/* Returns false when the notification belongs to no dialect. */
bool sgi_cli_take_notification(segue_session *session, sgi_str method,
                               const sgi_message *msg, bool *taken);
/* True for a method by which a dialect asks about a request. */
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
/* Returns the exchange that brings parts of a task's result; NULL = there is no such
 * exchange. */
sgi_emitter *sgi_cli_streaming(const segue_request *request);
/* True when a dialect has received a part of the result that the fold does not have. */
bool sgi_cli_has_received(const segue_request *request);
/* Returns false when no dialect has received anything. */
bool sgi_cli_write_received(const segue_request *request, sgi_jw *w);
int64_t sgi_cli_received_up_to(const segue_request *request);

#endif
