/* reverse: client and server with exchanged roles. In 2025-11-25 either side can run
 * tasks for the other side. So a client can have a server inside its conversation, and a
 * server can have a client inside its conversation.
 *
 *   host.c           the host of a session: a server of the application that answers
 *                    questions of the MCP server at the other end. For the host, the MCP
 *                    server is an ordinary client: it has a conversation with the host
 *                    (server/peer.h), which the session carries inside its own
 *                    conversation.
 *   question_task.c  a question that is asked as a task: a request like a client's
 *                    request (client/request.h), in a separate session, which the
 *                    server's conversation with the client carries.
 *
 * So the same code serves both directions: tasks, segments (SEP-1905), their merge,
 * cancelling, limits, and lost and resumed connections.
 *
 * This folder is above the folders client and server, which use it only through the two
 * tables below. */
#ifndef SGI_REVERSE_H
#define SGI_REVERSE_H

#include "engine/client/hosting.h"
#include "engine/input/question_task.h"

/* The two tables of functions. The engine stores them before the first session and the
 * first server are made. */
extern const sgi_question_host_ops sgi_reverse_hosting; /* in host.c */
/* in question_task.c */
extern const sgi_question_task_ops sgi_reverse_question_tasks;

#endif
