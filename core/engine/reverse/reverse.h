/* reverse: client and server with exchanged roles. In 2025-11-25 either side may be the
 * receiver of a task, so here a client has a server inside its conversation, and a server
 * a client.
 *
 *   host.c   the host of a session: a server of the application that answers what the
 *            MCP server at the other end asks. The other end is an ordinary client of the
 *            host: it has a conversation of its own (server/peer.h), which the session
 *            carries inside its own one.
 *   question_task.c  a question that is asked as a task: a request like that of a client
 *            (client/request.h), in a session of its own, which the conversation of the
 *            client carries inside.
 *
 * So the same code serves both directions: tasks, segments (SEP-1905), their merge,
 * cancelling, limits, and what happens when a side goes and comes back.
 *
 * This folder is above client and server. They use it through the two tables below. */
#ifndef SGI_REVERSE_H
#define SGI_REVERSE_H

#include "engine/client/hosting.h"
#include "engine/input/question_task.h"

/* The tables of functions that the engine stores before the first session and the first
 * server are made. */
extern const sgi_hosting_ops sgi_reverse_hosting; /* in host.c */
/* in question_task.c */
extern const sgi_question_task_ops sgi_reverse_question_tasks;

#endif
