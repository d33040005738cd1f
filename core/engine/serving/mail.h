/* What a client answers to a plain call of a server that is not the one it reached. Such
 * a call is in no store, so no letter can be written to it; but where servers share a key
 * and a store, each has a mailbox there: an operation that nobody may ask for, whose
 * letters (segue_ext.h) are answers for the plain calls of its server. Its id is the name
 * of the server, which stands in the ids of their questions (question_id.h).
 *
 * The client's POST is accepted when the letter is in the store. Who brought it and in
 * which session is judged where the call is, as for an answer that comes there. */
#ifndef SGI_MAIL_H
#define SGI_MAIL_H

#include "engine/serving/peer.h"

/* A session that other servers know has begun here: the mailbox is made, once. */
void sgi_mail_open(segue_server *server);
/* It is on its way to the store: what is asked meanwhile waits for it. */
bool sgi_mail_is_opening(const segue_server *server);
/* The server goes away. */
void sgi_mail_close(segue_server *server);
bool sgi_mail_is_box(const sgi_op *op);
/* Replaces our mailbox after another server may have claimed and deleted it. */
void sgi_mail_lost(sgi_op *box);
/* One of a server that died is ours: it leaves the store. */
void sgi_mail_drop(sgi_op *box);

/* Sends an answer to the server that asked. True: the conversation that brought it is
 * ended with 202, or with 503, when that is known. False: it is for no such server, or
 * too many are on their way. The peer speaks for the session of the answer. */
bool sgi_mail_send(sgi_peer *peer, const sgi_message *msg);
/* A letter has come. SEGUE_E_NOMEM: to be read again. */
segue_status sgi_mail_read(segue_server *server, sgi_str letter);

#endif
