/* Withdraws calls that the application no longer wants. The server continues such a call
 * until it gets notifications/cancelled. The message names the call by its idempotency
 * key if the server keeps calls for clients that reconnect (R-2557-11), otherwise by its
 * id (R-776-26). An id is valid in one wire session only. So a resumable call is first
 * resumed in the new wire session, under an id of that session, and then cancelled
 * (R-975-12). The session sends these messages, because the request has already ended. A
 * withdrawal that is lost, or refused for a temporary reason, is sent again for at most
 * SGI_WITHDRAWAL_MS. */
#ifndef SGI_WITHDRAWAL_H
#define SGI_WITHDRAWAL_H

#include "base/thresholds.h"
#include "engine/client/session.h"

/* The delay, in ms, before the message that withdraws a call is sent again, if it was
 * lost. */
#define SGI_WITHDRAWAL_AGAIN_MS SGI_THRESHOLD(withdrawal_again_ms)
/* The time in ms after which the client stops trying to withdraw a call. The time begins
 * when the application cancels the call. */
#define SGI_WITHDRAWAL_MS SGI_THRESHOLD(withdrawal_ms)
/* The largest number of withdrawn calls that a session stores, to withdraw them again if
 * the message is lost. A call beyond this number is withdrawn by one message, which is
 * never sent again. */
#define SGI_WITHDRAWALS_MAX SGI_THRESHOLD(withdrawals_max)

/* A call that the application no longer wants and that the client withdraws. */
typedef struct sgi_withdrawn_call {
    int64_t id;
    /* number of the wire session in which the call was sent; SGI_NO_WIRE_SESSION = not
     * known */
    int32_t wire_session;
    const char *key; /* idempotency key of the call; NULL = the call has no key */
    /* resume token (SEP-975) of the call; empty = the call has no token */
    sgi_json token;
    /* reason that the server gets; a string literal; NULL = no reason */
    const char *reason;
} sgi_withdrawn_call;

#define SGI_NO_WIRE_SESSION 0

/* Withdraws the call now, or as soon as the server can be reached. A call without a key
 * and a token can be withdrawn only in the wire session in which it was sent. Over a byte
 * stream the withdrawal of such a call is sent only once. */
void sgi_withdraw_call(segue_session *session, const sgi_withdrawn_call *call);
/* Stops withdrawing a call, because the application continues the call. name: the
 * idempotency key of the call, or its resume token (JSON). */
void sgi_withdrawals_revoke(segue_session *session, const char *name);
/* Sends the waiting messages that withdraw calls, because the session can be used
 * again. */
void sgi_withdrawals_on_session_open(segue_session *session);
/* Sends the waiting messages that withdraw calls one last time and then forgets these
 * calls, because the session closes. */
void sgi_withdrawals_on_session_close(segue_session *session);

/* Used over HTTP. These functions report the end of the exchange that carries the
 * withdrawal of the call with this id. settled: the server has answered with a final
 * status. lost: the exchange was lost, or was refused for a temporary reason. */
void sgi_withdrawal_on_settled(segue_session *session, int64_t id, int32_t status);
void sgi_withdrawal_on_lost(segue_session *session, int64_t id);
/* Used over HTTP. Reports that the server has begun to answer the requests/resume of the
 * call with this id. */
void sgi_withdrawal_on_resumed(segue_session *session, int64_t id);

#endif
