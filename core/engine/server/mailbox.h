/* Forwards an answer to another server that asked the question in a plain call. A plain
 * call is not in the store, so the answer cannot be a command to the operation of the
 * call. When servers share a key and a store, each server has a mailbox in the store: an
 * operation that clients cannot find. The commands to a mailbox (segue_ext.h) are answers
 * for the plain calls of its server. The id of the mailbox is the name of the server. The
 * ids of the server's questions contain this name (question_id.h).
 *
 * The client's POST is accepted when the answer is in the store. The server that asked
 * the question then checks the sender and the session of the answer, as for an answer
 * that its own client sends. */
#ifndef SGI_MAILBOX_H
#define SGI_MAILBOX_H

#include "engine/server/peer.h"

/* Makes the mailbox of this server, to which other servers send answers, unless the
 * server has a mailbox. Called when a session begins that other servers can continue. */
void sgi_mailbox_create(segue_server *server);
/* True while the creation of the mailbox is not durable. During that time the server
 * sends no questions to clients. */
bool sgi_mailbox_is_being_stored(const segue_server *server);
/* Deletes the mailbox, because this server closes. */
void sgi_mailbox_delete(segue_server *server);
bool sgi_op_is_mailbox(const sgi_op *op);
/* Replaces this server's mailbox, because another server may have claimed the old one and
 * deleted it. */
void sgi_mailbox_replace(sgi_op *box);
void sgi_mailbox_renew(segue_server *server);
/* Deletes the mailbox of a server that has gone. Called when this server has claimed that
 * mailbox. */
void sgi_mailbox_delete_claimed(sgi_op *box);

/* Forwards an answer to the server that asked the question. peer: the conversation on
 * which the client sent the answer. Returns true when the answer is being forwarded; if
 * `awaited` is true, the POST then gets its status, 202 or 503, later. Returns false when
 * the answer is not for another server, when too many answers are being forwarded, or
 * when out of memory. */
bool sgi_mailbox_forward_answer(sgi_peer *peer, const sgi_message *msg, bool awaited);
/* Handles an answer that another server has put into this server's mailbox. Returns
 * SEGUE_E_NOMEM when the answer must be handled again later. */
segue_status sgi_mailbox_take_answer(segue_server *server, sgi_str answer);

#endif
