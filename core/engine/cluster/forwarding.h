/* Forwarded commands: changes that clients of this server request of an operation which
 * another server runs. The store carries a command to the owner of the operation, and
 * keeps the command until an owner has run it, even when the owner changes. A command is
 * done when its effect is in the log. Code that waits for a command (sgi_op_wait_done) is
 * called when the command is done, or after a timeout. */
#ifndef SGI_FORWARDS_H
#define SGI_FORWARDS_H

#include "base/thresholds.h"
#include "engine/cluster/cluster.h"

/* Limits of the commands that are not done, by number and by bytes: per operation and for
 * all operations together. A command of any size is sent when no other command is
 * open. */
#define SGI_FORWARDS_EACH SGI_THRESHOLD(forwards_each)
#define SGI_FORWARDS_EACH_BYTES SGI_THRESHOLD(forwards_each_bytes)
#define SGI_FORWARDS_MAX SGI_THRESHOLD(forwards_max)
#define SGI_FORWARDS_BYTES SGI_THRESHOLD(forwards_bytes)

/* Forwards a client's request to cancel the operation. On SEGUE_E_NOMEM or SEGUE_E_LIMIT
 * (too many commands are not done), nothing was sent. */
segue_status sgi_forward_cancel(sgi_op *op);
/* Forwards an answer to a question. payload: in the form of an INPUT_ANSWER entry.
 * awaited: the command is done only when the log shows that the question has its
 * answer. */
segue_status sgi_forward_answer(sgi_op *op, const char *key, sgi_str payload,
                                bool awaited);
/* True when an answer to this question was forwarded and the owner has not used the
 * answer yet. */
bool sgi_forward_has_answer(const sgi_op *op, const char *key);
/* For lasting calls (server/lasting.h): tells the owner whether the client of the call is
 * connected to this server (away false) or has gone (away true). No code waits for this
 * command. */
void sgi_forward_presence(sgi_op *op, bool away);

/* True when the command with this number, or one with a lower number, is not done. */
bool sgi_forwards_are_open(const sgi_op *op, uint64_t number);
/* Ends the commands whose effect is in the log. Called when more of the log is
 * visible. */
void sgi_forwards_end_done(sgi_op *op);
/* Drops all commands of the operation. No code waits for them any more. */
void sgi_forwards_end(sgi_op *op);

/* Calls the waiter when all changes that clients requested before this call are visible:
 * this server's entries are durable, and forwarded commands are done. SEGUE_E_TIMEOUT: a
 * command is durable, but its effect was not seen in time. SEGUE_E_FENCED: entries of
 * this server could not be written. Any other status: a command could not be stored. */
void sgi_op_wait_done(sgi_op *op, sgi_waiter *waiter);

#endif
