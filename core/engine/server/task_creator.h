/* The creator of a task is the conversation that asked for the task (2025-11-25).
 * Messages about the task after its creation go only to this conversation. Over a byte
 * stream it is the connection. Over HTTP it is the event stream of the request while the
 * stream is open, and later the GET stream of the session, if there is one.
 *
 * A creator belongs to its operation and has no references. When the conversation or the
 * session ends, the creator drops its pointer. Later messages about the task are not
 * sent. */
#ifndef SGI_TASK_CREATOR_H
#define SGI_TASK_CREATOR_H

#include "engine/server/peer.h"

typedef struct sgi_task_creator {
    sgi_op *op; /* the operation to which the creator belongs */
    LIST_ENTRY(sgi_task_creator) by_peer;
    LIST_ENTRY(sgi_task_creator) by_session;
    /* the peer that received the request for the task; NULL = it is gone */
    sgi_peer *peer;
    /* wire session of the request; NULL = there is none, or it is gone */
    sgi_wire_session *session;
    char *progress_token; /* JSON text or NULL; valid as long as the task */
    sgi_watch watch;
    /* this conversation did not make the task, and gets only the task's questions */
    bool only_asked;
    bool told;     /* the client has received the task */
    bool end_told; /* the client has received the final status */
    bool due;      /* the status has changed, and the change has still to be sent */
} sgi_task_creator;

/* Sets the creator of the task that was made for this request, and takes over its
 * progress token. changed: called for each visible change of the status. An operation
 * that has a living creator keeps it. When out of memory, the task has no creator. */
void sgi_task_creator_set(sgi_op *op, sgi_reply *reply,
                          void (*changed)(sgi_watch *watch, sgi_op *op));
/* Makes this conversation get the task's questions from now on, if the conversation that
 * made the task is gone, as after a restart or at another server. Called when the client
 * of this conversation has asked for the task. It gets no other messages of the task. */
void sgi_task_creator_replace_gone(sgi_op *op, sgi_peer *peer);
/* Frees the operation's creator, if there is one. */
void sgi_task_creator_free(sgi_op *op);
/* Returns the conversation on which a message about the task can be sent now; NULL =
 * there is none, or it has too much unsent output. */
sgi_conn *sgi_task_creator_conn(const sgi_op *op);
/* Returns the log level that the client wants; -1 = no log messages. */
int32_t sgi_task_creator_log_level(const sgi_op *op);

/* Remove the conversation, or the session, from the creators that refer to it, because it
 * ends. */
void sgi_task_creators_forget_peer(sgi_peer *peer);
void sgi_task_creators_forget_session(sgi_wire_session *session);

#endif
