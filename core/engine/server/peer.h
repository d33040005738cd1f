/* The server's side of a conversation (sgi_peer), and the replies by which the server
 * answers requests later (sgi_reply). */
#ifndef SGI_PEER_H
#define SGI_PEER_H

#include "engine/conversation/sending.h"
#include "engine/log/refusal.h"
#include "engine/server/question_requests.h"
#include "engine/server/subscribed_uris.h"
#include "engine/server/server.h"

typedef struct sgi_reply sgi_reply;
typedef struct sgi_origin sgi_origin;

/* What the server remembers between the requests of a session that began with
 * `initialize`. */
typedef struct sgi_handshake {
    /* the client as the application sees it (clients.h); NULL = the application does not
     * watch clients */
    sgi_client *client;
    /* the version that initialize negotiated; SGI_VERSION_UNKNOWN = no initialize has
     * arrived */
    sgi_version version;
    bool initialized;
    /* the level that logging/setLevel has set; -1 = the client wants no log messages */
    int32_t log_level;
    /* the response modes that the client declared: a set of sgi_response_mode */
    uint8_t modes;
    /* the lists whose changes the client wants to know (subscriptions.c), as bits */
    uint8_t lists;
    /* the lists that have changed and whose change is not reported to the client yet, as
     * bits */
    uint8_t changed_lists;
    /* the kinds of questions that the client can answer: a set of sgi_cap */
    uint32_t caps;
    /* the declarations of the client to the dialects (dialects.h): a set of
     * sgi_declared_bit */
    uint8_t declared;
} sgi_handshake;

/* The unanswered requests of one client, in all exchanges of the client. */
typedef struct sgi_in_flight {
    /* the replies (sgi_reply); the key is the id of the request */
    sgi_map by_id;
    /* replies that are not in by_id, because another request with the same id can be in
     * flight */
    LIST_HEAD(, sgi_reply) out_of_table;
} sgi_in_flight;

struct sgi_peer {
    segue_server *server; /* a counted reference */
    sgi_conn *conn;       /* a counted reference */
    TAILQ_ENTRY(sgi_peer) link;
    sgi_principal *who;
    /* the requests in flight: the table of the wire session, or own_in_flight without a
     * session */
    sgi_in_flight *in_flight;
    sgi_in_flight own_in_flight;
    LIST_HEAD(, sgi_reply) replies;
    sgi_buf id_text; /* the canonical id of the request that the server is handling */
    int32_t stream_count;
    /* the handshake of the wire session, or own_handshake without a session */
    sgi_handshake *handshake;
    sgi_handshake own_handshake;
    /* the questions of the wire session, or own_questions without a session */
    sgi_question_requests *questions;
    sgi_question_requests own_questions;
    /* the peer reads messages: recovery has ended and the principal is known */
    bool reading;
    /* queues the callback in which the application names the principal */
    sgi_ready_object ready;
    /* the open subscriptions/listen requests of this conversation (subscriptions.c) */
    LIST_HEAD(, sgi_listen) listens;
    LIST_HEAD(, sgi_task_creator) creators; /* task_creator.c */
    /* the resources that the client has subscribed to; NULL = no resource (updates.c) */
    sgi_subscribed_uris *uris;
    /* the source that sends notifications about updated resources */
    sgi_output_source updates;
    /* the lasting calls (their clients can leave and come back) whose messages are sent,
     * or were last sent, on this conversation */
    LIST_HEAD(, sgi_lasting_call) lasting;
    /* the tag of a lasting call (its client can leave and come back), from the request's
     * Last-Event-ID; "" = the id names no such call */
    char after_tag[9];
    /* the position, in the log of the lasting call that after_tag names, from the
     * request's Last-Event-ID */
    uint64_t after_seq;

    /* the other end is an MCP server that asks questions, and this server is the host
     * that answers them (engine/reverse) */
    bool is_host;

    /* True for an exchange over HTTP. The members below are used only for an exchange. */
    bool is_exchange;
    /* the client is on another machine and has no principal, so the client gets no
     * tasks */
    bool stranger;
    bool ending;         /* the listener closes, so the exchange begins no new work */
    int32_t max_streams; /* maximum number of open streams of each principal */
    /* the rights (grant) that the request's access token gives, a counted reference; NULL
     * = the request has no access token */
    sgi_grant *grant;
    /* what handlers learn of the request of the exchange (origin.h), a counted reference;
     * NULL = there is no such request */
    sgi_origin *origin;
    /* the message of the exchange is an answer to a question, and the POST can get its
     * status later */
    bool is_post_of_answer;
    /* the exchange is a GET and counts as a stream of its principal */
    bool got;
    /* the wire session of the exchange, in versions that begin with `initialize`; not a
     * counted reference */
    sgi_wire_session *session;
    TAILQ_ENTRY(sgi_peer) by_session;
    /* number of bytes that sessions.parked_bytes counts for this exchange while no
     * transport carries it (parked) */
    size_t parked_bytes;
    /* number of the first event that is made after the last transport has left the
     * exchange */
    uint64_t left_at;
    /* monotonic time in ms at which the newest part of the answers was made that the
     * client gets when it comes back; 0 = no part was made while it was away */
    int64_t rest_ms;
    /* the time in ms after which the client was asked to come back; 0 = it was not
     * asked */
    int64_t retry_ms;
    /* For a GET stream that was opened again: numbers of events that the client has
     * missed, because it named no event id or the replay no longer had the events. The
     * events up to missed_after and from read_from on are not missed. */
    uint64_t missed_after, read_from;
};

/* One request as it was received. The JSON members are views into the message. */
typedef struct sgi_inbound {
    sgi_peer *peer;
    /* canonical form of the request's id; the peer owns the text */
    sgi_json id;
    sgi_json params;           /* the params: a JSON object, or empty */
    sgi_json meta;             /* the member _meta of params, or empty */
    sgi_json name, arguments;  /* the members name and arguments of params */
    sgi_json task;             /* the member task of params, in 2025-11-25 */
    sgi_json state, responses; /* the members requestState and inputResponses of params */
    sgi_json protocol, capabilities, level, progress, key; /* members of _meta */
    /* the members allowPartial (`partial`) and partialResultToken (`token`) of _meta */
    sgi_json partial, token;
    sgi_version version;
    /* the capabilities that the client has declared for this request: a set of sgi_cap */
    uint32_t caps;
    /* index of the lowest level of log messages; -1 = the client wants no log messages */
    int32_t log_level;
    /* what the application has said about the items that the caller sees (shown.h); NULL
     * = it was not asked */
    const struct sgi_shown *shown;
} sgi_inbound;

/* Says whether a reply is in the table of requests in flight. A client can repeat a
 * request under the same id while the earlier request is still in flight, to get the
 * answer again. The reply of the repeated request is OUT_OF_TABLE until the server has
 * checked that the request is valid. */
typedef enum sgi_reply_state {
    SGI_REPLY_IN_TABLE = 0, /* the reply is in the table, under its id */
    SGI_REPLY_OUT_OF_TABLE,
    /* the reply is not in the table, and the client has cancelled its request */
    SGI_REPLY_CANCELLED_OUT_OF_TABLE
} sgi_reply_state;

/* A request that is answered later. The code that answers the request owns the reply and
 * must end the reply by sgi_reply_close. If the client cancels the request or goes away
 * before that, `cancelled` is called (unless `cancelled` is NULL). From then on messages
 * on this reply reach no client; the owner must still close the reply. */
struct sgi_reply {
    sgi_map_node node;
    /* link in the list out_of_table of in_flight */
    LIST_ENTRY(sgi_reply) out_of_table_link;
    LIST_ENTRY(sgi_reply) by_peer;
    /* the peer that sent the request; NULL = the request was cancelled, or the
     * conversation is lost */
    sgi_peer *peer;
    sgi_engine *engine;
    /* canonical JSON text of the request's id; points to id_room when the text is short
     * enough */
    char *id;
    char id_room[24];
    /* JSON text of the progress token; NULL = the client wants no progress */
    char *progress_token;
    sgi_reply_state state;
    /* the level that the request itself names, in 2026-07-28; see sgi_reply_log_level */
    int32_t own_log_level;
    sgi_version version; /* the protocol version of the request */
    bool is_stream;
    /* The client knows another request that returns the rest of this answer, or no client
     * can ask for the operation any more. So the reply can be dropped while no transport
     * carries its exchange. */
    bool spare;
    /* the operation has ended; the rest of the answer is sent while the client reads */
    bool complete;
    /* the client may have received pieces that were replaced later, so the answer must
     * name replaced segments */
    bool tells_void;
    /* the reason why `cancelled` is called: true = the conversation is lost, false = the
     * client has cancelled the request */
    bool lost;
    void (*cancelled)(sgi_reply *reply);
    /* called when the first turn of the handler is over (on_call has returned, or the
     * handler has ended its turn); NULL = no call */
    void (*turned)(sgi_reply *reply, sgi_op *op);
    /* called when the operation for which the reply waits has ended or could not be
     * created; see sgi_reply_await_end */
    void (*ended)(sgi_reply *reply, sgi_op *op, segue_status status);
    /* called when the transport has left the conversation, perhaps only for a time; NULL
     * = no call */
    void (*parked)(sgi_reply *reply);
    void *user;
    /* waits for a position of an operation's log; only the owner of the reply uses the
     * waiter */
    sgi_waiter waiter;
    /* the pieces by which a growing result is sent; NULL = the reply sends no pieces */
    struct sgi_pieces *pieces;
    /* the lasting call (its client can leave and come back) whose messages are sent on
     * this reply; NULL = no lasting call */
    struct sgi_lasting_call *lasting;
    /* the progress and the log message that wait for room in the output (late_notes.h);
     * NULL = none has waited */
    struct sgi_late_notes *late;
};

/* Makes a peer and its conversation, and adds the peer to the server's list. who: the
 * principal, to which the peer adds a reference; NULL = the principal is not known yet.
 * Returns NULL when out of memory. */
sgi_peer *sgi_peer_new(segue_server *server, void *transport, sgi_principal *who);
/* Lets the peer handle requests from now on. Called when recovery has ended and the
 * principal is known. */
void sgi_peer_open(sgi_peer *peer);
void sgi_peer_close(sgi_peer *peer);
/* Frees the peer. Called when the conversation drops its reference to the peer. */
void sgi_peer_free(sgi_peer *peer);

void sgi_in_flight_init(sgi_in_flight *in_flight, sgi_engine *engine);

/* Returns the canonical form of an id, or an empty text when out of memory. The text is
 * valid until the next call of this function. */
sgi_str sgi_peer_canonical_id(sgi_peer *peer, sgi_json id);

/* True when the caller may see all tasks of its principal. All callers without a name
 * share one principal. Over the standard input and output of this process there is one
 * caller: the user who runs the process and owns its store. In a conversation that has no
 * session, the principal function of the application decides: its callers without a name
 * share one list. */
static inline bool sgi_peer_is_known(const sgi_peer *peer)
{
    return peer->who->name || peer->conn->sole ||
           (!peer->session && peer->server->options.principal);
}

/* True when the caller can list its tasks. A caller without a name can list those that
 * its wire session made (session_mark.h), and not those of other callers without a
 * name. */
static inline bool sgi_peer_may_list_tasks(const sgi_peer *peer)
{
    return peer->server->lists && (sgi_peer_is_known(peer) || peer->session);
}

/* True when the server ensures that a call with an idempotency key runs only once. The
 * server cannot ensure this when it serves the standard input and output of this process
 * and keeps its keys only in memory: after a crash, the client meets a new process that
 * does not know the keys (R-2557-11). */
static inline bool sgi_peer_keeps_keys(const sgi_peer *peer)
{
    return peer->server->idempotency && !(peer->server->forgets && peer->conn->sole);
}

/* ---- reply.c ---- */

/* Makes the reply of a request. Returns NULL when out of memory or over a limit; the
 * error has then been sent. */
sgi_reply *sgi_reply_open(const sgi_inbound *in, bool is_stream);
/* Like sgi_reply_open, for a request that begins an operation. The limits of bytes apply
 * only to such a request. */
sgi_reply *sgi_reply_open_call(const sgi_inbound *in);
/* sgi_reply_open_out_of_table makes the reply of a request whose id can be the id of a
 * request in flight. This reply is not in the table. sgi_reply_put_in_flight adds the
 * reply to the table later, and returns false when the table already has the id. */
sgi_reply *sgi_reply_open_out_of_table(const sgi_inbound *in);
bool sgi_reply_put_in_flight(sgi_reply *reply);
/* sgi_reply_remove_from_flight removes the reply from its peer's table of requests in
 * flight. sgi_reply_add_to_flight adds the reply to the given table. */
void sgi_reply_remove_from_flight(sgi_reply *reply);
void sgi_reply_add_to_flight(sgi_reply *reply, sgi_in_flight *in_flight);
/* Returns the index of the lowest level of log messages for this reply; -1 = the client
 * wants none. Before 2026-07-28 the level belongs to the session, and can change while a
 * request runs. */
int32_t sgi_reply_log_level(const sgi_reply *reply);
/* Omits the id in all messages of this reply from now on. Allowed only for a reply that
 * is not in the table and is never added to the table. */
void sgi_reply_leave_id_out(sgi_reply *reply);
void sgi_reply_close(sgi_reply *reply);
/* Cancels a reply, because the client has gone or does not want the answer any more. */
void sgi_reply_cancel(sgi_reply *reply);

/* If the listener is closing (wire/ending.h), refuses the request and returns true.
 * Otherwise returns false. */
bool sgi_refuse_when_ending(const sgi_inbound *in);
/* Answers the request with an error at once. */
void sgi_answer_error(const sgi_inbound *in, int32_t code, const char *message,
                      const char *data);
/* Sends an error for an item or argument that does not exist. `which` is the name that
 * the client sent; the message contains it, and the data are {"<member>":"<which>"}. If
 * `member` is NULL, the error has no data. */
void sgi_refuse_unknown_name(const sgi_inbound *in, int32_t code, const char *why,
                             const char *member, sgi_str which);
/* Writes the error message "<why>: <which>", where `which` is a name that the client
 * sent. A long name is shortened. If `why` already contains the name, only `why` is
 * written. */
void sgi_write_unknown_name(sgi_buf *message, sgi_str why, sgi_str which);
/* Begins a result, and writes resultType if the version has this member. sgi_send_end
 * ends the result. */
void sgi_answer_begin_result(sgi_sending *sending, const sgi_inbound *in,
                             const char *result_type);
/* Writes the member _meta with serverInfo. In a result of 2026-07-28, _meta must be the
 * last member. */
void sgi_write_server_info_meta(sgi_sending *sending, segue_server *server);

/* Begin a result or a notification on a reply. Both functions return false and begin
 * nothing when the client is no longer connected. */
bool sgi_reply_begin_result(sgi_sending *sending, sgi_reply *reply,
                            const char *result_type);
bool sgi_reply_begin_notification(sgi_sending *sending, sgi_reply *reply,
                                  const char *method);
void sgi_reply_error(sgi_reply *reply, int32_t code, sgi_str message, sgi_json data);
/* Sends the error of a server that is about to end (wire/ending.h) as the answer on the
 * reply. */
void sgi_reply_ending(sgi_reply *reply);
/* Sends error -32603 as the answer on the reply, because the store failed. */
void sgi_reply_store_error(sgi_reply *reply, sgi_store_failure failure,
                           segue_status status);
/* Sends error -32603 as the answer on a reply that requested a change of the operation
 * (an answer or a cancel). The error tells the client to send the request again, unless
 * the operation itself could not be stored. */
void sgi_reply_refuse_change(sgi_reply *reply, const sgi_op *op, segue_status status);

/* Counts a failed look-up of a task and answers with the error "not found" as R-0-5
 * requires. */
void sgi_answer_not_found(sgi_reply *reply, const char *message);
/* Counts a request for segments by number (lastSeqNr). Returns true when there were too
 * many such requests; the reply has then been answered and closed. */
bool sgi_answer_if_rate_limited(sgi_reply *reply);

/* ---- methods ---- */

typedef struct sgi_method {
    const char *name;
    /* the capabilities (sgi_cap) that a client of 2026-07-28 must have declared to use
     * the method */
    uint32_t caps;
    void (*run)(const sgi_inbound *in);
} sgi_method;

/* ---- era_modern.c, era_legacy.c ---- */
uint32_t sgi_read_caps(sgi_json capabilities);
/* Writes "capabilities":{...} for the result of server/discover (2026-07-28) or of
 * initialize. */
void sgi_write_capabilities(sgi_jw *w, const sgi_inbound *in);
void sgi_handle_modern_request(sgi_inbound *in, sgi_str method);
void sgi_handle_legacy_request(sgi_inbound *in, sgi_str method);

/* lists.c */
void sgi_tools_list(const sgi_inbound *in);
void sgi_resources_list(const sgi_inbound *in);
void sgi_templates_list(const sgi_inbound *in);
void sgi_prompts_list(const sgi_inbound *in);
/* item_calls.c */
void sgi_resources_read(const sgi_inbound *in);
void sgi_prompts_get(const sgi_inbound *in);
void sgi_completion_complete(const sgi_inbound *in);
/* Returns the method of this name for items other than tools. Returns NULL when there is
 * no such method, or when the server never had an item of the method's type. */
const sgi_method *sgi_item_find_method(const segue_server *server, sgi_version version,
                                       sgi_str name);
/* tool_call.c */
void sgi_tools_call(const sgi_inbound *in);
/* question.c: returns the method by which a host (engine/reverse) answers a question of
 * this name. Returns NULL when the name is not the name of a question, or when the
 * application does not answer such questions. */
const sgi_method *sgi_question_find_method(const segue_server *server, sgi_str name);
/* call_wait.c: makes the reply wait for the end of an operation. If this is the first
 * reply of the operation, cancelling the reply also cancels the operation. */
void sgi_reply_wait_for_op(sgi_reply *reply, sgi_op *op);
/* call_replies.c */
/* Makes the reply wait for the end of the operation. `ended` runs when the operation has
 * ended or could not be created. */
void sgi_reply_await_end(sgi_reply *reply, sgi_op *op,
                         void (*ended)(sgi_reply *reply, sgi_op *op,
                                       segue_status status));
/* Returns the operation whose end the reply waits for, or NULL when the reply does not
 * wait. */
sgi_op *sgi_reply_awaited_op(const sgi_reply *reply);
/* Returns a reply that waits for the end of the operation and that can be answered with a
 * round (an answer that asks questions). Returns NULL when there is no such reply. */
sgi_reply *sgi_call_find_round_reply(const sgi_op *op);
/* Returns the error code of "Resource not found" for the call, by the version of its
 * reply. Without a reply, returns the code of the newest version. */
int32_t sgi_call_not_found_code(const sgi_op *op);
/* Returns a reply whose stream can carry a request of this operation to the client. There
 * are such replies only in versions that begin with `initialize`. before: the previously
 * returned reply; NULL = return the first such reply. Returns NULL at the end. */
const sgi_reply *sgi_call_find_stream_reply(const sgi_op *op, const sgi_reply *before);
/* Returns the newest reply that waits for the end of the operation and that a transport
 * carries; NULL = no such reply. */
sgi_reply *sgi_call_find_carried_reply(const sgi_op *op);
/* Closes the connections of clients that wait for the end of an operation that this
 * server will not answer. The clients then ask another server. */
void sgi_call_cut_connections(sgi_op *op);
/* Notes that the client of this reply is sent the end of the operation. Does nothing
 * while the end is not visible. */
void sgi_reply_note_end_sent(const sgi_reply *reply, sgi_op *op);
/* Separates an answered reply from its operation. Cancelling the reply no longer cancels
 * the operation, and the operation sends no more progress on the reply. */
void sgi_reply_separate_from_op(sgi_reply *reply, sgi_op *op);
/* subscriptions.c */
void sgi_subscriptions_listen(const sgi_inbound *in);
void sgi_subscriptions_close(sgi_peer *peer);
/* Reports to all clients that the list of items of this type (segue_item) has changed. */
void sgi_items_report_changed(segue_server *server, int32_t type);
/* Reports to a client which lists have changed, in versions that begin with `initialize`.
 * Returns false when the client is no longer connected. */
bool sgi_lists_report_changes(sgi_peer *peer);
/* Returns the lists that the server has, as bits; sgi_handshake.lists uses the same
 * bits. */
uint8_t sgi_lists_served(const segue_server *server);
/* Reports a change of this resource to the subscriptions of the peer that name the
 * resource. */
void sgi_subscriptions_report_update(sgi_peer *peer, sgi_str uri);
/* updates.c */
void sgi_resources_subscribe(const sgi_inbound *in);
void sgi_resources_unsubscribe(const sgi_inbound *in);
void sgi_resource_report_updated(segue_server *server, sgi_str uri);
/* Lets the peer send updates from now on. Called when the client has sent
 * notifications/initialized. */
void sgi_updates_allow(sgi_peer *peer);
/* Reports everything that the client subscribed to as changed. Called when the client may
 * have missed notifications. A client that missed none reads again what it knows. */
void sgi_updates_repeat(sgi_peer *peer);
/* Sends the updates that the server held back while the client could not receive them. */
void sgi_updates_send_missed(sgi_peer *peer);
bool sgi_updates_fill(sgi_output_source *source, size_t room);

#endif
