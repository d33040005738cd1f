/* The server's side of a conversation (sgi_peer): its requests in flight, the era of each
 * request, and the replies by which requests are answered later (sgi_reply). */
#ifndef SGI_PEER_H
#define SGI_PEER_H

#include "engine/conversation/sending.h"
#include "engine/server/question_requests.h"
#include "engine/server/subscribed_uris.h"
#include "engine/server/server.h"

typedef struct sgi_reply sgi_reply;

/* What a session of the handshake eras keeps from one request to the next. */
typedef struct sgi_handshake {
    /* the version that initialize negotiated; UNKNOWN = initialize has not come yet */
    sgi_version version;
    bool initialized;
    /* set by logging/setLevel; -1 = the client wants no log messages */
    int32_t log_level;
    /* the response modes that the client declared: a set of sgi_response_mode */
    uint8_t modes;
    /* the lists whose changes the client wants to know (subscriptions.c) */
    uint8_t lists;
    /* the lists that have changed since the client was told about them last */
    uint8_t changed_lists;
    /* the kinds of questions that the client can be asked: a set of sgi_cap */
    uint32_t caps;
    /* what the client has declared to the dialects (dialects.h): a set of
     * sgi_declared_bit */
    uint8_t declared;
} sgi_handshake;

/* The requests of one client that have no answer yet, in all of its exchanges. */
typedef struct sgi_in_flight {
    /* the replies (sgi_reply) by the ids of their requests */
    sgi_map by_id;
    /* replies that are not in by_id, because another request with the same id may be in
     * flight */
    LIST_HEAD(, sgi_reply) out_of_table;
} sgi_in_flight;

struct sgi_peer {
    segue_server *server; /* a counted reference */
    sgi_conn *conn;       /* a counted reference */
    TAILQ_ENTRY(sgi_peer) link;
    sgi_principal *who;
    sgi_in_flight *in_flight; /* the session's table, or own_in_flight */
    sgi_in_flight own_in_flight;
    LIST_HEAD(, sgi_reply) replies;
    sgi_buf id_text; /* canonical id of the request that is being handled */
    int32_t stream_count;
    sgi_handshake *handshake; /* the session's handshake, or own_handshake */
    sgi_handshake own_handshake;
    /* the session's table of questions, or own_questions */
    sgi_question_requests *questions;
    sgi_question_requests own_questions;
    /* the peer reads messages: recovery has ended and the principal is known */
    bool reading;
    /* queues the callback by which the application names the principal */
    sgi_ready ready;
    /* the subscriptions of this conversation (subscriptions.c) */
    LIST_HEAD(, sgi_listen) listens;
    LIST_HEAD(, sgi_task_creator) creators; /* task_creator.c */
    /* the resources that the client has subscribed to, or NULL (updates.c) */
    sgi_subscribed_uris *uris;
    sgi_source updates; /* sends notifications about updated resources */
    /* the lasting calls whose channel is on this conversation, or whose last channel
     * was */
    LIST_HEAD(, sgi_lasting) lasting;
    /* tag of the lasting call in the Last-Event-ID of the request; "" = none */
    char after_tag[9];
    /* position in the log of that call, from the same Last-Event-ID */
    uint64_t after_seq;

    /* the client serves as a host: the other end is an MCP server that asks questions */
    bool is_host;

    /* The following members are used for an HTTP exchange. */
    bool is_exchange;
    /* the client is on another machine and has no principal: it gets no tasks */
    bool stranger;
    bool ending;         /* the listener closes: no new work is begun */
    int32_t max_streams; /* limit of open streams for each principal */
    /* grant of the access token of the request; a counted reference, or NULL */
    sgi_grant *grant;
    /* a GET carries the exchange: the exchange counts as a stream of its principal */
    bool got;
    /* handshake eras: the wire session of the exchange; a pointer without a reference */
    sgi_wire_session *session;
    TAILQ_ENTRY(sgi_peer) by_session;
    /* number of bytes of this exchange in sessions.parked_bytes while it is parked */
    size_t parked_bytes;
    /* number of the next event at the time when the last transport left the exchange */
    uint64_t left_at;
    /* for a GET stream that was opened again without an event id: number of the first
     * event that its client can have received */
    uint64_t read_from;
};

/* One request as it was received. The members are views into the message. */
typedef struct sgi_inbound {
    sgi_peer *peer;
    sgi_json id;               /* canonical id; its text belongs to the peer */
    sgi_json params;           /* an object, or empty */
    sgi_json meta;             /* params._meta, or empty */
    sgi_json name, arguments;  /* the members name and arguments of params */
    sgi_json task;             /* params.task of 2025-11-25 */
    sgi_json state, responses; /* the members requestState and inputResponses of params */
    sgi_json protocol, capabilities, level, progress, key; /* members of _meta */
    /* the members allowPartial and partialResultToken of _meta */
    sgi_json partial, token;
    sgi_version version;
    /* what the client has declared for this request: a set of sgi_cap */
    uint32_t caps;
    int32_t log_level; /* index of the level; -1 = the client wants no log messages */
} sgi_inbound;

/* Whether a reply is in the table of requests in flight. A client may repeat a request
 * under the same id while the earlier request is still in flight, in order to get the
 * answer again. The reply of the repeated request is OUT_OF_TABLE until the request is
 * found to be valid. */
typedef enum sgi_reply_state {
    SGI_REPLY_IN_TABLE = 0, /* the reply is in the table, under its id */
    SGI_REPLY_OUT_OF_TABLE,
    /* the reply is not in the table, and the client has cancelled its request */
    SGI_REPLY_CANCELLED_OUT_OF_TABLE
} sgi_reply_state;

/* A request that is answered later. The code that answers the request owns the reply and
 * ends it by sgi_reply_close. If the client cancels the request or goes away before,
 * `cancelled` is called (unless NULL). From then on messages on this reply reach no
 * client, and the owner must still close the reply. */
struct sgi_reply {
    sgi_map_node node;
    LIST_ENTRY(sgi_reply)
    out_of_table_link; /* link in the list in_flight->out_of_table */
    LIST_ENTRY(sgi_reply) by_peer;
    sgi_peer *peer; /* NULL = the request was cancelled, or the conversation is lost */
    sgi_engine *engine;
    /* canonical JSON text of the request's id; points to id_room when the text fits
     * there */
    char *id;
    char id_room[24];
    char *progress_token; /* JSON text or NULL */
    sgi_reply_state state;
    int32_t log_level;
    sgi_version version; /* the version of the request */
    bool is_stream;
    /* the client may have received pieces that were replaced later, so the answer must
     * say so */
    bool tells_void;
    /* why `cancelled` is called: true = the conversation is lost, false = the client has
     * cancelled */
    bool lost;
    void (*cancelled)(sgi_reply *reply);
    /* called when the first turn of the handler is over; may be NULL */
    void (*turned)(sgi_reply *reply, sgi_op *op);
    /* called when the operation for which the reply waits has ended or could not be
     * created; see sgi_call_await */
    void (*ended)(sgi_reply *reply, sgi_op *op, segue_status status);
    /* called when no transport carries the conversation any more, perhaps only for a
     * time; may be NULL */
    void (*parked)(sgi_reply *reply);
    void *user;
    /* for the owner of the reply: waits for a part of the log of an operation */
    sgi_waiter waiter;
    /* the pieces of the result that are sent while the result grows; NULL = none */
    struct sgi_pieces *pieces;
    /* the lasting call whose channel this reply is, or NULL */
    struct sgi_lasting *lasting;
};

/* Makes a peer and its conversation, and adds the peer to the server's list. who: the
 * principal, to which the peer adds a reference; NULL = the principal is not known yet.
 * Returns NULL when out of memory. */
sgi_peer *sgi_peer_new(segue_server *server, void *transport, sgi_principal *who);
/* Lets the peer handle requests from now on. Called when recovery has ended. */
void sgi_peer_open(sgi_peer *peer);
void sgi_peer_close(sgi_peer *peer);
/* Frees the peer. Called when its conversation drops its reference. */
void sgi_peer_free(sgi_peer *peer);

void sgi_in_flight_init(sgi_in_flight *in_flight, sgi_engine *engine);

/* Returns the canonical form of an id; empty when out of memory. The text is valid until
 * the next call of this function. */
sgi_str sgi_peer_id(sgi_peer *peer, sgi_json id);

/* True when the caller may list its tasks. This requires a principal with a name: callers
 * without a name share one principal and would see each other's tasks. */
static inline bool sgi_peer_may_list_tasks(const sgi_peer *peer)
{
    return peer->server->lists && (peer->server->options.principal || peer->grant);
}

/* True when a call with an idempotency key runs only once. False when the server cannot
 * promise this: its client uses the standard input and output of this process and its
 * keys are only in memory. After a loss, that client meets a new process, which does not
 * know the keys (R-2557-11). */
static inline bool sgi_peer_keeps_keys(const sgi_peer *peer)
{
    return peer->server->idempotency && !(peer->server->forgets && peer->conn->sole);
}

/* ---- reply.c ---- */

/* Makes the reply of a request. Returns NULL when out of memory or over a limit; the
 * error has then been sent. */
sgi_reply *sgi_reply_open(const sgi_inbound *in, bool is_stream);
/* Like sgi_reply_open, for a request that begins an operation, so that the limits of
 * bytes apply. */
sgi_reply *sgi_reply_open_call(const sgi_inbound *in);
/* sgi_reply_open_out_of_table makes the reply of a request that may have the id of a
 * request in flight. The reply stays out of the table. sgi_reply_put_in_flight puts it
 * into the table later, and returns false when the table has the id. */
sgi_reply *sgi_reply_open_out_of_table(const sgi_inbound *in);
bool sgi_reply_put_in_flight(sgi_reply *reply);
/* sgi_reply_remove_from_flight removes the reply from its peer's table of requests in
 * flight. sgi_reply_add_to_flight adds the reply to the given table. */
void sgi_reply_remove_from_flight(sgi_reply *reply);
void sgi_reply_add_to_flight(sgi_reply *reply, sgi_in_flight *in_flight);
/* Leaves the id out of all messages of this reply from now on. Only for a reply that is
 * not in the table and cannot be put there. */
void sgi_reply_leave_id_out(sgi_reply *reply);
void sgi_reply_close(sgi_reply *reply);
/* Cancels a reply, because the client has gone or no longer wants the answer. */
void sgi_reply_cancel(sgi_reply *reply);

/* Refuses the request if the listener is closing (wire/ending.h). Returns true when the
 * request was refused. */
bool sgi_refuse_when_ending(const sgi_inbound *in);
/* Answers the request with an error at once. */
void sgi_answer_error(const sgi_inbound *in, int32_t code, const char *message,
                      const char *data);
/* Sends an error for an item or argument that does not exist. which: the name in the
 * request, for the message and for the data {"<member>":"<which>"}. member NULL = no
 * data. */
void sgi_refuse_unknown_name(const sgi_inbound *in, int32_t code, const char *why,
                             const char *member, sgi_str which);
/* Writes "<why>: <which>". A long name is cut off. If `why` contains the name already,
 * only `why` is written. */
void sgi_write_unknown_name(sgi_buf *message, sgi_str why, sgi_str which);
/* Begins a result and adds resultType if the version has it. sgi_send_end ends the
 * result. */
void sgi_answer_result(sgi_sending *sending, const sgi_inbound *in,
                       const char *result_type);
/* Writes the member _meta with serverInfo, as the last member of a modern result. */
void sgi_write_server_info_meta(sgi_sending *sending, segue_server *server);

/* Begin a result or a notification on a reply. Return false, and begin nothing, when the
 * client is gone. */
bool sgi_reply_result(sgi_sending *sending, sgi_reply *reply, const char *result_type);
bool sgi_reply_notification(sgi_sending *sending, sgi_reply *reply, const char *method);
void sgi_reply_error(sgi_reply *reply, int32_t code, sgi_str message, sgi_json data);
/* Ends the reply with error -32603 because the store failed. `what`: the action that
 * failed; the message adds the reason (engine/log/refusal.h). */
void sgi_reply_store_error(sgi_reply *reply, const char *what, segue_status status);

/* Counts a failed look-up of a task, and answers with the error that R-0-5 prescribes. */
void sgi_answer_not_found(sgi_reply *reply, const char *message);
/* Counts a fetch by number (lastSeqNr). Returns true when there were too many; the reply
 * has then been answered and closed. */
bool sgi_answer_rate_limited(sgi_reply *reply);

/* ---- methods ---- */

typedef struct sgi_method {
    const char *name;
    /* modern era: what the client must have declared to use the method (sgi_cap) */
    uint32_t caps;
    void (*run)(const sgi_inbound *in);
} sgi_method;

/* ---- era_modern.c, era_legacy.c ---- */
uint32_t sgi_read_caps(sgi_json capabilities);
/* Writes "capabilities":{...} for the result of server/discover (modern) or of
 * initialize. */
void sgi_write_capabilities(sgi_jw *w, const sgi_inbound *in);
void sgi_modern_request(sgi_inbound *in, sgi_str method);
void sgi_legacy_request(sgi_inbound *in, sgi_str method);

/* lists.c */
void sgi_tools_list(const sgi_inbound *in);
void sgi_resources_list(const sgi_inbound *in);
void sgi_templates_list(const sgi_inbound *in);
void sgi_prompts_list(const sgi_inbound *in);
/* item_calls.c */
void sgi_resources_read(const sgi_inbound *in);
void sgi_prompts_get(const sgi_inbound *in);
void sgi_completion_complete(const sgi_inbound *in);
/* Returns the method of this name for items other than tools. NULL when there is no such
 * method, or when the server never had an item of its type. */
const sgi_method *sgi_item_method(const segue_server *server, sgi_version version,
                                  sgi_str name);
/* tool_call.c */
void sgi_tools_call(const sgi_inbound *in);
/* question.c: returns the method that answers a question of this name (the server is then
 * a host, engine/reverse). NULL when the name is not that of a question, or when the
 * application answers no such questions. */
const sgi_method *sgi_question_method(const segue_server *server, sgi_str name);
/* call_wait.c: makes the reply wait for the end of an operation. When the operation's
 * first reply is cancelled, the operation is cancelled too. */
void sgi_reply_wait_for_op(sgi_reply *reply, sgi_op *op);
/* call_replies.c */
/* Makes the reply wait for the end of the operation. `ended` runs when the operation has
 * ended or could not be created. */
void sgi_call_await(sgi_reply *reply, sgi_op *op,
                    void (*ended)(sgi_reply *reply, sgi_op *op, segue_status status));
/* Returns the operation for whose end the reply waits; NULL when there is none. */
sgi_op *sgi_reply_awaited_op(const sgi_reply *reply);
/* Returns a reply that waits for the end of the operation and that may be answered with
 * questions (a round); NULL when there is none. */
sgi_reply *sgi_call_find_round_reply(const sgi_op *op);
/* Returns the error code of "Resource not found" for the call: that of the version of its
 * reply, or of the newest version. */
int32_t sgi_call_not_found_code(const sgi_op *op);
/* Returns a reply of the handshake eras whose stream can carry a request of this
 * operation to the client. before: the previous reply; NULL = return the first one. */
const sgi_reply *sgi_call_find_stream_reply(const sgi_op *op, const sgi_reply *before);
/* Closes the connections on which clients wait for a call that this server will not
 * answer. The clients then ask another server. */
void sgi_call_cut_connections(sgi_op *op);
/* Separates an answered reply from its operation. The client can then no longer cancel
 * the operation by the reply, and progress is no longer sent on it. */
void sgi_reply_separate_from_op(sgi_reply *reply, sgi_op *op);
/* subscriptions.c */
void sgi_subscriptions_listen(const sgi_inbound *in);
void sgi_subscriptions_close(sgi_peer *peer);
/* Reports to the clients that the list of items of this type (segue_item) has changed. */
void sgi_items_changed(segue_server *server, int32_t type);
/* Reports to a client of the handshake eras which lists have changed. Returns false when
 * the client is gone. */
bool sgi_lists_report_changes(sgi_peer *peer);
/* Returns the lists that the server has, as bits like sgi_handshake.lists. */
uint8_t sgi_lists_served(const segue_server *server);
/* Reports a change of this resource to those of the peer's subscriptions that name it. */
void sgi_subscriptions_report_update(sgi_peer *peer, sgi_str uri);
/* updates.c */
void sgi_resources_subscribe(const sgi_inbound *in);
void sgi_resources_unsubscribe(const sgi_inbound *in);
void sgi_resource_updated(segue_server *server, sgi_str uri);
/* Allows updates to be sent from now on, because the client has sent
 * notifications/initialized. */
void sgi_updates_begin(sgi_peer *peer);
/* Sends the updates that were held back while the client could not receive them. */
void sgi_updates_send_missed(sgi_peer *peer);
bool sgi_updates_fill(sgi_source *source, size_t room);

#endif
