/* Forwards answers to a plain call of another server. Such a call is not in the store, so
 * no command can be sent to its operation. Where servers share a key and a store, each
 * server has a mailbox there. A mailbox is an operation that clients cannot ask for. The
 * commands sent to the mailbox (segue_ext.h) are answers for the plain calls of its
 * server. The mailbox's id is the name of the server, which is part of the ids of the
 * server's questions (question_id.h).
 *
 * The client's POST is accepted when the answer is in the store. The receiving server
 * checks the sender and the session, as for an answer that comes to it directly. */
#ifndef SGI_MAILBOX_H
#define SGI_MAILBOX_H

#include "engine/server/peer.h"

/* Makes the mailbox of this server, if there is none. Called when a session begins here
 * that other servers can continue. */
void sgi_mailbox_create(segue_server *server);
/* True while the mailbox is being stored. Questions to clients are not sent before that
 * is done. */
bool sgi_mailbox_is_being_stored(const segue_server *server);
/* Deletes the mailbox, because this server closes. */
void sgi_mailbox_delete(segue_server *server);
bool sgi_op_is_mailbox(const sgi_op *op);
/* Replaces this server's mailbox, because another server may have claimed and deleted
 * it. */
void sgi_mailbox_replace(sgi_op *box);
void sgi_mailbox_renew(segue_server *server);
/* Deletes the mailbox of a server that has gone. This server has claimed that mailbox. */
void sgi_mailbox_delete_claimed(sgi_op *box);

/* Sends an answer to the server that asked the question. peer: the conversation that
 * brought the answer, in its session. Returns true when the POST with the answer gets its
 * status later: 202 or 503. Returns false when no such server exists, or when too many
 * answers are being sent. */
bool sgi_mailbox_forward_answer(sgi_peer *peer, const sgi_message *msg);
/* Handles an answer that another server has put into this server's mailbox.
 * SEGUE_E_NOMEM: the answer has to be read again later. */
segue_status sgi_mailbox_take_answer(segue_server *server, sgi_str answer);

#endif
