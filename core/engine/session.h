/* A client's side of a conversation: which era the server speaks, which exchanges are in
 * flight, and what happens when the connection breaks.
 *
 * Stages:  NEW -> start -> PROBING -> OPEN            (server/discover answered)
 *                             \-> INITIALIZING -> OPEN (any other answer, or none in
 *                             time)
 *          OPEN, ... -> lost -> LOST -> start ... or CLOSED when it cannot be reopened
 *
 * One emitter per id in flight: it hears exactly one outcome. Requests sit above
 * emitters: a request may use several, one after another or side by side (tools/call,
 * then tasks/stream, tasks/get, tasks/update), and survives the loss of all of them. */
#ifndef SGI_SESSION_H
#define SGI_SESSION_H

#include "engine/conn.h"
#include "engine/handle.h"
#include "engine/negotiate.h"
#include "engine/sending.h"
#include "engine/tool_headers.h"

typedef struct sgi_emitter sgi_emitter;

typedef enum sgi_stage {
    SGI_STAGE_NEW = 0,
    SGI_STAGE_PROBING,
    SGI_STAGE_INITIALIZING,
    SGI_STAGE_OPEN,
    SGI_STAGE_LOST,
    SGI_STAGE_CLOSED
} sgi_stage;

typedef enum sgi_outcome_kind {
    SGI_OUTCOME_RESULT = 0, /* json: the result object */
    SGI_OUTCOME_ERROR,      /* json: the error object */
    SGI_OUTCOME_TIMEOUT,
    SGI_OUTCOME_LOST,    /* the connection broke first, or nothing could be sent */
    SGI_OUTCOME_REFUSED, /* over HTTP: a status, or something else that stays so */
} sgi_outcome_kind;

typedef struct sgi_outcome {
    sgi_outcome_kind kind;
    sgi_json json;   /* view into the message */
    const char *why; /* LOST, REFUSED: what happened */
    int32_t status;  /* REFUSED: of HTTP; 0 = none */
    bool unsent;     /* LOST: the server cannot have heard of it */
} sgi_outcome;

struct sgi_emitter {
    sgi_map_node node;
    int64_t id;
    segue_session *session;
    sgi_conn *conn;         /* the session's, or an exchange's of its own */
    segue_request *request; /* not counted: the request outlives its emitters */
    sgi_timer timer;
    int64_t timeout_ms; /* 0 = none */
    void (*done)(sgi_emitter *emitter, const sgi_outcome *outcome);
};

struct segue_session {
    sgi_handle handle;
    sgi_engine *engine;
    int32_t refs; /* the handle, the conversation, each request, the ready queue */
    sgi_conn *conn;
    segue_session_options options;
    char *texts[2];
    segue_session_events events;
    sgi_stage stage;
    bool user_closed;
    int32_t attempts; /* to connect, in a row */
    sgi_timer timer;  /* probe, or the next attempt */
    int64_t next_id;
    TAILQ_HEAD(, sgi_exchange) exchanges; /* over HTTP: on which there is work */
    sgi_conn *listening; /* the stream on which the server speaks first */
    sgi_timer listen_again;
    int32_t unheard;      /* times in a row that it brought nothing */
    int32_t telling;      /* exchanges that nobody waits for */
    int32_t wire_session; /* how many were begun */
    bool guessed;         /* the era under trial is the one its server spoke last */
    sgi_tool_headers tools;
    sgi_map in_flight;
    sgi_map streams; /* requests by the task they stream */
    TAILQ_HEAD(, segue_request) requests;
    int32_t request_count;
    int32_t behind; /* requests whose callbacks have to catch up before more is read */

    /* what is said with each request, and what the server said of itself */
    sgi_buf meta;         /* members of _meta, modern */
    sgi_buf capabilities; /* ours, of initialize: a JSON object */
    sgi_version version;
    sgi_buf peer; /* for segue_session_peer */
    bool has_tasks;
    bool has_streams;
    bool has_idempotency;

    /* for the application */
    sgi_ready ready;
    sgi_buf inbox; /* notifications: method, NUL, params, NUL */
    uint64_t dropped;
    bool open_due;
    bool closed_due;
    bool closed_told;
    struct segue_error *error;
    void (*gone)(segue_session *session, void *user); /* told to the api when refs end */
    void *gone_user;
};

segue_status sgi_session_new(sgi_engine *engine, void *transport,
                             const segue_session_options *options, sgi_json capabilities,
                             const segue_session_events *events, segue_session **out);
void sgi_session_ref(segue_session *session);
void sgi_session_unref(segue_session *session);
void sgi_session_close(segue_session *session);

/* ---- exchanges ---- */

/* Begins a request on the wire: write its params into sending->w, then sgi_session_send.
 * NULL when out of memory. The session must be up. */
sgi_emitter *sgi_session_begin(segue_session *session, sgi_sending *sending,
                               sgi_str method);
/* Ends the message: adds _meta (extra: further members, each preceded by a comma, or
 * empty; user: the application's own _meta, or empty). false: nothing was sent, the
 * emitter is gone and done does not run. */
bool sgi_session_send(sgi_emitter *emitter, sgi_sending *sending, sgi_str extra,
                      sgi_json user);
/* The exchange with this id, NULL when none is in flight. */
sgi_emitter *sgi_session_find(segue_session *session, sgi_json id);
/* Forgets an exchange: notifications/cancelled is sent when notify is set. done does not
 * run. */
void sgi_emitter_drop(sgi_emitter *emitter, bool notify);
/* Starts its timeout anew: the server is alive. */
void sgi_emitter_touch(sgi_emitter *emitter);
/* Its exchange came to an end that is no message. */
void sgi_emitter_lost(sgi_emitter *emitter, const char *why, bool unsent);
void sgi_emitter_refused(sgi_emitter *emitter, int32_t status, const char *why);
void sgi_emitter_error(sgi_emitter *emitter, sgi_json error);
void sgi_emitter_malformed(sgi_emitter *emitter);

/* Begins a message that is no request: write it into the conversation that is returned,
 * then sgi_session_told, which is false when it does not go. NULL when out of memory. */
sgi_conn *sgi_session_tell(segue_session *session);
bool sgi_session_told(segue_session *session, sgi_conn *conn);
/* The application has caught up with a request: what brings it more may be read again. */
void sgi_session_resume_input(segue_session *session, const segue_request *request);

/* The connection is lost, or what stands for one: connects again, or gives up. */
void sgi_session_lost(segue_session *session, const char *why);
/* The wire session of an open session is gone: begins another. What is under way goes on
 * in the old one. */
void sgi_session_renew(segue_session *session, const char *why);
/* notifications/initialized has arrived. */
void sgi_session_announced(segue_session *session);
/* The stream on which the server speaks first has ended; heard: it had brought
 * something. */
void sgi_session_unheard(segue_session *session, bool heard);

static inline bool sgi_session_is_open(const segue_session *session)
{
    return session->stage == SGI_STAGE_OPEN;
}

/* handshake.c */
void sgi_handshake_begin(segue_session *session);
bool sgi_handshake_prepare(segue_session *session, sgi_json capabilities);
/* The session can be used: requests that wait are sent. */
void sgi_session_opened(segue_session *session);
/* It cannot be used and will not be: ends it with an error. */
void sgi_session_failed(segue_session *session, segue_status status, const char *text);

#endif
