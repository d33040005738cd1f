/* A client's side of a conversation: which era the server speaks, which exchanges are in
 * flight, and what happens when the connection breaks.
 *
 * Stages:  NEW -> start -> PROBING -> OPEN            (server/discover answered)
 *                             \-> INITIALIZING -> OPEN (any other answer, or none in
 *                             time)
 *          OPEN, ... -> lost -> LOST -> start ... or CLOSED when it cannot be reopened */
#ifndef SGI_SESSION_H
#define SGI_SESSION_H

#include "engine/conn.h"
#include "engine/handle.h"
#include "engine/negotiate.h"
#include "engine/question_id.h"
#include "engine/sending.h"
#include "engine/asking/cache.h"
#include "engine/asking/early_status.h"
#include "engine/asking/tool_headers.h"
#include "engine/asking/tool_schemas.h"
#include "engine/asking/tool_tasks.h"

typedef enum sgi_stage {
    SGI_STAGE_NEW = 0,
    SGI_STAGE_PROBING,
    SGI_STAGE_INITIALIZING,
    SGI_STAGE_OPEN,
    SGI_STAGE_LOST,
    SGI_STAGE_CLOSED
} sgi_stage;

/* Answers to the server under way, and other messages without an answer. */
#define SGI_TELLING_MAX 64

/* Pieces of one result that come in a row and have no content. */
#define SGI_EMPTY_PIECES_MAX 10000

/* Of the name that a server has on the stream on which it speaks first; a longer one is
 * ignored. */
#define SGI_SERVER_NAME_MAX 63

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
    int64_t lost_ms;  /* when this row of attempts began; monotonic */
    bool was_open;
    sgi_timer timer;       /* probe, or the next attempt */
    int64_t user_ms;       /* since when a user decides about a token; monotonic, 0 = none
                              does */
    int64_t wait_until_ms; /* the server asked to be left alone until then; monotonic */
    int64_t last_id;
    /* a question that is asked as a task: its ids begin with this (hosting/asker.h) */
    sgi_question_id question;
    bool agreed; /* there is nothing to shake hands about (hosting/asker.h) */
    struct sgi_hosting *hosting; /* what the server asks is answered there; or NULL */
    TAILQ_HEAD(, sgi_exchange) exchanges; /* over HTTP: on which there is work */
    sgi_conn *listening; /* the stream on which the server speaks first */
    sgi_timer listen_again;
    int32_t unheard;             /* times in a row that it brought nothing */
    int32_t ids_reused;          /* ids that the server gave two questions */
    int32_t telling;             /* exchanges that nobody waits for */
    bool answers_due;            /* telling was at its limit: answers wait (asked.c) */
    struct sgi_emitter *hearing; /* over HTTP: whose exchange brings this message */
    int32_t wire_session;        /* how many were begun */
    char server_name[SGI_SERVER_NAME_MAX + 1]; /* whose stream it is; "" = not known */
    int32_t renewals;  /* wire sessions in a row that answered nothing else */
    int64_t opened_ms; /* when it was opened last */
    bool answered;     /* a request has been answered since then */
    bool guessed;      /* the era under trial is the one its server spoke last */
    bool probed_again; /* server/discover was sent once more */
    struct sgi_emitter *probing; /* server/discover is under way */
    struct sgi_emitter *shaking; /* initialize is; over a byte stream perhaps both are */
    char *
        refusal; /* what the server said to initialize, while it is waited for; or NULL */
    bool draft_refused; /* initialize with DRAFT-2026-v1 was answered with an error */
    sgi_tool_headers tools;
    sgi_tool_schemas tool_schemas;
    sgi_cache cache;
    int32_t max_empty_pieces; /* SGI_EMPTY_PIECES_MAX; tests make it small */
    sgi_map in_flight;        /* emitters by id */
    sgi_map streams;          /* requests by the task they stream */
    bool left_stream;         /* one was left: events of it may still be under way */
    TAILQ_HEAD(, segue_request) requests;
    int32_t late_calls;                       /* see late_task.h */
    TAILQ_HEAD(, sgi_withdrawal) withdrawals; /* withdrawal.h */
    int32_t withdrawal_count;
    int32_t max_withdrawals;        /* SGI_WITHDRAWALS_MAX; tests make it small */
    int32_t waits;                  /* tasks that wait for their result */
    int32_t max_waits;              /* SGI_WAITS_MAX; tests make it small */
    int32_t request_count;          /* without the one that */
    struct segue_request *standing; /* ... stands for the session, or NULL */
    int32_t behind; /* requests whose callbacks have to catch up before more is read */

    /* what is said with each request, and what the server said of itself */
    sgi_buf meta;         /* members of _meta, modern */
    sgi_buf capabilities; /* ours, of initialize: a JSON object */
    sgi_version version;
    sgi_buf peer; /* for segue_session_peer */
    bool has_tasks;
    bool has_streams;
    bool has_idempotency;
    bool pulls_from_start; /* tasks/result takes dev.segue/fromSeqNr (R-1905-32) */

    /* log messages of the handshake eras (log_wish.c) */
    bool has_logging;
    int32_t log_level;           /* in force; SGI_LOG_LEVELS = none is */
    struct sgi_emitter *wishing; /* logging/setLevel is under way */
    int32_t wish_level;          /* the level that it sets */
    int32_t wish_session;        /* the wire session that it was sent in */

    /* tasks of 2025-11-25 (task_calls.c) */
    bool has_task_calls; /* the server takes tools/call as a task */
    uint8_t our_modes;   /* of SEP-1905, sets of sgi_response_mode */
    uint8_t peer_modes;
    sgi_tool_tasks tool_tasks;
    struct sgi_emitter *listing; /* the tools are being looked up */
    sgi_buf list_cursor;         /* of the page under way */
    int32_t list_pages;
    bool list_stale; /* the list has changed meanwhile */
    sgi_early_list early;

    /* for the application */
    sgi_ready ready;
    sgi_buf notifications;   /* notifications that wait (notifications.c) */
    bool notifications_full; /* no more is read before they were given */
    struct {                 /* the next attempt, for on_reconnect */
        bool due;
        int32_t attempt;
        int64_t delay_ms;
        char why[256]; /* the beginning */
    } retry;
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

/* Another server goes on with the wire session, and does not know what was set in it: the
 * log level is set again, and the application hears of it as of a new connection. */
void sgi_session_taken_over(segue_session *session);

/* Begins a message that is no request: write it into the conversation that is returned,
 * then sgi_session_told, which is false when it does not go. NULL when out of memory. */
sgi_conn *sgi_session_tell(segue_session *session);
bool sgi_session_told(segue_session *session, sgi_conn *conn);
/* A batch that came over this conversation, of the session or of an exchange; false when
 * this is none, or the server may not send one. */
bool sgi_session_batch(const segue_session *session, sgi_conn *conn, sgi_str text);
/* The application has caught up with a request: what brings it more may be read again. */
void sgi_session_resume_input(segue_session *session, const segue_request *request);

/* notifications.c: a notification that belongs to no request goes to the application. */
void sgi_notifications_keep(segue_session *session, sgi_str method, sgi_json params);
int32_t sgi_notifications_deliver(segue_session *session);

/* What is left of reconnect_timeout_ms when so much of it is gone. */
int64_t sgi_session_reach_ms(const segue_session *session, int64_t gone_ms);
/* It is tried again, for the attempt-th time in a row: tells the application and the log.
 * what: a method, or NULL for the session itself. */
void sgi_session_tell_retry(segue_session *session, const char *what, int32_t attempt,
                            int64_t ms, const char *why);
/* The connection is lost, or what stands for one: connects again, or gives up. */
void sgi_session_lost(segue_session *session, const char *why);
/* When something is to be tried again in ms: then, or when the server wants it. */
int64_t sgi_session_patience(const segue_session *session, int64_t ms);
/* The wire session of an open session is gone: begins another. What is under way goes on
 * in the old one. */
void sgi_session_renew(segue_session *session, const char *why);
/* notifications/initialized has arrived. */
void sgi_session_announced(segue_session *session);
/* The stream on which the server speaks first has ended; heard: it had brought
 * something. */
void sgi_session_unheard(segue_session *session, bool heard);

/* Callbacks have to catch up before more is read. */
static inline bool sgi_session_is_behind(const segue_session *session)
{
    return session->behind || session->notifications_full;
}

static inline bool sgi_session_is_open(const segue_session *session)
{
    return session->stage == SGI_STAGE_OPEN;
}

/* log_wish.c: the server has said what it can. */
void sgi_log_wish_begin(segue_session *session, sgi_json capabilities);
/* Another server goes on with the session: the level is not in force there. */
void sgi_log_wish_again(segue_session *session);

/* task_calls.c: what is said of tasks in the handshake of 2025-11-25. */
void sgi_task_calls_write_capability(sgi_jw *w, const segue_session *session);
uint8_t sgi_task_calls_modes(sgi_json capabilities);
/* Those that a session declares whose application gave these capabilities. */
uint8_t sgi_task_calls_modes_of(const segue_session *session, sgi_json given);
/* May a session declare its option response_modes; may a call of it list these? */
segue_status sgi_task_calls_may_declare(sgi_engine *engine,
                                        const segue_session_options *options,
                                        sgi_json capabilities);
segue_status sgi_task_calls_may_list(segue_session *session, uint32_t modes);
/* The server has said what it can. */
void sgi_task_calls_begin(segue_session *session, sgi_json capabilities);
/* notifications/tools/list_changed. */
void sgi_task_calls_changed(segue_session *session);

/* handshake.c */
void sgi_handshake_begin(segue_session *session);
bool sgi_handshake_prepare(segue_session *session, sgi_json capabilities);
/* The session can be used: requests that wait are sent. */
void sgi_session_opened(segue_session *session);
/* It cannot be used and will not be: ends it with an error. */
void sgi_session_failed(segue_session *session, segue_status status, const char *text);

#endif
