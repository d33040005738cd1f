/* A request of a client's session on the wire: one emitter per id in flight, which hears
 * exactly one outcome; where several answers were agreed on for this request (SEP-1905),
 * the ones before it go to `more`. All other second answers meet no emitter any more.
 *
 * Requests of the application sit above emitters: a request may use several, one after
 * another or side by side (tools/call, then tasks/stream, tasks/get, tasks/update), and
 * survives the loss of all of them. */
#ifndef SGI_EMITTER_H
#define SGI_EMITTER_H

#include "engine/conn.h"
#include "engine/sending.h"

typedef struct sgi_emitter sgi_emitter;

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
    int32_t status;  /* REFUSED, ERROR: of HTTP, when it was no success; 0 = none */
    bool unsent;     /* LOST: the server cannot have heard of it */
    bool too_large;  /* REFUSED: the answer is larger than a message may be */
    bool has_reason; /* REFUSED: why says more than the status */
    bool needs_auth; /* REFUSED: there is no token that the server takes */
    bool is_page; /* REFUSED: what came is no answer of MCP; a proxy may have made it */
} sgi_outcome;

struct sgi_emitter {
    sgi_map_node node;
    int64_t id;
    segue_session *session;
    sgi_conn *conn;         /* the session's, or an exchange's of its own */
    segue_request *request; /* not counted: the request outlives its emitters */
    sgi_timer timer;
    int64_t timeout_ms;  /* 0 = none; counts anew from each answer */
    int32_t http_status; /* with which its answer came, when it was no success */
    bool begun;          /* an answer has come that was not the last */
    bool late;           /* its request was given up; late_task.h */
    bool repeats;        /* who asks again gets the answer; it is lost when it is gone */
    /* A result: true when others follow it, and it was taken; then the emitter may be
     * gone. false: nothing was done with it, it is the outcome. NULL = there is one. */
    bool (*more)(sgi_emitter *emitter, sgi_json result);
    void (*done)(sgi_emitter *emitter, const sgi_outcome *outcome);
};

/* The server stands in for an answer that it does not keep for Last-Event-ID. What the
 * answer told can be had in another way. */
bool sgi_error_is_gone(sgi_json error);
#define SGI_WHY_GONE "the answer was cut off, and is too large to be sent again"

/* What happened, and what the server said about it, if that is short. */
#define SGI_WHY_MAX 2048
void sgi_explain(char why[SGI_WHY_MAX], const char *what, sgi_str said);

/* Why nothing is tried any more: reconnect_timeout_ms is over. */
void sgi_explain_reach(const segue_session *session, char text[SGI_WHY_MAX],
                       const char *why);

/* Of an outcome that is ERROR: its code. Of any other: 0. */
int64_t sgi_outcome_code(const sgi_outcome *outcome);

/* A status of HTTP, or a page, that a proxy, or a server that starts, may give for
 * something that is there. */
static inline bool sgi_outcome_may_pass(const sgi_outcome *outcome)
{
    return outcome->kind == SGI_OUTCOME_REFUSED &&
           (outcome->is_page || outcome->status == 404 || outcome->status >= 500);
}

/* What an outcome that is REFUSED means for the application. */
static inline segue_status sgi_outcome_status(const sgi_outcome *outcome)
{
    if (outcome->too_large)
        return SEGUE_E_TOO_LARGE;
    return outcome->needs_auth ? SEGUE_E_UNAUTHORIZED : SEGUE_E_REFUSED;
}

/* Begins a request on the wire: write its params into sending->w, then sgi_emitter_send.
 * NULL when out of memory. The session must be up. */
sgi_emitter *sgi_emitter_begin(segue_session *session, sgi_sending *sending,
                               sgi_str method);
/* The same under an id that was used before. */
sgi_emitter *sgi_emitter_begin_as(segue_session *session, sgi_sending *sending,
                                  int64_t id, sgi_str method);
/* Is this id in flight? */
bool sgi_emitter_is_out(segue_session *session, int64_t id);
/* Ends the message: adds _meta (extra: further members, each preceded by a comma, or
 * empty; user: the application's own _meta, or empty). false: nothing was sent, the
 * emitter is gone and done does not run. */
bool sgi_emitter_send(sgi_emitter *emitter, sgi_sending *sending, sgi_str extra,
                      sgi_json user);
/* The exchange with this id, NULL when none is in flight. */
sgi_emitter *sgi_emitter_find(segue_session *session, sgi_json id);
/* Forgets an exchange: notifications/cancelled is sent when notify is set. done does not
 * run. */
void sgi_emitter_drop(sgi_emitter *emitter, bool notify);
/* Tells the server that nobody wants the answer to a call any more whose exchange was
 * lost: the call is named by its idempotency key. Says nothing of a call without one. */
void sgi_emitter_withdraw(const segue_request *request);
/* Starts its timeout anew: the server is alive. */
void sgi_emitter_touch(sgi_emitter *emitter);

/* Its outcome: done runs, and the emitter is gone; unless there are more to come. */
void sgi_emitter_result(sgi_emitter *emitter, sgi_json result);
void sgi_emitter_error(sgi_emitter *emitter, sgi_json error);
/* The server answered with something that is neither. */
void sgi_emitter_malformed(sgi_emitter *emitter);
/* The answer is larger than max_message_bytes. */
void sgi_emitter_too_large(sgi_emitter *emitter);
/* Its exchange came to an end that is no message. why NULL = the status says it. */
void sgi_emitter_lost(sgi_emitter *emitter, const char *why, bool unsent);
void sgi_emitter_refused(sgi_emitter *emitter, int32_t status, const char *why);
/* What came is no answer of MCP. */
void sgi_emitter_page(sgi_emitter *emitter, const char *why);
/* Status 401 or 403, and why no token helps. */
void sgi_emitter_unauthorized(sgi_emitter *emitter, int32_t status, const char *why);

#endif
