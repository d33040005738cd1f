/* An outbound request, as the application sees it: one start, segments and questions as
 * they come, exactly one end, whatever the wire does in between
 * (core/docs/requirements.md 5.4.3).
 *
 * Phases: WAIT   the call is to be sent or answered, or its questions are (questions.c)
 *         FOLLOW it is a task: streamed if the server streams, else polled (follow.c; the
 *                tasks of 2025-11-25 in follow_2025.c)
 *         DONE   the outcome is known; on_complete follows what is still in the inbox
 *
 * A request outlives its exchanges: when the connection breaks, WAIT sends the call again
 * if it has an idempotency key, FOLLOW goes on from its cursor, anything else ends. */
#ifndef SGI_REQUEST_H
#define SGI_REQUEST_H

#include "engine/error.h"
#include "engine/limit.h"
#include "engine/log/fold.h"
#include "engine/asking/defaults.h"
#include "engine/asking/emitter.h"
#include "engine/asking/session.h"
#include "engine/asking/task_echo.h"
#include "engine/asking/tracker.h"
#include "engine/asking/tries.h"

typedef enum sgi_phase {
    SGI_PHASE_WAIT = 0,
    SGI_PHASE_FOLLOW,
    SGI_PHASE_DONE,
    SGI_PHASE_STAND /* for the session: sends nothing, is asked what no other is */
} sgi_phase;

/* Events and segments are counted up to here; whoever names a larger number is wrong. */
#define SGI_COUNT_MAX (INT64_C(1) << 53)

/* Which tasks a task is one of: each is followed in the way it was made (R-2557-62). */
typedef enum sgi_birth {
    SGI_BIRTH_UNKNOWN =
        0,               /* an id the application kept: as the session's version has it */
    SGI_BIRTH_EXTENSION, /* 2026-07-28 */
    SGI_BIRTH_2025,      /* 2025-11-25 */
    SGI_BIRTH_DRAFT      /* DRAFT-2026-v1 */
} sgi_birth;

static inline sgi_birth sgi_birth_of(sgi_version version)
{
    return version == SGI_VERSION_2025_11_25      ? SGI_BIRTH_2025
           : version == SGI_VERSION_DRAFT_2026_V1 ? SGI_BIRTH_DRAFT
                                                  : SGI_BIRTH_EXTENSION;
}

typedef enum sgi_question_state {
    SGI_QUESTION_OPEN = 0, /* the application has it, and has given no answer */
    SGI_QUESTION_ANSWERED, /* the server has not acknowledged the answer */
    SGI_QUESTION_REFUSED,  /* the question may come again */
    SGI_QUESTION_SETTLED   /* acknowledged */
} sgi_question_state;

/* A question of the server. */
typedef struct sgi_question {
    TAILQ_ENTRY(sgi_question) link;
    char *key;
    sgi_defaults defaults;
    sgi_question_state state;
    char *answer; /* JSON, or NULL */
    size_t answer_len;
    sgi_emitter *updating; /* the exchange under way, or NULL */
    sgi_tries tries;       /* of its answer: tasks/update */
    char *form;            /* it asks a person: its params; NULL = another question */
    size_t form_len;
    bool is_unknown; /* it is of a method that no revision has */
} sgi_question;

/* So many questions may be asked of one request. */
#define SGI_QUESTIONS_MAX 1024

typedef struct sgi_asked sgi_asked; /* asked.h */

/* What arrived and is not delivered: records of this head, each followed by its bytes. */
typedef enum sgi_record_kind {
    SGI_RECORD_TASK = 1, /* text: the id */
    SGI_RECORD_SEGMENT,  /* number, event; bytes: the block */
    SGI_RECORD_PROGRESS, /* progress, total; text: the message, may be empty */
    SGI_RECORD_LOG,      /* bytes: params */
    SGI_RECORD_STATUS,   /* text: status NUL message; number: has a message */
    SGI_RECORD_RESUMABLE,
    SGI_RECORD_INPUT /* text: key NUL method NUL params */
} sgi_record_kind;

typedef struct sgi_inbox_head {
    int32_t kind;
    uint32_t len; /* of the bytes behind, without the NUL that ends them */
    uint64_t number;
    uint64_t event;   /* number of the event + 1 that carried it; 0 = none */
    uint64_t covered; /* segments up to this one have been delivered with it */
    uint64_t index;   /* place in the list of the result */
    uint64_t voided;  /* number of void segments when this one is shown */
    bool replaces;    /* what was delivered before is void */
    double progress;
    double total;
} sgi_inbox_head;

/* The numbers of the segments in a task's stream, where the server does not tell them. */
typedef enum sgi_count {
    SGI_COUNT_ON = 0, /* the next one is the one after those that were shown */
    SGI_COUNT_ALL,    /* the stream was seen from its first event on */
    SGI_COUNT_LOST,   /* events are missing that may have brought some */
    SGI_COUNT_WRONG   /* and since then some were shown: the result is shown whole */
} sgi_count;

struct segue_request {
    sgi_handle handle;
    sgi_engine *engine;
    int32_t refs; /* the application's handle, the session's list, the ready queue */
    segue_session *session; /* counted */
    TAILQ_ENTRY(segue_request) link;
    segue_task *task; /* counted; the handle it was made from, or NULL */
    bool is_call;     /* tools/call: may become a task */
    sgi_phase phase;
    char *method;
    char *params; /* JSON object or NULL */
    size_t params_len;
    segue_request_options options;
    char *log_level;
    char *key;      /* idempotency */
    bool needs_key; /* it is of a token: without the key it is another call */
    bool key_sent;
    bool is_kept; /* somebody can come back for its answer: the application chose the key,
                     or has the token */
    int32_t pages;        /* of tools/list, looked through because they did not fit */
    bool listed;          /* sent again, as its headers did not fit the tool */
    bool asks_task;       /* params.task is sent with it */
    bool adds_task;       /* the library adds params.task, not the application */
    bool may_stream;      /* the task may have several answers (SEP-1905) */
    uint8_t listed_modes; /* of SEP-1905: what params.task lists */
    int32_t wish_session; /* the wire session in which its log level was asked for */
    bool waits_for_tools; /* of 2025-11-25: for the session's look at tools/list */
    bool reformed;        /* sent again, in the form that its tool takes */
    bool era_doubted;     /* sent again: its server seemed to be of another era */
    int64_t call_id;      /* of the last time it was sent: progress names it */
    uint64_t cache_mark;  /* its result may be kept if nothing changed since; 0 = not */
    segue_request_events events;
    sgi_timer deadline;
    sgi_tries tries;        /* of the request itself, then of tasks/get */
    sgi_tries stream_tries; /* of tasks/stream */

    /* exchanges under way */
    sgi_emitter *calling; /* the request itself */
    sgi_emitter *streaming;
    sgi_map_node by_stream; /* in the session's streams, while streaming */
    sgi_emitter *getting;

    /* the task */
    char *task_id;
    sgi_birth birth;
    uint32_t credentials; /* of the conversation, when it was made or come back to */
    char *meta; /* JSON: the _meta of the answer that made it; NULL = there was none */
    size_t meta_len;
    struct sgi_task_2025 *task_2025; /* while it is one of those (follow_2025.c) */
    int32_t state;                   /* segue_task_state */
    uint64_t status_told;            /* the last status that was told: its hash */
    int64_t updated_ms; /* lastUpdatedAt of what it was read from; 0 = none */
    int64_t poll_ms;
    int64_t ttl_ms;          /* -1 = unlimited, 0 = not known */
    int64_t known_ms;        /* since when it is known; monotonic */
    sgi_echo echo;           /* of a draft's task without a handle */
    sgi_emitter *cancelling; /* tasks/cancel: its answer ends the request */
    bool cancel_due;         /* ... which is under way, or has yet to be sent */
    segue_status cancel_status;
    bool no_stream;    /* the server streams, but not this */
    bool look_due;     /* tasks/get is owed, whatever the stream does */
    bool hook_pending; /* on_task has not run: nothing is asked before it (R-2557-60) */
    int32_t question_count; /* all that were ever asked */
    int32_t rounds;         /* answers that were questions (questions.c) */
    char *round_state;      /* JSON: what the last of them wants to have back, or NULL */
    size_t round_state_len;
    bool paused; /* the stream was stopped: the inbox is full and credit is out */
    bool behind; /* the inbox is full, callbacks are due: the session reads no more */
    uint64_t next_event;
    uint64_t gap;     /* E: next_event when a hole before it was asked for again */
    uint64_t gap_end; /* E: the last event that came behind that hole */
    uint64_t next_segment;
    uint64_t void_segments; /* segments that the last replace threw away */
    bool joined;            /* its result says that text of it went on */
    bool end_seen;          /* E: tasks/get was ahead of the stream */
    uint64_t streamed;      /* E: the last segment of its stream */
    sgi_count count;        /* E: what is known of the numbers of segments */
    uint64_t void_before;   /* those of void_segments that were shown as void */
    bool unsure;            /* events were passed over, see follow_events.c */
    bool partial;           /* the fold lacks what came before the cursor of a token */
    sgi_fold fold;

    /* pieces of the result of a plain call (pieces.c) */
    bool adds_partial, adds_token; /* asked for, here and not by the application */
    struct sgi_merge *merge;       /* P: of the answers so far; NULL = one is all */
    int64_t next_piece;            /* PN: the number that is to come */
    uint64_t piece_count;          /* ... blocks that came with this exchange, */
    uint64_t piece_blocks;         /* ... and those that its result has of them */
    int32_t empty_pieces;          /* in a row, P or PN, that had no content */
    uint64_t holes;                /* ... pieces that did not come, */
    bool broken;                   /* ... so the others wait for the result */
    TAILQ_HEAD(, sgi_question) questions;
    TAILQ_HEAD(, sgi_asked) asked; /* by requests of the server */

    /* what the server said of coming again (resume.c) */
    char *resume_token; /* JSON text; NULL = nothing */
    int64_t resume_min_ms;
    int64_t resume_due_ms; /* monotonic: not before */
    char *last_event;      /* over HTTP: of the last message that was taken, or NULL */
    bool taken_over;       /* it was another process's */
    uint64_t gone;         /* the server keeps no segment up to this one any more */
    uint64_t handled;      /* segments that the other process has handled */
    bool has_progress;
    double last_progress;

    /* for the application */
    sgi_ready ready;
    sgi_buf inbox;
    sgi_buf taken; /* the part under delivery */
    size_t taken_at;
    bool delivering;
    int64_t credit;           /* -1 = no limit */
    uint64_t delivered_event; /* event + 1 of the last segment whose delivery has begun */
    uint64_t delivered_segment;
    uint64_t delivered_void; /* segments that it was told to be void */
    uint64_t dropped;
    bool replace_due; /* the next segment replaces those before it */

    /* the end */
    segue_status status;
    sgi_buf result;
    segue_error *error;
    bool completed; /* on_complete has begun */
    bool given_up;  /* by the application, after the end: segments wait for no credit */
    /* Of one that the engine itself made: told of the end, under the lock, and in place
     * of the events (hosting/asker.h). */
    void (*ended)(segue_request *request);
    void *owner;
};

/* ---- request.c ---- */

typedef struct sgi_request_spec {
    sgi_str method;
    sgi_json params; /* an object, or empty */
    const segue_request_options *options;
    const segue_request_events *events; /* NULL = none */
    sgi_str key;     /* idempotency, of a token; empty = as the options say */
    sgi_str task_id; /* follow this task; empty = send the method */
    uint64_t next_event;
    uint64_t next_segment;
    int64_t seen; /* beside a token: segments that need not come again */
    uint64_t void_segments;
    sgi_birth birth;
    sgi_json echo; /* a draft's requestState; JSON, may be empty */
    segue_task *task;
    sgi_json resume_token; /* ask for this one again; empty = send the method */
    int64_t resume_id;
    int64_t resume_min_ms;
    sgi_str resume_event;
} sgi_request_spec;

segue_status sgi_request_new(segue_session *session, const sgi_request_spec *spec,
                             segue_request **out);
void sgi_request_ref(segue_request *request);
void sgi_request_unref(segue_request *request);

segue_status sgi_request_cancel(segue_request *request);
/* The session closes: a call whose key nobody else knows is cancelled. */
void sgi_request_withdraw(segue_request *request);
segue_status sgi_request_detach(segue_request *request);
segue_status sgi_request_answer(segue_request *request, const char *key, sgi_json answer);
/* data: may be empty. */
segue_status sgi_request_answer_error(segue_request *request, const char *key,
                                      int32_t code, sgi_str message, sgi_json data);
/* Of a request whose end is known: it has no open question any more. */
static inline segue_status sgi_request_unasked(const segue_request *request)
{
    return request->completed ? SEGUE_E_TERMINAL : SEGUE_E_NOT_FOUND;
}
segue_status sgi_request_grant(segue_request *request, int64_t n);

/* The end, each once; later ones are ignored. */
void sgi_request_finish(segue_request *request, sgi_json result);
/* As sgi_request_finish, by exchanging the buffers: a result may be large. */
void sgi_request_finish_by(segue_request *request, sgi_buf *result);
/* The server's error; what: of another message than the request's own, or NULL. */
void sgi_request_finish_error(segue_request *request, const char *what, sgi_json error);
/* The same with another status, and what was received goes with it. */
void sgi_request_fail_error(segue_request *request, segue_status status, const char *what,
                            sgi_json error);
void sgi_request_fail(segue_request *request, segue_status status, const char *text);
/* It fails because it exceeds a limit of this side. */
void sgi_request_fail_limit(segue_request *request, segue_status status, const char *what,
                            sgi_limit limit);
/* What was collected is larger than max_result_bytes. */
void sgi_request_fail_size(segue_request *request);

/* The outcome of the exchange that carries it. */
void sgi_request_take(segue_request *request, const sgi_outcome *outcome);
/* The server is about to end and has not begun what it refuses (wire/ending.h). */
bool sgi_error_is_ending(sgi_json error);
/* Sends what is due in its phase; for a session that is open. */
void sgi_request_go(segue_request *request);

/* ---- notices.c: what the session tells ---- */

void sgi_requests_opened(segue_session *session);
void sgi_requests_closed(segue_session *session, segue_status status, const char *text);
/* What could not be read may have been an event of a stream: each result is fetched. */
void sgi_requests_lack(segue_session *session);
/* false: the notification belongs to no request. */
bool sgi_requests_notified(segue_session *session, sgi_str method,
                           const sgi_message *msg);

/* ---- follow.c, follow_begin.c: a request that is a task ---- */

/* The answer of tools/call was a task; meta: of that answer, may be empty. */
void sgi_follow_begin(segue_request *request, sgi_json task, sgi_json meta);
/* A member of that _meta, a view; empty: there is none. */
sgi_json sgi_follow_meta(const segue_request *request, const char *key);
/* A task is followed in the way it was made; false: it cannot be, and that is the end. */
bool sgi_follow_settle_birth(segue_request *request);
void sgi_follow_go(segue_request *request);
/* Members of notifications/tasks/event; views. */
typedef struct sgi_task_event {
    sgi_json seq, type, payload;
    const sgi_json_part *part; /* of payload, perhaps */
} sgi_task_event;

void sgi_follow_event(segue_request *request, const sgi_task_event *event);
/* The events before this one do not come any more: the stream lacks them, and the result
 * is fetched. */
void sgi_follow_lack(segue_request *request, uint64_t next_event);
/* The code of an error says that the server does not have the method at all. */
static inline bool sgi_follow_is_unable(int64_t code)
{
    return code == SGI_RPC_METHOD_NOT_FOUND || code == SGI_RPC_MISSING_CAPABILITY;
}
void sgi_follow_answer(segue_request *request, sgi_question *question);
/* The application has given no credit for what is there: the stream is stopped. */
void sgi_follow_pause(segue_request *request);
/* There is room again: a paused stream goes on. */
void sgi_follow_resume(segue_request *request);
/* Drops the exchanges about the task. */
void sgi_follow_end(segue_request *request);

/* Looks at the task now, whatever was to be waited for. */
void sgi_follow_look(segue_request *request);
/* Sends tasks/get, unless one is under way: then another follows it. */
void sgi_follow_get(segue_request *request);

/* ---- follow_stream.c: tasks/stream ---- */

/* Opens the stream if it is due. */
void sgi_follow_stream_go(segue_request *request);
void sgi_follow_stream_drop(segue_request *request);
/* There is no stream, or it is not enough. */
bool sgi_follow_is_polled(const segue_request *request);
/* The stream is asked for again, behind what came. */
void sgi_follow_reopen(segue_request *request);

/* ---- follow_cancel.c ---- */

/* Asks the server to cancel the task: the answer ends the request, with SEGUE_E_CANCELLED
 * or SEGUE_E_TIMEOUT. */
void sgi_follow_cancel(segue_request *request, segue_status status);
/* ... as soon as it can be sent. */
void sgi_follow_cancel_go(segue_request *request);
/* The same for a request that has ended by itself: nobody waits for the answer. */
void sgi_follow_abandon(segue_request *request);
/* The server says that it is cancelled, by whomever: the end. */
void sgi_follow_cancelled(segue_request *request);

/* ---- follow_draft.c: what is different about one of DRAFT-2026-v1 ---- */

bool sgi_follow_is_draft(const segue_request *request);
/* The first answer of a request; true: it is a task, and was taken. */
bool sgi_follow_draft_answer(segue_request *request, sgi_json result);
/* Answers that are due go out with this tasks/get; they did not after all. */
void sgi_follow_draft_write(segue_request *request, sgi_emitter *emitter, sgi_jw *w);
void sgi_follow_draft_unsent(segue_request *request, const sgi_emitter *emitter);
/* What became of them; true: some were refused, and are asked for anew. */
bool sgi_follow_draft_got(segue_request *request, const sgi_emitter *emitter,
                          const sgi_outcome *outcome);
/* notifications/tasks/status. */
void sgi_follow_draft_status(segue_request *request, sgi_json task);

/* ---- follow_2025.c: a task of 2025-11-25, streamed (SEP-1905) or not ---- */

/* Out of memory: false. */
bool sgi_follow_2025_begin(segue_request *request);
void sgi_follow_2025_free(segue_request *request);
void sgi_follow_2025_go(segue_request *request);
void sgi_follow_2025_end(segue_request *request);
void sgi_follow_2025_pause(segue_request *request);
/* The exchange of the call has ended: nothing more is pushed. */
void sgi_follow_2025_pushed(segue_request *request, const sgi_outcome *outcome);
/* One of several answers; false: it is the last. */
bool sgi_follow_2025_more(sgi_emitter *emitter, sgi_json result);
/* The first answer of a request of that version; true: it is no plain result, and was
 * taken. */
bool sgi_follow_2025_answer(segue_request *request, sgi_json result);
/* notifications/tasks/status. */
void sgi_follow_2025_status(segue_request *request, sgi_json task);

/* ---- log_wish.c: log messages ---- */

/* false: the request waits until the server knows which messages it wants. */
bool sgi_log_wish_prepare(segue_request *request);
/* A request was answered with a result: it may have set the level itself. */
void sgi_log_wish_note(segue_request *request);
/* A log message goes to the request on whose exchange it came; on stdio, where nothing
 * says that, to the oldest one that wants it. false: no request wants it. */
bool sgi_log_wish_take(segue_session *session, sgi_json params);

/* ---- task_calls.c: a call that may be a task of 2025-11-25 ---- */

/* The server that refused the session's look may be of another era: notes it for the
 * calls that wait; false: it was noted before. */
bool sgi_task_calls_doubt(segue_session *session);

/* Which form the call has; false: it waits until that is known. */
bool sgi_task_calls_prepare(segue_request *request);
/* params.task, if there is one to add. */
void sgi_task_calls_write(const segue_request *request, sgi_jw *w);
/* true: it was refused for its form, and is sent in another. */
bool sgi_task_calls_reform(segue_request *request, sgi_json error);
/* The result of a tools/list of the application. */
void sgi_task_calls_learn(const segue_request *request, sgi_json result);

/* ---- task_state.c: what a server says of a task ---- */

int32_t sgi_task_state_of(sgi_json status);
/* Takes status and statusMessage over; on_status follows when there is news. */
void sgi_task_note_status(segue_request *request, sgi_json object);
void sgi_task_note_poll(segue_request *request, sgi_json task); /* and its ttl */
/* Its time to live is over, as far as is known here. */
bool sgi_task_is_overdue(const segue_request *request);
/* What an error says of a task that its server does not know: a user who has logged in
 * since may be another one, whose task it is not. */
const char *sgi_task_unknown(const segue_request *request);
/* What is said of the task is older than what is known: a terminal state is for ever,
 * else lastUpdatedAt tells (R-2557-47). */
bool sgi_task_is_stale(segue_request *request, sgi_json task);
/* Does it name another task than the request's? */
bool sgi_task_is_another(const segue_request *request, sgi_json task);
static inline bool sgi_task_state_is_terminal(int32_t state)
{
    return state == SEGUE_TASK_COMPLETED || state == SEGUE_TASK_FAILED ||
           state == SEGUE_TASK_CANCELLED;
}
/* The request is one whose answer is a task that was there before. */
bool sgi_task_is_asked(const segue_request *request);
/* The next look is due after the poll interval. */
void sgi_task_poll_later(segue_request *request);
/* How long a server that refuses wants to be left alone; 0 = it does not say. */
int64_t sgi_task_retry_after(sgi_json error);
/* Begins a request about the task, with its taskId; NULL when out of memory. */
sgi_emitter *sgi_task_ask(segue_request *request, sgi_sending *sending,
                          const char *method,
                          void (*done)(sgi_emitter *, const sgi_outcome *));

/* ---- pieces.c: the result of a plain call as it grows ---- */

/* What is asked for with the exchange that is about to be sent. */
void sgi_pieces_prepare(segue_request *request, sgi_emitter *emitter);
void sgi_pieces_write_extra(const segue_request *request, sgi_buf *out, int64_t id);
/* One of several answers; false: it is the last. */
bool sgi_pieces_more(sgi_emitter *emitter, sgi_json result);
/* The last of them. */
void sgi_pieces_finish(segue_request *request, sgi_json result);
/* notifications/tools/partial_result */
void sgi_pieces_notified(segue_request *request, sgi_json params);
void sgi_pieces_free(segue_request *request);
/* The list that the result of such a request has, by what its method is known for; NULL =
 * not known. */
const char *sgi_pieces_list(const segue_request *request);

/* ---- resume.c: a call that is asked for again (SEP-975) ---- */

/* notifications/requests/resumePolicy */
void sgi_resume_policy(segue_session *session, sgi_json params);
void sgi_resume_free(segue_request *request);
/* Out of memory: false. */
bool sgi_resume_take(segue_request *request, const sgi_request_spec *spec);
/* The event with this id has been taken. */
void sgi_resume_event(segue_request *request, sgi_str id);
sgi_str sgi_resume_position(const segue_request *request);
/* Its exchange was lost: minWait begins. */
void sgi_resume_lost(segue_request *request);
void sgi_resume_send(segue_request *request);
/* It is only the end of a result. */
bool sgi_resume_lacks(const segue_request *request, sgi_json result);
/* The end of such a result. */
void sgi_resume_fail_partial(segue_request *request);
/* The first of several answers came, or the only one that is merged. */
void sgi_resume_begin_merge(segue_request *request, sgi_json result);
bool sgi_resume_is_repeat(segue_request *request, double progress);
/* Members of a token, and back. */
void sgi_resume_write(const segue_request *request, sgi_jw *w);
bool sgi_resume_read(sgi_json state, sgi_request_spec *spec);
/* The session is one in which a request can be asked for again; else the request ends. */
bool sgi_resume_fits(segue_request *request);

/* ---- questions.c ---- */

void sgi_questions_clear(segue_request *request);
/* A member of inputRequests. SEGUE_OK also for one that is known; SEGUE_E_PROTOCOL when
 * it is no question that could be asked; SEGUE_E_LIMIT; SEGUE_E_NOMEM. */
segue_status sgi_question_take(segue_request *request, const sgi_json_member *member);
/* Its answer is to be sent now. */
static inline bool sgi_question_is_due(const sgi_question *question)
{
    return question->state == SGI_QUESTION_ANSWERED && !question->updating &&
           !sgi_tries_wait(&question->tries);
}
/* The server acknowledged the answer. */
void sgi_question_settle(sgi_question *question);
/* The exchange with the answer failed. It is sent again later. If the server says that it
 * is no answer to this question, the application is asked anew; true: so it was. */
bool sgi_question_failed(segue_request *request, sgi_question *question,
                         const sgi_outcome *outcome);
/* The request ends: no answer is sent any more. */
void sgi_questions_rest(segue_request *request);
/* One that has no answer yet; NULL when there is none. */
sgi_question *sgi_question_find(segue_request *request, const char *key);
/* Its answer is there then. SEGUE_E_INVALID: it is none, or does not fit the form. */
segue_status sgi_question_answer(const segue_request *request, sgi_question *question,
                                 sgi_json answer);
/* Some have no answer yet. */
bool sgi_questions_are_open(const segue_request *request);
/* Is the answer a round of questions, by its resultType? */
bool sgi_questions_is_round(const segue_request *request, sgi_json type);
void sgi_questions_round(segue_request *request, sgi_json result);
/* What goes with the request when it is sent again, into its params; is a member of the
 * application's params one of these? */
void sgi_questions_write(const segue_request *request, sgi_jw *w);
bool sgi_questions_own(const segue_request *request, const sgi_json_member *member);

/* ---- result_check.c ---- */

/* Before on_complete: what a tool gave, against its outputSchema. It may fail then. */
void sgi_result_check(segue_request *request);

/* ---- tool_lookup.c ---- */

/* The answer of tools/call: true when its headers did not fit, and will. */
bool sgi_tool_lookup(segue_request *request, sgi_json error);
/* Any result: true when out, which may have failed, is to be taken instead. */
bool sgi_tool_lookup_clean(segue_request *request, sgi_json result, sgi_buf *out);

/* ---- deliver.c: what the application gets ---- */

/* Appends a record; false when it was dropped for lack of memory. */
bool sgi_deliver(segue_request *request, const sgi_inbox_head *head, sgi_str bytes);
void sgi_deliver_segment(segue_request *request, uint64_t number, uint64_t event,
                         sgi_json block);
/* One that may come before those below it: covered are all up to that number. */
void sgi_deliver_numbered(segue_request *request, uint64_t number, uint64_t covered,
                          sgi_json block);
/* One whose place in the result is told. */
void sgi_deliver_piece(segue_request *request, uint64_t number, uint64_t event,
                       uint64_t index, sgi_json block);
/* Segments up to this one do not count for the result. */
void sgi_deliver_void(segue_request *request, uint64_t number);
/* The same, where a result that is whole tells it: of segments that were replaced, and of
 * those whose text has gone on. */
void sgi_deliver_told_void(segue_request *request, sgi_json result);
/* Blocks of a whole result that were not delivered as segments. */
void sgi_deliver_rest(segue_request *request, sgi_json result);
bool sgi_deliver_is_full(const segue_request *request);
/* The inbox is full. A plain call's exchange is read no more until there is room. Else
 * without credit the stream is stopped at its source, and with it the session reads no
 * more until callbacks have caught up. */
void sgi_deliver_hold(segue_request *request);
void sgi_deliver_queue(segue_request *request);
int32_t sgi_deliver_run(sgi_ready *ready, int32_t budget);

struct segue_segment {
    uint64_t number;
    uint64_t index;
    bool replaces;
    sgi_json block;
    sgi_buf type; /* decoded when asked for */
    sgi_buf text;
};

/* ---- token.c ---- */

segue_status sgi_token_write(segue_request *request, sgi_buf *out);
/* Makes the request that a token stands for. */
segue_status sgi_token_resume(segue_session *session, const char *token,
                              const segue_request_options *options,
                              const segue_request_events *events, segue_request **out);
/* Is it the text of a token? It may still be damaged. */
bool sgi_token_is(sgi_str text);
/* A handle of what it stands for. */
segue_status sgi_token_attach(segue_session *session, const char *token,
                              segue_task **out);
/* As sgi_token_resume, with the token that the task was made from. */
segue_status sgi_token_watch(segue_task *task, const segue_request_options *options,
                             const segue_request_events *events, segue_request **out);

/* ---- task_handle.c ---- */

struct segue_task {
    sgi_handle handle;
    int32_t refs;
    segue_session *session; /* counted */
    char *id;               /* "" = it is no task, and has a resume_token */
    int32_t state;
    sgi_birth birth;
    sgi_echo echo;
    char *token;        /* what it was made from; NULL = from the id */
    char *resume_token; /* JSON text; of a request (SEP-975) */
    int64_t call_id;    /* ... its id */
};

#define SGI_TASK_ID_MAX 4096

/* Of a task's id, or of a token. */
segue_status sgi_task_attach(segue_session *session, const char *text, segue_task **out);
/* spec: of a token, or one that has a task_id and nothing else. token: "" = none. */
segue_status sgi_task_handle_new(segue_session *session, const sgi_request_spec *spec,
                                 sgi_str token, segue_task **out);
void sgi_task_handle_unref(segue_task *task);
/* What is said of the task. An end that was said stays (R-2557-47). */
void sgi_task_handle_state(segue_task *task, int32_t state);
/* May a request that was made from one be sent in this session? Else it ends. */
bool sgi_task_handle_fits(segue_request *request);
/* What was asked of it was refused, or it ended so: what that tells of its state. */
void sgi_task_handle_refused(segue_request *request, sgi_json error);
/* tasks/cancel was refused: the task is looked at instead. false: it was something else,
 * or there is no memory. */
bool sgi_task_handle_looks(segue_request *request, sgi_json error);
/* The answer to a request made from it, if there is one: it remembers what it saw. */
void sgi_task_handle_note(segue_request *request, sgi_json result);
segue_status sgi_task_handle_get(segue_task *task, const segue_request_events *events,
                                 segue_request **out);
/* SEGUE_E_UNSUPPORTED: it is no task. */
segue_status sgi_task_handle_cancel(segue_task *task, const segue_request_events *events,
                                    segue_request **out);
segue_status sgi_task_handle_watch(segue_task *task, const segue_request_options *options,
                                   const segue_request_events *events,
                                   segue_request **out);

#endif
