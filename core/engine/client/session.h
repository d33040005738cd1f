/* A client's side of a conversation: which era the server speaks, which exchanges are in
 * flight, and what happens when the connection breaks.
 *
 * The stages are:
 *     NEW, LOST    -> PROBING       a connection is up; server/discover is sent
 *     NEW, LOST    -> INITIALIZING  a connection is up; initialize is sent first, because
 *                                   of the options or of an earlier session
 *     PROBING      -> OPEN          the server answered server/discover
 *     PROBING      -> INITIALIZING  the server gave an error, or no answer in time
 *     INITIALIZING -> OPEN          the server answered initialize
 *     any stage    -> LOST          the connection broke and can be opened again
 *     any stage    -> CLOSED        the session has ended
 * session_stage.c has all allowed moves. */
#ifndef SGI_SESSION_H
#define SGI_SESSION_H

#include "engine/conversation/conn.h"
#include "engine/handle.h"
#include "engine/negotiate.h"
#include "engine/input/question_id.h"
#include "engine/conversation/sending.h"
#include "engine/client/cache.h"
#include "engine/client/tool_headers.h"
#include "engine/client/tool_schemas.h"

typedef enum sgi_stage {
    SGI_STAGE_NEW = 0,
    SGI_STAGE_PROBING,
    SGI_STAGE_INITIALIZING,
    SGI_STAGE_OPEN,
    SGI_STAGE_LOST,
    SGI_STAGE_CLOSED, /* the session has ended, and on_closed is due */
    /* on_closed was called, and the session calls no more callbacks */
    SGI_STAGE_TOLD
} sgi_stage;

/* The largest number of messages without an answer that can be under way at once:
 * notifications, and answers to questions of the server. */
#define SGI_TELLING_MAX 64

/* The largest number of pieces in a row of one result that have no content. */
#define SGI_EMPTY_PIECES_MAX 10000

/* The longest name of a server process on the GET stream, in bytes. A longer name is
 * ignored. */
#define SGI_SERVER_NAME_MAX 63

/* The state of the session's attempts to reach its server. */
typedef struct sgi_connecting {
    /* fires when server/discover was not answered in time, or when the next attempt is
     * due */
    sgi_timer timer;
    /* number of attempts to connect in a row, without those that a request counts */
    int32_t attempts;
    /* monotonic time at which the first of the present attempts in a row began */
    int64_t lost_ms;
    /* monotonic time at which a user began to decide about an access token; 0 = no user
     * decides at present */
    int64_t user_ms;
    /* monotonic time until which the client sends nothing, because the server asked for a
     * pause */
    int64_t wait_until_ms;
    int64_t opened_ms; /* monotonic time at which the session was opened last */
    /* number of wire sessions in a row in which the server answered nothing but the
     * handshake */
    int32_t renewals;
    bool was_open; /* true when the session has been open at least once */
    /* true when the server has answered a request since the session was opened last */
    bool answered;
} sgi_connecting;

/* The GET stream over HTTP, on which the server sends its own requests and
 * notifications. */
typedef struct sgi_cli_get_stream {
    /* the conversation of the GET request; NULL = the stream is not open */
    sgi_conn *conn;
    sgi_timer again; /* fires when the stream has to be opened again */
    /* number of streams in a row that ended without bringing anything */
    int32_t failures;
    /* name of the server process that sent the stream last, or that began the session;
     * "" = not known */
    char server_name[SGI_SERVER_NAME_MAX + 1];
} sgi_cli_get_stream;

/* The messages that get no answer: answers to questions of the server, and
 * notifications. */
typedef struct sgi_answers_under_way {
    /* number of times that the server used the id of one question for a different one */
    int32_t ids_reused;
    int32_t under_way; /* number of exchanges whose message gets no answer */
    /* true when answers wait because SGI_TELLING_MAX was reached (server_questions.c) */
    bool due;
} sgi_answers_under_way;

/* Numbers of messages of the server that were ignored, because they fitted nothing. */
typedef struct sgi_ignored_messages {
    uint64_t answers; /* answers for which no request waits */
    uint64_t invalid;
} sgi_ignored_messages;

/* The client's declarations, and the state of the handshake (handshake.c). */
typedef struct sgi_cli_handshake {
    sgi_buf capabilities; /* the client's capabilities in initialize: a JSON object */
    /* the response modes (SEP-1905) that the client declares; a set of
     * sgi_response_mode */
    uint8_t modes;
    /* true when the session needs no handshake, because the session that carries it has
     * done the handshake (reverse/question_task.c) */
    bool agreed;
    /* true when the session sent `initialize` first, because the server of this endpoint
     * needed `initialize` earlier */
    bool guessed;
    bool probed_again; /* true when server/discover was sent a second time */
    /* true when the server refused initialize with a version that only one dialect has */
    bool own_version_refused;
    /* the exchange of server/discover; NULL = no such exchange is under way */
    struct sgi_emitter *probing;
    /* the exchange of initialize; NULL = no such exchange is under way. Over a byte
     * stream `probing` and `shaking` can be under way at the same time. */
    struct sgi_emitter *shaking;
    /* the server's error for initialize, kept while server/discover may still be
     * answered; NULL = no such error */
    char *refusal;
} sgi_cli_handshake;

/* The client's knowledge about the server's tools. */
typedef struct sgi_session_tools {
    sgi_tool_headers headers;
    sgi_tool_schemas schemas;
} sgi_session_tools;

typedef struct sgi_cli_dialect_state sgi_cli_dialect_state;

/* Calls that the client withdraws, because the application no longer wants them. A call
 * stays in the list until the server knows of the withdrawal (withdrawal.h). */
typedef struct sgi_withdrawals {
    TAILQ_HEAD(, sgi_withdrawal) list;
    int32_t count;
    /* the largest number of withdrawn calls in the list: SGI_WITHDRAWALS_MAX; tests set a
     * smaller limit */
    int32_t max;
} sgi_withdrawals;

/* The features that the server has declared. */
typedef struct sgi_declared_server_features {
    bool tasks;
    bool streams; /* true when the server offers event streams of tasks (SEP-2694) */
    bool idempotency;
    /* true when the server's answer to initialize declares the capability `logging` */
    bool logging;
    bool task_calls; /* true when the server accepts tools/call as a task of 2025-11-25 */
    /* true when the server accepts dev.segue/fromSeqNr in tasks/result, so that the
     * client can read all segments of a task again (R-1905-32) */
    bool pulls_from_start;
    /* the response modes (SEP-1905) that the server declares; a set of
     * sgi_response_mode */
    uint8_t modes;
} sgi_declared_server_features;

/* Log messages in the versions that begin with `initialize` (log_wish.c). */
typedef struct sgi_session_log_level {
    /* the log level that is set at the server; SGI_LOG_LEVELS = no level is set */
    int32_t level;
    /* the exchange of logging/setLevel; NULL = no such exchange is under way */
    struct sgi_emitter *wishing;
    int32_t wish_level; /* the level that logging/setLevel asks for */
    /* the level that the application itself has set; SGI_LOG_LEVELS = none */
    int32_t chosen;
    /* true while logging/setLevel is under way that sets the level of the last wire
     * session again */
    bool restoring;
    /* number of times in a row that such a message was lost; `again` fires when it is
     * sent once more */
    int32_t failures;
    sgi_timer again;
} sgi_session_log_level;

/* Notifications that belong to no request and wait for the application
 * (notifications.c). */
typedef struct sgi_waiting_notifications {
    sgi_buf waiting;
    /* true when too many of these notifications wait, so that the session reads no more
     * input until the application has received them */
    bool full;
} sgi_waiting_notifications;

/* The next attempt to reach the server, which on_reconnect reports to the application. */
typedef struct sgi_retry_notice {
    bool due;
    int32_t attempt;
    int64_t delay_ms;
    char why[256]; /* the reason for the attempt; cut at the size of the array */
} sgi_retry_notice;

struct segue_session {
    sgi_handle handle;
    sgi_engine *engine;
    /* One reference each for the handle, the conversation, each request and the ready
     * queue. */
    int32_t refs;
    sgi_conn *conn;
    segue_session_options options;
    char *texts[2];
    segue_session_events events;
    sgi_stage stage; /* set only by session_stage.c */
    sgi_connecting reach;
    int64_t last_id;
    /* for a session that carries a question as a task (reverse/question_task.c): the
     * question's id, which is the first part of the ids of the session's messages */
    sgi_question_id_text question;
    /* the host, which answers requests of the MCP server (hosting.h); NULL = the session
     * has no host */
    struct sgi_question_host *hosting;
    /* over HTTP: the exchanges that the transport has to handle next */
    TAILQ_HEAD(, sgi_exchange) exchanges;
    sgi_cli_get_stream listening;
    sgi_answers_under_way answers;
    sgi_ignored_messages ignored;
    /* over HTTP: the emitter whose exchange brought the message that is being handled */
    struct sgi_emitter *hearing;
    /* number of wire sessions so far; the number of the present wire session */
    int32_t wire_session;
    sgi_cli_handshake handshake;
    sgi_session_tools tools;
    sgi_result_cache cache;
    /* the largest number of pieces without content in a row: SGI_EMPTY_PIECES_MAX; tests
     * set a smaller limit */
    int32_t max_empty_pieces;
    /* the emitters of the requests in flight; the key is the id */
    sgi_map in_flight;
    TAILQ_HEAD(, segue_request) requests;
    sgi_withdrawals withdrawals;
    /* number of the application's requests, without `standing` */
    int32_t request_count;
    /* the request that receives questions for the whole session
     * (segue_session_take_input); NULL = no such request */
    struct segue_request *standing;
    /* number of requests whose callbacks must run before the session reads more input */
    int32_t behind;

    /* The following members are the declarations of client and server. */
    sgi_buf meta; /* the members of _meta that every request of 2026-07-28 has, as text */
    sgi_version version;
    sgi_buf peer; /* the description of the server that segue_session_peer returns */
    sgi_declared_server_features server;
    sgi_session_log_level log;
    /* the states of the dialects for this session, as a list (dialects.h) */
    sgi_cli_dialect_state *states;

    /* The following members are for the report of events to the application. */
    sgi_ready_object ready;
    sgi_waiting_notifications notifications;
    sgi_retry_notice retry;
    bool open_due; /* true when on_open is due; on_open runs before on_closed */
    struct segue_error *error;
    /* called when the last reference to the session is dropped; NULL = nothing is
     * called */
    void (*gone)(segue_session *session, void *user);
    void *gone_user;
};

segue_status sgi_session_new(sgi_engine *engine, void *transport,
                             const segue_session_options *options, sgi_json capabilities,
                             const segue_session_events *events, segue_session **out);
void sgi_session_ref(segue_session *session);
void sgi_session_unref(segue_session *session);
/* Frees a session. The session must have no references. */
void sgi_session_free(segue_session *session);
void sgi_session_close(segue_session *session);

/* Called when another server process has taken over the wire session. Sets the log level
 * again, because the new process does not know the level. Reports a new connection to the
 * application. */
void sgi_session_on_server_replaced(segue_session *session);

/* sgi_session_begin_message begins a message that is not a request; returns NULL when out
 * of memory. The caller writes the message into the returned conversation and passes the
 * conversation to sgi_session_send_message. That function returns false when the message
 * could not be sent. */
sgi_conn *sgi_session_begin_message(segue_session *session);
bool sgi_session_send_message(segue_session *session, sgi_conn *conn);
/* Sends a notification of the application. params: JSON text; may be NULL. */
segue_status sgi_session_notify(segue_session *session, const char *method,
                                const char *params, size_t len);
/* Reads a batch. conn: the conversation that received the batch, which is that of the
 * session or of an exchange. Returns false when the text is not a batch, or when the
 * server must not send batches. */
bool sgi_session_read_batch(const segue_session *session, sgi_conn *conn, sgi_str text);
/* Lets the session read more input for the request, because the application has received
 * all waiting records of the request. */
void sgi_session_resume_input(segue_session *session, const segue_request *request);

/* Stores a notification that belongs to no request until the application gets it
 * (notifications.c). */
void sgi_notifications_keep(segue_session *session, sgi_str method, sgi_json params);
int32_t sgi_notifications_deliver(segue_session *session);

/* Returns the time in ms that is left of reconnect_timeout_ms after the server has been
 * unreachable for gone_ms. The result can be 0 or negative. */
int64_t sgi_session_reconnect_ms_left(const segue_session *session, int64_t gone_ms);
/* Reports an attempt to the application and to the log. attempt: number of attempts in a
 * row, including this one. what: the method that is sent again; NULL = the session
 * connects again. */
void sgi_session_report_retry(segue_session *session, const char *what, int32_t attempt,
                              int64_t ms, const char *why);
/* Handles a lost connection or a failed handshake: connects again, or ends the
 * session. */
void sgi_session_on_connection_lost(segue_session *session, const char *why);
/* Returns the delay in ms before the next attempt: `ms`, or more if the server has asked
 * for a longer pause. */
int64_t sgi_session_retry_delay_ms(const segue_session *session, int64_t ms);
/* Begins a new wire session for an open session whose wire session is gone. Exchanges
 * under way continue in the old wire session. */
void sgi_session_renew_wire_session(segue_session *session, const char *why);
/* Opens the session. Called when the server has accepted notifications/initialized. */
void sgi_session_on_initialized_accepted(segue_session *session);
/* Handles the end of the GET stream. brought_input: a part of the response had
 * arrived. */
void sgi_session_on_stream_ended(segue_session *session, bool brought_input);

/* True while callbacks of the application must run before more input is read. */
static inline bool sgi_session_is_behind(const segue_session *session)
{
    return session->behind || session->notifications.full;
}

static inline bool sgi_session_is_open(const segue_session *session)
{
    return session->stage == SGI_STAGE_OPEN;
}

/* True when the session has ended. */
static inline bool sgi_session_is_closed(const segue_session *session)
{
    return session->stage >= SGI_STAGE_CLOSED;
}

/* Changes the stage. session_stage.c has the table of allowed moves. */
void sgi_session_set_stage(segue_session *session, sgi_stage to);

/* sgi_session_init_log_level notes that the application has set no log level.
 * sgi_session_forget_log_level notes that a server knows no level of this session yet;
 * called when the server has declared its capabilities. sgi_session_restore_log_level
 * sets the level that a new wire session needs: the level that the application has set,
 * or a lower level that a running request has asked for since (log_wish.c). */
void sgi_session_init_log_level(segue_session *session);
void sgi_session_forget_log_level(segue_session *session, sgi_json capabilities);
void sgi_session_restore_log_level(segue_session *session);
/* True while requests have to wait, because the server does not know the log level
 * yet. */
bool sgi_session_awaits_log_level(const segue_session *session);
/* Sets the log level again, because another server process has taken over the session. */
void sgi_session_set_log_level_again(segue_session *session);

/* ---- declarations.c ---- */
/* Writes what the session declares. capabilities: those of the application. Returns false
 * when out of memory. */
bool sgi_declare(segue_session *session, sgi_json capabilities);
/* Writes the members of _meta that declare these capabilities in 2026-07-28. tasks: also
 * declares tasks, unless the session has none. */
bool sgi_declare_modern(const segue_session *session, sgi_json capabilities, bool tasks,
                        sgi_buf *out);
/* Writes the members of _meta that declare what the session declares, without tasks. */
bool sgi_declare_no_task(const segue_session *session, sgi_buf *out);
/* Writes the name and the version of the client as a member with this name. */
void sgi_declare_client_info(sgi_jw *w, const segue_session *session, const char *name);

/* ---- handshake.c ---- */
void sgi_handshake_begin(segue_session *session);
/* Sends the waiting requests. Called when the session can be used. */
void sgi_session_on_opened(segue_session *session);
/* Ends the session with an error, because it cannot be used. */
void sgi_session_fail(segue_session *session, segue_status status, const char *text);

#endif
