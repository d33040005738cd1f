/* The host of a session: a server of the application that answers what the MCP server at
 * the other end asks, where that may be a task (2025-11-25 basic/utilities/tasks: there
 * either side can be the receiver). To the host the other end is one more client: it has
 * a conversation of its own (serving/peer.h), which the session carries inside its own
 * one. So all that is served to clients, tasks, segments (SEP-1905), cancelling, what is
 * kept and what is bounded, is here by the same code.
 *
 * What goes to the host: questions that it has an item for, and tasks/... All else that
 * the server asks stays the session's (asking/asked.h), and so does all of it in other
 * revisions. */
#ifndef SGI_HOST_H
#define SGI_HOST_H

#include "engine/conn.h"

typedef struct sgi_hosting sgi_hosting;

/* Joins them; the conversation lasts as long as the session. SEGUE_E_CLOSED,
 * SEGUE_E_NOMEM. */
segue_status sgi_hosting_new(segue_session *session, segue_server *host);
void sgi_hosting_free(segue_session *session);

/* All of these do nothing, or say the obvious, for a session without a host. */

/* The host takes messages. false: the session is to wait for it, and its handshake begins
 * when it does. */
bool sgi_hosting_is_ready(segue_session *session);
/* The handshake is over: the host's conversation begins. */
void sgi_hosting_open(segue_session *session);
/* What carried it is lost, and may come again. */
void sgi_hosting_cut(segue_session *session, const char *why);
/* The session is over. */
void sgi_hosting_end(segue_session *session);
/* A request, or a notification, of the server; false: it is not for the host. */
bool sgi_hosting_takes(segue_session *session, const sgi_message *msg);
/* It is not too far behind with its answers. */
bool sgi_hosting_wants_input(const segue_session *session);
/* Over HTTP: one more message may be under way. */
void sgi_hosting_go(segue_session *session);

/* ---- what is declared (of a host, or NULL) ---- */

/* Members of capabilities.tasks: requests, cancel, list. */
void sgi_hosting_write_tasks(sgi_jw *w, const segue_server *host);
/* Members of the capabilities of initialize: what is asked, where given has it not. */
void sgi_hosting_write_questions(sgi_jw *w, const segue_server *host, sgi_json given);

#endif
