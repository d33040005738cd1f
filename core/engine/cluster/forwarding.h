/* Forwarded commands: changes that clients of this server request of an operation which
 * another server runs. The store carries a command to the owner of the operation, and
 * keeps the command until an owner has run it, even if the owner changes. A command is
 * done when its effect is in the log. A waiter (sgi_op_wait_for_requested_changes) is
 * called when the command is done, or after a timeout. */
#ifndef SGI_FORWARDS_H
#define SGI_FORWARDS_H

#include "base/thresholds.h"
#include "engine/cluster/cluster.h"

/* Limits of the commands that are not done: the maximum number and the maximum bytes, for
 * each operation and for all operations together. While no other command is open, a
 * command of any size is sent. */
#define SGI_FORWARDS_EACH SGI_THRESHOLD(forwards_each)
#define SGI_FORWARDS_EACH_BYTES SGI_THRESHOLD(forwards_each_bytes)
#define SGI_FORWARDS_MAX SGI_THRESHOLD(forwards_max)
#define SGI_FORWARDS_BYTES SGI_THRESHOLD(forwards_bytes)

/* Forwards a client's request to cancel the operation. Returns SEGUE_E_NOMEM when out of
 * memory, SEGUE_E_LIMIT when too many commands are not done, and SEGUE_E_STORE when this
 * server has let go of the operation; in these cases nothing was sent. */
segue_status sgi_forward_cancel(sgi_op *op);
/* Forwards an answer to a question. payload: the answer in the form of an INPUT_ANSWER
 * entry. awaited = true: the command is done when the log shows the answer. awaited =
 * false: the command is done when it is durable. */
segue_status sgi_forward_answer(sgi_op *op, const char *key, sgi_str payload,
                                bool awaited);
/* True when an answer to this question was forwarded and the answer is not in the log
 * yet. Stays true for a pause after the store could not take the answer. */
bool sgi_question_answer_is_being_forwarded(const sgi_op *op, const char *key);
/* For a lasting call, whose client can leave and come back (server/lasting.h): sends the
 * owner a command that says whether the client of the call is connected to this server
 * (away = false) or has gone (away = true). attached_at: position up to which this server
 * had read the log when the client came. No code waits for this command. */
void sgi_forward_presence(sgi_op *op, bool away, uint64_t attached_at);

/* True when a command with this number or a lower number is not done. */
bool sgi_forwards_are_open(const sgi_op *op, uint64_t number);
/* Ends the commands whose effect is in the log. Called when more entries of the log have
 * become visible. */
void sgi_forwards_end_done(sgi_op *op);
/* Drops all commands of the operation. The caller ensures that no code waits for them. */
void sgi_forwards_drop_all(sgi_op *op);

/* Calls the waiter when all changes that clients requested before this call are visible:
 * the entries of this server are durable, and the forwarded commands are done. The waiter
 * gets SEGUE_E_TIMEOUT when a command is durable and its effect was not seen in time,
 * SEGUE_E_FENCED when entries of this server could not be written, and any other status
 * when a command could not be stored. */
void sgi_op_wait_for_requested_changes(sgi_op *op, sgi_waiter *waiter);

#endif
