/* Calls that were given up, and whose server goes on with them until it is told
 * (notifications/cancelled): by the idempotency key of one that is kept for a client that
 * comes again (R-2557-11), else by its id (R-776-26). The request has ended by then, and
 * the session sees to it that the server hears of it. What is lost, or refused for a
 * while, is told again, for as long as a task's cancel is waited for. */
#ifndef SGI_WITHDRAWAL_H
#define SGI_WITHDRAWAL_H

#include "engine/asking/session.h"

/* The delay, in ms, before a lost withdrawal is sent again. */
#define SGI_WITHDRAWAL_AGAIN_MS 250
/* The time, in ms, after which a withdrawal is not sent any more. It runs from the
 * moment at which the call was given up. */
#define SGI_WITHDRAWAL_MS 5000
/* Of a session, at once. What is beyond them is told once. */
#define SGI_WITHDRAWALS_MAX 64

/* Tells the server, now or when it can be reached. id: of the call. key: may be NULL;
 * then it is told as long as its wire session lasts, over a byte stream once. reason: may
 * be NULL; a literal. */
void sgi_withdraw(segue_session *session, int64_t id, const char *key,
                  const char *reason);
/* A call goes out with this key: what it withdrew before is not told any more. */
void sgi_withdrawals_revoke(segue_session *session, const char *key);
/* The session can be used again. */
void sgi_withdrawals_opened(segue_session *session);
/* It closes: who waits goes out once more. */
void sgi_withdrawals_end(segue_session *session);

/* Over HTTP, of the exchange that carries the one of this call: the server has taken it,
 * or refused it for good; it was lost, or refused for a while. */
void sgi_withdrawal_settled(segue_session *session, int64_t id);
void sgi_withdrawal_lost(segue_session *session, int64_t id);

#endif
