/* The creator of a task is the conversation that asked for the task (2025-11-25). After
 * the creation, messages about the task go only to this conversation. Over a byte stream
 * it is the connection. Over HTTP it is the event stream of the request while the stream
 * is open, and later the GET stream of the session, if there is one.
 *
 * A creator belongs to its operation and holds no references. When the conversation or
 * the session ends, the creator loses its pointer to it, and later messages about the
 * task are not sent. */
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
    /* this conversation did not make the task: it gets the questions of the task and no
     * other messages */
    bool only_asked;
    bool told;     /* the client has received the task */
    bool end_told; /* the client has received the final status */
    bool due;      /* the status has changed, and the client was not told yet */
} sgi_task_creator;

/* Sets the creator of the task that was made for this request. The creator becomes the
 * owner of the reply's progress token. changed: called for each visible change of the
 * status. If the operation has a creator whose client still exists, nothing changes. When
 * out of memory, the task has no creator. */
void sgi_task_creator_set(sgi_op *op, sgi_reply *reply,
                          void (*changed)(sgi_watch *watch, sgi_op *op));
/* Makes this conversation get the task's questions from now on, if the conversation that
 * made the task has gone, for example after a restart or at another server. Called when
 * the client of this conversation asks for the task. Other messages of the task are not
 * sent to it. */
void sgi_task_creator_replace_gone(sgi_op *op, sgi_peer *peer);
/* Frees the operation's creator, if there is one. */
void sgi_task_creator_free(sgi_op *op);
/* Returns the conversation on which a message about the task can be sent now. NULL =
 * there is none, or it has too much unsent output. */
sgi_conn *sgi_task_creator_conn(const sgi_op *op);
/* Returns the log level that the client wants; -1 = no log messages. */
int32_t sgi_task_creator_log_level(const sgi_op *op);

/* Remove the conversation, or the session, from all creators that point to it. Called
 * when it ends. */
void sgi_task_creators_forget_peer(sgi_peer *peer);
void sgi_task_creators_forget_session(sgi_wire_session *session);

#endif
