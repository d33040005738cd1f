/* Forwards answers to questions of another server's plain call. Such a call is not in the
 * store, so no command can be sent to its operation. When servers share a key and a
 * store, each server has a mailbox in the store: an operation that clients cannot ask
 * for. The commands that are sent to a mailbox (segue_ext.h) are answers for the plain
 * calls of its server. The id of the mailbox is the name of the server, and the name is
 * part of the ids of the server's questions (question_id.h).
 *
 * The client's POST is accepted when the answer is in the store. The server that asked
 * then checks sender and session, as it does for an answer that comes to it directly. */
#ifndef SGI_MAILBOX_H
#define SGI_MAILBOX_H

#include "engine/server/peer.h"

/* Makes the mailbox of this server, if there is none yet. Called when a session begins
 * that other servers can continue. */
void sgi_mailbox_create(segue_server *server);
/* True while the mailbox is being stored. Questions to clients are held back until
 * then. */
bool sgi_mailbox_is_being_stored(const segue_server *server);
/* Deletes the mailbox, because this server closes. */
void sgi_mailbox_delete(segue_server *server);
bool sgi_op_is_mailbox(const sgi_op *op);
/* Replaces this server's mailbox, because another server may have claimed and deleted
 * it. */
void sgi_mailbox_replace(sgi_op *box);
void sgi_mailbox_renew(segue_server *server);
/* Deletes the mailbox of a server that has gone. Called after this server has claimed
 * that mailbox. */
void sgi_mailbox_delete_claimed(sgi_op *box);

/* Sends an answer to the server that asked the question. peer: the conversation that
 * brought the answer, within its session. Returns true when the answer is on its way; the
 * POST then gets its status, 202 or 503, later. Returns false when no such server exists,
 * or when too many answers are on their way. */
bool sgi_mailbox_forward_answer(sgi_peer *peer, const sgi_message *msg);
/* Handles an answer that another server has put into this server's mailbox. Returns
 * SEGUE_E_NOMEM when the answer must be read again later. */
segue_status sgi_mailbox_take_answer(segue_server *server, sgi_str answer);

#endif
