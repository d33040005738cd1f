/* The creator of a task of 2025-11-25 is the conversation that asked for the task. After
 * the creation, messages about the task go only to this conversation. Over a byte stream,
 * the messages use the connection. Over HTTP, the messages use the event stream of the
 * request while this stream is open, and later the GET stream of the session, if the
 * session has a GET stream.
 *
 * A creator belongs to its operation and holds no references. When the conversation or
 * the session ends, the creator's pointer to it becomes NULL, and later messages about
 * the task are not sent. */
#ifndef SGI_TASK_CREATOR_H
#define SGI_TASK_CREATOR_H

#include "engine/server/peer.h"

typedef struct sgi_task_creator {
    sgi_op *op; /* the operation to which the creator belongs */
    LIST_ENTRY(sgi_task_creator) by_peer;
    LIST_ENTRY(sgi_task_creator) by_session;
    /* the peer that received the request for the task; NULL = the peer was freed */
    sgi_peer *peer;
    /* wire session of the request for the task; NULL = the request had no session, or the
     * session has ended */
    sgi_wire_session *session;
    /* JSON text of the progress token of the request; NULL = the client wants no
     * progress */
    char *progress_token;
    sgi_op_watch watch;
    /* this conversation did not make the task; it gets only the questions of the task */
    bool only_asked;
    bool told;     /* the client has received the answer with the task */
    bool end_told; /* the client has received the final status of the task */
    /* the status has changed, and the change is not reported to the client yet */
    bool due;
} sgi_task_creator;

/* Sets the creator of the task that was made for the reply's request. The creator becomes
 * the owner of the reply's progress token. changed: called for each visible change of the
 * status. Does nothing when the operation has a creator whose client still exists. When
 * out of memory, the task has no creator. */
void sgi_task_creator_set(sgi_op *op, sgi_reply *reply,
                          void (*changed)(sgi_op_watch *watch, sgi_op *op));
/* Lets this conversation get the task's questions from now on, if the conversation that
 * made the task has gone, for example after a restart or on another server. Called when
 * the client of this conversation asks for the task. The conversation gets no other
 * messages of the task. */
void sgi_task_creator_replace_gone(sgi_op *op, sgi_peer *peer);
/* Frees the operation's creator. Does nothing when there is no creator. */
void sgi_task_creator_free(sgi_op *op);
/* Returns the conversation on which a message about the task can be sent now. Returns
 * NULL when there is no such conversation, or when it has too much unsent output. */
sgi_conn *sgi_task_creator_conn(const sgi_op *op);
/* Returns the index of the lowest level of log messages that the creator's client wants;
 * -1 = no log messages. */
int32_t sgi_task_creator_log_level(const sgi_op *op);

/* Called when a conversation or a session ends: removes the pointers to it from all
 * creators. */
void sgi_task_creators_forget_peer(sgi_peer *peer);
void sgi_task_creators_forget_session(sgi_wire_session *session);

#endif
