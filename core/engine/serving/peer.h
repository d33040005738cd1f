/* The serving side of a conversation: which requests are in flight, in which era each
 * came, and the way back to whoever asked. */
#ifndef SGI_PEER_H
#define SGI_PEER_H

#include "engine/sending.h"
#include "engine/serving/asks.h"
#include "engine/serving/marks.h"
#include "engine/serving/server.h"

typedef struct sgi_reply sgi_reply;

/* What the handshake eras remember between requests. */
typedef struct sgi_handshake {
    sgi_version version; /* negotiated by initialize; UNKNOWN before */
    bool initialized;
    int32_t log_level;     /* set by logging/setLevel; -1 = none wanted */
    uint8_t modes;         /* sgi_response_mode: those the client declared */
    uint8_t lists;         /* whose changes it was promised to hear of; subscriptions.c */
    uint8_t changed_lists; /* of these: changed, and it was not told yet */
    uint32_t caps;         /* sgi_cap: what it can be asked */
    bool resumable;        /* it declared resumableRequests (SEP-975) */
} sgi_handshake;

struct sgi_peer {
    segue_server *server; /* counted */
    sgi_conn *conn;       /* counted */
    TAILQ_ENTRY(sgi_peer) link;
    sgi_principal *who;
    sgi_map *in_flight; /* sgi_reply by id; the session's, or own_in_flight */
    sgi_map own_in_flight;
    LIST_HEAD(, sgi_reply) replies;
    sgi_buf id_text; /* canonical id of the request that is looked at */
    int32_t stream_count;
    sgi_handshake *handshake; /* the session's, or own_handshake */
    sgi_handshake own_handshake;
    sgi_asks *asks; /* the session's, or own_asks */
    sgi_asks own_asks;
    bool reading;                    /* recovery is through, and it is known who asks */
    sgi_ready ready;                 /* the application is asked who it is */
    LIST_HEAD(, sgi_listen) listens; /* subscriptions.c */
    LIST_HEAD(, sgi_origin) origins; /* origin.c */
    sgi_marks *marks;                /* resources it subscribed to, or NULL; updates.c */
    sgi_source updates;              /* tells of them */
    LIST_HEAD(, sgi_resumable) resumables; /* it was told of; resumable.h */
    char after_tag[9];  /* its Last-Event-ID, as far as it is about one of */
    uint64_t after_seq; /* ... them; "" = nothing */

    bool is_host; /* the other end is a server, whose questions are answered here */

    /* of an HTTP exchange */
    bool is_exchange;
    bool stranger;       /* from another machine and named by nobody: gets no tasks */
    bool ending;         /* its listener closes: nothing is begun for it */
    int32_t max_streams; /* of its principal */
    sgi_grant *grant;    /* of the token it came with; counted, or NULL */
    bool got;            /* a GET carries it: one of its principal's streams */
    sgi_wire_session *session; /* handshake eras: what it belongs to, not counted */
    TAILQ_ENTRY(sgi_peer) by_session;
    size_t parked_bytes; /* counted in the server's, while it is parked */
    uint64_t left_at;    /* number of the next event when it was let go of */
};

/* One request as it came; views into the message. */
typedef struct sgi_inbound {
    sgi_peer *peer;
    sgi_json id;               /* canonical; lives in the peer */
    sgi_json params;           /* an object, or empty */
    sgi_json meta;             /* params._meta, or empty */
    sgi_json name, arguments;  /* of params */
    sgi_json task;             /* ... of 2025-11-25 */
    sgi_json state, responses; /* requestState, inputResponses */
    sgi_json protocol, capabilities, level, progress, key; /* of meta */
    sgi_json partial, token; /* ... allowPartial, partialResultToken */
    sgi_version version;
    uint32_t caps;     /* sgi_cap */
    int32_t log_level; /* index of the level; -1 = none wanted */
} sgi_inbound;

/* A request that is answered later. Owned by whoever answers it: sgi_reply_close ends it.
 * If the client cancels it or goes away first, `cancelled` runs, if set, and nothing that
 * is sent through the reply reaches anybody; closing it stays the owner's duty. */
struct sgi_reply {
    sgi_map_node node;
    LIST_ENTRY(sgi_reply) by_peer;
    sgi_peer *peer; /* NULL = cancelled, or the conversation is lost */
    sgi_engine *engine;
    char *id; /* canonical JSON text; id_room when it fits */
    char id_room[24];
    bool modern;
    bool takes_rounds; /* it can be answered with questions; else they are requests */
    bool is_stream;
    char *progress_token; /* JSON text or NULL */
    int32_t log_level;
    void (*cancelled)(sgi_reply *reply);
    /* the handler has been called and has returned for the first time; NULL = nobody
     * waits for that */
    void (*turned)(sgi_reply *reply, sgi_op *op);
    /* nobody carries its conversation for now; NULL = it minds nothing */
    void (*parked)(sgi_reply *reply);
    bool lost; /* for cancelled: the conversation is gone; else the client said so */
    void *user;
    sgi_waiter waiter;               /* for the owner: one wait on an operation's log */
    struct sgi_pieces *pieces;       /* of its result, while it is made; NULL = none */
    struct sgi_resumable *resumable; /* it is the channel of this, or NULL */
    bool apart;                      /* it does not stand in in_flight */
    bool tells_void; /* its client may have seen pieces that were replaced since */
};

/* Makes the peer and its conversation; it stands in the server's list. NULL when out of
 * memory. who: counted by the peer; NULL = not known yet. */
sgi_peer *sgi_peer_new(segue_server *server, void *transport, sgi_principal *who);
/* A message of the client. */
void sgi_peer_message(sgi_peer *peer, const sgi_message *msg);
/* The same for a response. */
sgi_answered sgi_peer_answer(sgi_peer *peer, const sgi_message *msg);
/* What it was sent as, with its parts looked up; false when it cannot be answered. */
bool sgi_inbound_read(sgi_inbound *in, sgi_peer *peer, const sgi_message *msg);
void sgi_inbound_handle(sgi_inbound *in, const sgi_message *msg);
/* Its _meta names a version, and that counts: where there was a handshake (shaken), or
 * this is it, the name of one of those versions has no meaning, and the session's holds
 * (2026-07-28 basic/versioning). */
bool sgi_inbound_is_modern(const sgi_inbound *in, sgi_json method, bool shaken);
/* Recovery is through: requests may come. */
void sgi_peer_open(sgi_peer *peer);
void sgi_peer_close(sgi_peer *peer);

/* The canonical form of an id; empty when out of memory. Valid until the next one. */
sgi_str sgi_peer_id(sgi_peer *peer, sgi_json id);

/* Is there a list of the caller's tasks? Only where callers can be told apart: among
 * those who are nobody in particular it would show everybody's. */
static inline bool sgi_peer_lists(const sgi_peer *peer)
{
    return peer->server->lists && (peer->server->options.principal || peer->grant);
}

/* Does a call with an idempotency key run once? Not where such a promise would break: a
 * client that loses the standard input and output of this process cannot come back to it,
 * and the next process knows nothing of the keys in this one's memory (R-2557-11). */
static inline bool sgi_peer_takes_keys(const sgi_peer *peer)
{
    return peer->server->idempotency && !(peer->server->forgets && peer->conn->sole);
}

/* ---- reply.c ---- */

/* NULL when out of memory or over a limit; the request was then answered with an
 * error. */
sgi_reply *sgi_reply_open(const sgi_inbound *in, bool is_stream);
/* The same for a request that begins an operation: the limits of bytes hold for it. */
sgi_reply *sgi_reply_open_call(const sgi_inbound *in);
/* The same for a request that has the id of one that may be in flight, perhaps rightly;
 * sgi_reply_place puts it in its place, false when that is taken. */
sgi_reply *sgi_reply_open_apart(const sgi_inbound *in);
bool sgi_reply_place(sgi_reply *reply);
/* What is answered from here on has no id; of one that is apart, and has no place. */
void sgi_reply_leave_id_out(sgi_reply *reply);
void sgi_reply_close(sgi_reply *reply);
/* The other end does not want the answer any more, or is gone. */
void sgi_reply_cancel(sgi_reply *reply);

/* True: its listener closes, and it was told so (wire/ending.h). */
bool sgi_refuse_ending(const sgi_inbound *in);
/* Answers at once. */
void sgi_answer_error(const sgi_inbound *in, int32_t code, const char *message,
                      const char *data);
/* Answers that an item, or an argument, is not there: the message says which, and so do
 * the data, {"<member>":"<which>"}. member NULL = there are none. */
void sgi_refuse_which(const sgi_inbound *in, int32_t code, const char *why,
                      const char *member, sgi_str which);
/* Writes "<why>: <which>", of a long name its beginning; a why that has the name already
 * stays as it is. */
void sgi_say_which(sgi_buf *message, sgi_str why, sgi_str which);
/* Begins a result; resultType is added in the modern era. End with sgi_send_end. */
void sgi_answer_result(sgi_sending *sending, const sgi_inbound *in,
                       const char *result_type);
/* _meta with serverInfo: the last member of a modern result. */
void sgi_send_meta(sgi_sending *sending, segue_server *server);

/* The same for replies: false when nobody is there to hear; nothing was begun then. */
bool sgi_reply_result(sgi_sending *sending, sgi_reply *reply, const char *result_type);
bool sgi_reply_notification(sgi_sending *sending, sgi_reply *reply, const char *method);
void sgi_reply_error(sgi_reply *reply, int32_t code, sgi_str message, sgi_json data);

/* A failed look-up: counts it, and says what R-0-5 allows to be said. */
void sgi_answer_not_found(sgi_reply *reply, const char *message);
/* Counts a fetch by number; true when there were too many: then the reply was answered
 * and closed. */
bool sgi_answer_too_fast(sgi_reply *reply);

/* ---- methods ---- */

typedef struct sgi_method {
    const char *name;
    uint32_t caps; /* what the client must have declared (modern) */
    void (*run)(const sgi_inbound *in);
} sgi_method;

/* era_modern.c, era_legacy.c */
uint32_t sgi_read_caps(sgi_json capabilities);
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
/* A method of the items beside tools, as far as the server has, or had, such items; NULL
 * when it is none. */
const sgi_method *sgi_item_method(const segue_server *server, sgi_version version,
                                  sgi_str name);
/* The code of "Resource not found". */
int32_t sgi_not_found_code(bool modern);
/* tool_call.c */
void sgi_tools_call(const sgi_inbound *in);
/* question.c: a question, for the host of a session, as a method; NULL when it is none,
 * or nothing here answers it. */
const sgi_method *sgi_question_method(const segue_server *server, sgi_str name);
/* The reply waits for an operation that has been asked about before. */
void sgi_call_attach(sgi_reply *reply, sgi_op *op);
/* A reply that waits for its end and can be told to come again; NULL when none does. */
sgi_reply *sgi_call_waiting(const sgi_op *op);
/* ... or, of the handshake eras, asked by a request; the one after `before` (NULL = the
 * first). */
const sgi_reply *sgi_call_listening(const sgi_op *op, const sgi_reply *before);
/* Whoever waits for the answer of a call gets none here. Its connection is cut, so that
 * it asks the next server. */
void sgi_call_cut(sgi_op *op);
/* The call that its end would cancel; NULL when there is none. */
sgi_op *sgi_call_of(const sgi_reply *reply);
/* It is answered, and no longer the call's channel for progress. */
void sgi_call_unhook(sgi_reply *reply, sgi_op *op);
/* subscriptions.c */
void sgi_subscriptions_listen(const sgi_inbound *in);
void sgi_listens_close(sgi_peer *peer);
/* A list has changed; type: segue_item. */
void sgi_items_changed(segue_server *server, int32_t type);
/* Tells a client of the handshake eras which lists have changed; false when it is not
 * there any more. */
bool sgi_lists_show(sgi_peer *peer);
/* The lists of which there are items, as sgi_handshake has them. */
uint8_t sgi_lists_served(const segue_server *server);
/* A resource has changed: the subscriptions of the peer that name it are told. */
void sgi_listens_updated(sgi_peer *peer, sgi_str uri);
/* updates.c */
void sgi_resources_subscribe(const sgi_inbound *in);
void sgi_resources_unsubscribe(const sgi_inbound *in);
void sgi_resource_updated(segue_server *server, sgi_str uri);
/* Its client says that it is initialized. */
void sgi_updates_begin(sgi_peer *peer);
/* The peer can hear of updates from now on: it is told what it has missed. */
void sgi_updates_ready(sgi_peer *peer);
bool sgi_updates_fill(sgi_source *source, size_t room);

#endif
