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
    uint8_t modes; /* sgi_response_mode: the modes that the client declared */
    /* the lists whose changes the client wants to know (subscriptions.c) */
    uint8_t lists;
    /* the lists that have changed, as far as the client was not told yet */
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
    /* replies that are not in by_id, because their id may be in flight */
    LIST_HEAD(, sgi_reply) out_of_table;
} sgi_in_flight;

struct sgi_peer {
    segue_server *server; /* a counted reference */
    sgi_conn *conn;       /* a counted reference */
    TAILQ_ENTRY(sgi_peer) link;
    sgi_principal *who;
    sgi_in_flight *in_flight; /* points to the session's table, or to own_in_flight */
    sgi_in_flight own_in_flight;
    LIST_HEAD(, sgi_reply) replies;
    sgi_buf id_text; /* canonical id of the request that is being handled now */
    int32_t stream_count;
    sgi_handshake *handshake; /* points to the session's handshake, or to own_handshake */
    sgi_handshake own_handshake;
    /* points to the session's table of questions, or to own_questions */
    sgi_question_requests *questions;
    sgi_question_requests own_questions;
    /* messages are read, because recovery has ended and the principal is known */
    bool reading;
    /* queues the callback in which the application names the principal */
    sgi_ready ready;
    /* the subscriptions of this conversation (subscriptions.c) */
    LIST_HEAD(, sgi_listen) listens;
    LIST_HEAD(, sgi_task_creator) creators; /* task_creator.c */
    /* the resources that the client has subscribed to, or NULL (updates.c) */
    sgi_subscribed_uris *uris;
    sgi_source updates; /* sends notifications about updated resources */
    /* the lasting calls that have their channel, or had their last one, on this
     * conversation */
    LIST_HEAD(, sgi_lasting) lasting;
    /* tag of the lasting call in the Last-Event-ID of the request; "" = none */
    char after_tag[9];
    /* position in the log of that call, from the same Last-Event-ID */
    uint64_t after_seq;

    /* reverse direction: the other end is a server that asks questions, and this side
     * answers */
    bool is_host;

    /* The following members are used for an HTTP exchange. */
    bool is_exchange;
    /* the client is on another machine and has no principal, so it gets no tasks */
    bool stranger;
    bool ending;         /* the listener closes, so no new work is begun */
    int32_t max_streams; /* limit of open streams for each principal */
    /* grant of the access token of the request; a counted reference, or NULL */
    sgi_grant *grant;
    /* a GET carries the exchange, so the exchange counts as a stream of its principal */
    bool got;
    /* handshake eras: the wire session of the exchange; not a counted reference */
    sgi_wire_session *session;
    TAILQ_ENTRY(sgi_peer) by_session;
    /* number of bytes by which this exchange counts in sessions.parked_bytes while it is
     * parked */
    size_t parked_bytes;
    /* number of the next event when the last transport left the exchange */
    uint64_t left_at;
    /* number of the first event that the client of a GET stream can have received: the
     * client opened the stream again without the id of an event */
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

/* Whether a reply is in the table of requests in flight. A request may ask again for the
 * answer of an earlier request, under the same id, while the earlier one is still in
 * flight. The reply of such a new request stays out of the table (APART) until the
 * request proves valid. */
typedef enum sgi_reply_state {
    SGI_REPLY_IN_TABLE = 0, /* the reply is in the table, under its id */
    SGI_REPLY_OUT_OF_TABLE,
    /* the reply is not in the table, and the client has cancelled the request */
    SGI_REPLY_CANCELLED_OUT_OF_TABLE
} sgi_reply_state;

/* A request that is answered later. The code that answers the request owns the reply and
 * ends it by sgi_reply_close. If the client cancels the request or goes away before that,
 * the function `cancelled` runs, if it is set. After that, messages sent by the reply
 * reach no client, but the owner must still close it. */
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
    bool modern;
    /* the client takes rounds: an answer may consist of questions; false = questions are
     * sent as requests */
    bool takes_rounds;
    bool is_stream;
    /* the client may have received pieces that were replaced later, and has to be told
     * so */
    bool tells_void;
    /* says why `cancelled` runs: true = the conversation is lost, false = the client has
     * cancelled */
    bool lost;
    void (*cancelled)(sgi_reply *reply);
    /* called when the first turn of the handler is over; NULL = nothing waits for this */
    void (*turned)(sgi_reply *reply, sgi_op *op);
    /* called when the operation for which the reply waits has ended or could not be
     * created; see sgi_call_await */
    void (*ended)(sgi_reply *reply, sgi_op *op, segue_status status);
    /* called when no transport carries the conversation any more, perhaps only for now;
     * may be NULL */
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
 * principal; the peer takes its own reference; NULL = not known yet. Returns NULL when
 * out of memory. */
sgi_peer *sgi_peer_new(segue_server *server, void *transport, sgi_principal *who);
/* Lets the peer handle requests from now on, because recovery has ended. */
void sgi_peer_open(sgi_peer *peer);
void sgi_peer_close(sgi_peer *peer);
/* Frees the peer. Called when its conversation drops its reference. */
void sgi_peer_free(sgi_peer *peer);

void sgi_in_flight_init(sgi_in_flight *in_flight, sgi_engine *engine);

/* Returns the canonical form of an id; empty when out of memory. Valid until the next
 * call of this function. */
sgi_str sgi_peer_id(sgi_peer *peer, sgi_json id);

/* True when the caller may list its tasks. This needs a principal with a name: callers
 * without a name would see each other's tasks. */
static inline bool sgi_peer_may_list_tasks(const sgi_peer *peer)
{
    return peer->server->lists && (peer->server->options.principal || peer->grant);
}

/* True when a call with an idempotency key runs only once. False where the server cannot
 * keep this promise: a client that loses the standard input and output of this process
 * cannot come back to the process, and the next process does not know the keys in the
 * memory of this one (R-2557-11). */
static inline bool sgi_peer_keeps_keys(const sgi_peer *peer)
{
    return peer->server->idempotency && !(peer->server->forgets && peer->conn->sole);
}

/* ---- reply.c ---- */

/* Makes the reply of a request. Returns NULL when out of memory or over a limit: the
 * request was then answered with an error. */
sgi_reply *sgi_reply_open(const sgi_inbound *in, bool is_stream);
/* Like sgi_reply_open, for a request that begins an operation, so that the limits of
 * bytes apply. */
sgi_reply *sgi_reply_open_call(const sgi_inbound *in);
/* sgi_reply_open_out_of_table makes the reply of a request whose id may rightly be in
 * flight already, so the reply is not put into the table. sgi_reply_put_in_flight puts it
 * there later; it returns false when the table has the id. */
sgi_reply *sgi_reply_open_out_of_table(const sgi_inbound *in);
bool sgi_reply_put_in_flight(sgi_reply *reply);
/* sgi_reply_remove_from_flight removes the reply from its peer's table of requests in
 * flight. sgi_reply_add_to_flight adds the reply to the given table. */
void sgi_reply_remove_from_flight(sgi_reply *reply);
void sgi_reply_add_to_flight(sgi_reply *reply, sgi_in_flight *in_flight);
/* Leaves the id out of all messages of this reply from now on. Only for a reply that is
 * out of the table and cannot be put there. */
void sgi_reply_leave_id_out(sgi_reply *reply);
void sgi_reply_close(sgi_reply *reply);
/* Cancels a reply, because the client does not want the answer any more or is gone. */
void sgi_reply_cancel(sgi_reply *reply);

/* Returns true when the listener is closing: the request was then refused
 * (wire/ending.h). */
bool sgi_refuse_when_ending(const sgi_inbound *in);
/* Answers the request with an error at once. */
void sgi_answer_error(const sgi_inbound *in, int32_t code, const char *message,
                      const char *data);
/* Sends an error that says that an item or an argument does not exist. which: its name,
 * for the message and for the data {"<member>":"<which>"}. member NULL = no data. */
void sgi_refuse_unknown_name(const sgi_inbound *in, int32_t code, const char *why,
                             const char *member, sgi_str which);
/* Writes "<why>: <which>". A long name is cut off. If `why` contains the name already,
 * only `why` is written. */
void sgi_write_unknown_name(sgi_buf *message, sgi_str why, sgi_str which);
/* Returns the error code of "Resource not found". */
int32_t sgi_not_found_code(bool modern);
/* Begins a result and adds resultType in the modern era. sgi_send_end ends the result. */
void sgi_answer_result(sgi_sending *sending, const sgi_inbound *in,
                       const char *result_type);
/* Writes the member _meta with serverInfo. It is the last member of a modern result. */
void sgi_write_server_info_meta(sgi_sending *sending, segue_server *server);

/* Begin a result or a notification on a reply. Return false when the client is gone: no
 * message was then begun. */
bool sgi_reply_result(sgi_sending *sending, sgi_reply *reply, const char *result_type);
bool sgi_reply_notification(sgi_sending *sending, sgi_reply *reply, const char *method);
void sgi_reply_error(sgi_reply *reply, int32_t code, sgi_str message, sgi_json data);
/* Ends the reply with error -32603 because the store failed. `what`: the action that
 * failed; the message adds the reason (engine/log/refusal.h). */
void sgi_reply_store_error(sgi_reply *reply, const char *what, segue_status status);

/* Counts a failed look-up of a task, and answers with the error that R-0-5 allows. */
void sgi_answer_not_found(sgi_reply *reply, const char *message);
/* Counts a fetch by number (lastSeqNr). Returns true when there were too many: the reply
 * was then answered and closed. */
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
/* question.c: returns the method that answers a question of this name (the server is a
 * host, engine/reverse). NULL when this is no question, or when no item answers it. */
const sgi_method *sgi_question_method(const segue_server *server, sgi_str name);
/* call_wait.c: makes the reply wait for the end of an operation. When the first reply of
 * an operation is cancelled, the operation is cancelled. */
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
/* Returns a reply of the handshake eras on whose stream a request of this operation can
 * be sent. `before`: the search begins after this reply; NULL = at the first. */
const sgi_reply *sgi_call_find_stream_reply(const sgi_op *op, const sgi_reply *before);
/* Closes the connections on which clients wait for a call that this server will not
 * answer. The clients then ask the next server. */
void sgi_call_cut_connections(sgi_op *op);
/* Separates an answered reply from its operation: the client can no longer cancel the
 * operation by it, and progress no longer goes over it. */
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
/* Tells the peer's subscriptions that name this resource that it has changed. */
void sgi_subscriptions_report_update(sgi_peer *peer, sgi_str uri);
/* updates.c */
void sgi_resources_subscribe(const sgi_inbound *in);
void sgi_resources_unsubscribe(const sgi_inbound *in);
void sgi_resource_updated(segue_server *server, sgi_str uri);
/* Lets updates be sent from now on, because the client has sent
 * notifications/initialized. */
void sgi_updates_begin(sgi_peer *peer);
/* Sends the updates that could not be sent earlier, because the client can receive
 * updates again. */
void sgi_updates_send_missed(sgi_peer *peer);
bool sgi_updates_fill(sgi_source *source, size_t room);

#endif
