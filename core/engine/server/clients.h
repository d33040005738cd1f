/* The clients of a server, as an application sees them that watches them
 * (segue_server_watch_clients). A client is one of:
 *   - the conversation over a byte stream
 *   - a wire session
 *   - over HTTP in 2026-07-28, which has no sessions: one request subscriptions/listen
 * Such an application also sends messages to a client outside of calls.
 *
 * What the application has to be told is a mark, of the client or of a resource to which
 * the client has subscribed. So no queue grows, however fast a client changes. A server
 * whose clients nobody watches has no objects of this type. */
#ifndef SGI_CLIENTS_H
#define SGI_CLIENTS_H

#include "engine/server/question_target.h"

typedef struct sgi_client sgi_client;

segue_status sgi_clients_watch(segue_server *server, const segue_client_events *events);

/* Makes the client of a conversation or of its wire session, if the server's clients are
 * watched and the conversation has no client yet. in: the request that begins the
 * conversation. When out of memory, the conversation has no client. */
void sgi_client_begin(const sgi_inbound *in);
/* Makes the client of a session that began on another server and is continued here. */
void sgi_client_begin_session(sgi_wire_session *session);
/* Makes the client that is one request subscriptions/listen. Returns the client of the
 * conversation, if there is one, or NULL when clients are not watched. */
sgi_client *sgi_client_begin_listen(const sgi_inbound *in);
/* Ends the client: the application is told, and the calls to the client end. client: may
 * be NULL. */
void sgi_client_end(sgi_client *client);
/* Like sgi_client_end, if the client is one request subscriptions/listen. */
void sgi_client_end_listen(sgi_client *client);

/* These functions note what the client does. client: may be NULL. */
void sgi_client_note_subscription(sgi_client *client, sgi_str uri, bool subscribed);
void sgi_client_note_level(sgi_client *client);
void sgi_client_note_roots(sgi_client *client);
/* The client has sent notifications/initialized, or has opened a stream on which it reads
 * messages. Sends the questions that wait for this. */
void sgi_client_note_reading(sgi_client *client);

/* Returns the number of the client that sends requests on this conversation; 0 =
 * none. */
uint64_t sgi_peer_client_number(const sgi_peer *peer);

/* ---- what on_open gets (client_info.c) ---- */

/* Both return the JSON text that on_open gets, which the caller owns; NULL = out of
 * memory. Of a session that began on another server, only the version and the kinds of
 * questions that the client answers are known. */
char *sgi_client_info_of_request(const sgi_inbound *in, bool is_listen);
char *sgi_client_info_of_session(const sgi_wire_session *session);

/* ---- messages of the application ---- */

segue_status sgi_client_report_update(segue_server *server, uint64_t number, sgi_str uri);
segue_status sgi_client_log(segue_server *server, uint64_t number, const char *json,
                            size_t len);
/* Makes a call by which the application asks the client outside of a request. */
segue_status sgi_client_call(segue_server *server, uint64_t number, segue_call **out);

/* Finds the stream for the questions of such a call. */
bool sgi_client_question_target(const sgi_client *client, sgi_question_target *found);
/* Called when such a call is freed. */
void sgi_client_forget_op(sgi_op *op);

#endif
