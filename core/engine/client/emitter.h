/* A request of a client's session on the wire. Each id in flight has one emitter, which
 * gets exactly one outcome. If client and server have agreed on several answers to the
 * request (SEP-1905), all answers except the last go to `more`. An answer that comes
 * after the last answer has no emitter and is dropped. A request of the application may
 * use several emitters, one after another or at the same time (tools/call, then
 * tasks/stream, tasks/get, tasks/update). The application's request survives the loss of
 * all its emitters. */
#ifndef SGI_EMITTER_H
#define SGI_EMITTER_H

#include "engine/client/loss.h"
#include "engine/conversation/conn.h"
#include "engine/conversation/sending.h"

typedef struct sgi_emitter sgi_emitter;

typedef enum sgi_outcome_kind {
    SGI_OUTCOME_RESULT = 0, /* the server sent a result; json is the result object */
    SGI_OUTCOME_ERROR,      /* the server sent an error; json is the error object */
    SGI_OUTCOME_TIMEOUT,
    /* the connection broke before the answer came, or the request could not be sent */
    SGI_OUTCOME_LOST,
    /* over HTTP: an error status, or another failure that would happen again */
    SGI_OUTCOME_REFUSED,
} sgi_outcome_kind;

typedef struct sgi_outcome {
    sgi_outcome_kind kind;
    sgi_json json; /* the result or error object, as a view into the server's message */
    /* the parts of the message of this result; NULL = there is no message */
    const sgi_json_part *parts;
    const char *why; /* for LOST and REFUSED: a text that describes the failure */
    /* for REFUSED and ERROR: the HTTP status if it is an error status, else 0 */
    int32_t status;
    sgi_loss loss; /* for LOST; BROKEN is told over HTTP only */
    /* for REFUSED: true when the answer is larger than max_message_bytes */
    bool too_large;
    bool has_reason; /* for REFUSED: `why` says more than the HTTP status */
    /* for REFUSED: true when the client has no access token that the server accepts */
    bool needs_auth;
    /* For ERROR: the server no longer has the answer that Last-Event-ID asks for, and
     * sent this error in place of the answer. The client can fetch the content of the
     * answer in another way. */
    bool is_gone;
    /* for REFUSED: the response is not an MCP message; perhaps a proxy has made the
     * response */
    bool is_page;
} sgi_outcome;

struct sgi_emitter {
    sgi_map_node node;
    int64_t id;
    segue_session *session;
    /* the session's conversation, or the conversation of an HTTP exchange */
    sgi_conn *conn;
    /* a pointer without a reference, because the request lives longer than its emitters;
     * NULL = the session itself sends the message */
    segue_request *request;
    sgi_timer timer;
    /* time limit in ms; 0 = no limit; each answer starts the limit anew */
    int64_t timeout_ms;
    /* the HTTP status of the answer if it is an error status, else 0 */
    int32_t http_status;
    /* number of the wire session in which the request was written */
    int32_t wire_session;
    bool begun; /* true when an answer has arrived and further answers follow */
    /* true when the request has ended, but the session still needs the answer */
    bool late;
    /* The emitter asks for the answer of an earlier exchange. If the present exchange
     * fails, the answer of the earlier one is lost. */
    bool repeats;
    /* Handles one of several results. Returns true when more results follow; the function
     * may then have freed the emitter. Returns false when this result is the last one,
     * which then goes to `done`. NULL = there is only one result. */
    bool (*more)(sgi_emitter *emitter, sgi_json result);
    void (*done)(sgi_emitter *emitter, const sgi_outcome *outcome);
};

#define SGI_WHY_GONE                                                                     \
    "the answer was cut off, and the server cannot send it again because it is too "     \
    "large"

/* Writes the text of a failure: `what` and, if it is short enough, `said`, the server's
 * own words. */
#define SGI_WHY_MAX 2048
void sgi_explain_failure(char why[SGI_WHY_MAX], const char *what, sgi_str said);

/* Writes the text for a server that could not be reached within reconnect_timeout_ms.
 * why: the reason of the last failure. */
void sgi_explain_unreachable(const segue_session *session, char text[SGI_WHY_MAX],
                             const char *why);

/* Returns the error code of an outcome of kind ERROR; 0 for any other outcome. */
int64_t sgi_outcome_error_code(const sgi_outcome *outcome);

/* True for an outcome that a proxy, or a server that is starting, may have caused: an
 * HTTP status or a page. Such an outcome does not prove that the requested object is
 * unknown. */
static inline bool sgi_outcome_may_pass(const sgi_outcome *outcome)
{
    return outcome->kind == SGI_OUTCOME_REFUSED &&
           (outcome->is_page || outcome->status == 404 || outcome->status >= 500);
}

/* Returns the status that the application gets for an outcome of kind REFUSED. */
static inline segue_status sgi_outcome_status(const sgi_outcome *outcome)
{
    if (outcome->too_large)
        return SEGUE_E_TOO_LARGE;
    return outcome->needs_auth ? SEGUE_E_UNAUTHORIZED : SEGUE_E_REFUSED;
}

/* Begins a request on the wire. The caller writes the params into sending->w and then
 * calls sgi_emitter_send. Returns NULL when out of memory. The session must be
 * connected. */
sgi_emitter *sgi_emitter_begin(segue_session *session, sgi_sending *sending,
                               sgi_str method);
/* Like sgi_emitter_begin, but uses `id`, the id of an earlier request. */
sgi_emitter *sgi_emitter_begin_with_id(segue_session *session, sgi_sending *sending,
                                       int64_t id, sgi_str method);
/* True when a request with this id is in flight. */
bool sgi_emitter_id_is_in_flight(segue_session *session, int64_t id);
/* Completes the message with its _meta and sends it. extra: members of _meta that the
 * library adds, each with a comma before it; may be empty. user: the application's own
 * _meta; may be empty. Returns false when nothing was sent; the emitter is then freed,
 * and `done` is not called. */
bool sgi_emitter_send(sgi_emitter *emitter, sgi_sending *sending, sgi_str extra,
                      sgi_json user);
/* Returns the emitter of the request with this id; NULL when no such request is in
 * flight. */
sgi_emitter *sgi_emitter_find(segue_session *session, sgi_json id);
/* Drops an emitter without an outcome: `done` is not called. notify: also sends
 * notifications/cancelled. */
void sgi_emitter_drop(sgi_emitter *emitter, bool notify);
/* Tells the server that the client no longer wants the answer to a call whose exchange
 * was lost. The message names the call by its idempotency key or its resume token. Sends
 * nothing when the call has no key and no token. */
void sgi_emitter_withdraw_lost_call(const segue_request *request);
/* Restarts the time limit, because the server has shown that it is alive. */
void sgi_emitter_note_sign_of_life(sgi_emitter *emitter);

/* Ignores a result that is a piece (_meta.hasMore) of a call that has ended. Returns
 * false for the last result. It is a value for `more`. */
bool sgi_emitter_skip_piece(sgi_emitter *emitter, sgi_json result);
/* These functions report an outcome: they call `done` and free the emitter. If more
 * results follow, sgi_emitter_on_result calls `more` instead. */
void sgi_emitter_on_result(sgi_emitter *emitter, const sgi_message *msg);
void sgi_emitter_on_error(sgi_emitter *emitter, sgi_json error);
/* Reports that the server's answer has neither a result nor an error. */
void sgi_emitter_on_malformed_answer(sgi_emitter *emitter);
/* Reports that the answer is larger than max_message_bytes. */
void sgi_emitter_on_too_large_answer(sgi_emitter *emitter);
/* These functions report that the exchange ended without a message. why: the reason; NULL
 * = the HTTP status is the reason. */
void sgi_emitter_on_lost_exchange(sgi_emitter *emitter, const char *why, sgi_loss loss);
void sgi_emitter_on_refused(sgi_emitter *emitter, int32_t status, const char *why);
/* Reports that the response is not an MCP message. */
void sgi_emitter_on_no_mcp_message(sgi_emitter *emitter, const char *why);
/* Reports the HTTP status 401 or 403. why: the reason why no access token can help. */
void sgi_emitter_on_access_refused(sgi_emitter *emitter, int32_t status, const char *why);

#endif
