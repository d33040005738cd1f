/* A server: its items, the operations that run the items, and the conversations that it
 * serves.
 *
 * The application first adds items. The first attach of a transport starts recovery,
 * which claims the operations that an earlier process left in the store. The server reads
 * no conversation before recovery has ended. The server stays in memory while its handle,
 * a conversation, an operation or a job of the store holds a reference. */
#ifndef SGI_SERVER_H
#define SGI_SERVER_H

#include "base/thresholds.h"
#include "engine/conversation/conn.h"
#include "wire/freshness.h"
#include "engine/handle.h"
#include "engine/negotiate.h"
#include "engine/server/digest_ring.h"
#include "engine/server/client_watch.h"
#include "engine/server/server_port.h"
#include "engine/server/late_use.h"
#include "engine/server/seal.h"
#include "engine/server/principal.h"
#include "engine/cluster/cluster.h"
#include "engine/server/served.h"
#include "engine/server/wire_sessions.h"
#include "wire/mcp_params.h"
#include "wire/uri_template.h"

typedef struct sgi_peer sgi_peer;
typedef struct sgi_wire_session sgi_wire_session;
typedef struct sgi_server_ops sgi_server_ops;

/* A tool, resource, resource template, prompt, question or list that the application has
 * added. */
struct sgi_item {
    /* number of references: one of the registry, and one of each call that runs the
     * item */
    int32_t refs;
    sgi_engine *engine; /* NULL = the item is in no server */
    const sgi_mem *mem;
    int32_t type; /* the type of the item, a segue_item */
    TAILQ_ENTRY(sgi_item) link;
    sgi_map_node node;
    char *key; /* the item's name, URI or URI template */
    /* the scopes that callers need over HTTP; NULL = callers need no scope */
    char *scopes;
    char *json; /* the description of the item in lists, as JSON */
    size_t json_len;
    /* Number of the item among the items of its type, from 1 in the order of adding. The
     * cursors of lists contain this number. */
    uint64_t order;
    segue_item_options options;
    sgi_ready_object ready; /* queued when the item's free_user must run */
    /* for a tool: the arguments that HTTP headers must repeat */
    sgi_mcp_params params;
    bool is_named;   /* used in sight.c only, while an answer about a list is read */
    bool has_output; /* for a tool: the tool has an outputSchema */
    /* for a tool: the outputSchema allows values other than objects, as since
     * 2026-07-28 */
    bool has_modern_output;
    /* for a resource template: the parsed template, which points into `key`; NULL = not
     * parsed */
    sgi_uri_template *pattern;
    /* what the calls of the item did (metrics.h); NULL = no call of the item has ended */
    struct sgi_item_tally *tally;
};

TAILQ_HEAD(sgi_item_list, sgi_item);

/* All items of one type. */
typedef struct sgi_typed_items {
    struct sgi_item_list items;
    sgi_map by_key;
    /* order number of the item that was added last; 0 = no item was ever added */
    uint64_t order;
    uint64_t removals; /* number of items that were removed so far */
    /* number of tools whose calls repeat arguments in headers */
    size_t with_params;
    /* the item that was found last, because most calls in a row name the same item; NULL
     * = none */
    sgi_item *found;
} sgi_typed_items;

/* maximum number of bytes of a declaration of capabilities that is remembered */
#define SGI_KNOWN_CAPS_BYTES 256

/* The capabilities that a request of 2026-07-28 declared last. Every request declares
 * them, and the requests of a client declare the same ones. */
typedef struct sgi_known_caps {
    char text[SGI_KNOWN_CAPS_BYTES];
    uint32_t len; /* 0 = none */
    uint32_t caps;
} sgi_known_caps;

#define SGI_ITEM_TYPES 6
/* The number of names of ended sessions, and the number of keys of withdrawn calls, that
 * a server remembers. */
#define SGI_ENDED_SESSIONS SGI_THRESHOLD(ended_sessions)
#define SGI_WITHDRAWN_MAX SGI_THRESHOLD(withdrawn_calls)

/* A withdrawn call that the server looks for. */
typedef struct sgi_withdrawn_search {
    TAILQ_ENTRY(sgi_withdrawn_search) link; /* in `waiting`, while no search runs */
    segue_server *server;
    sgi_timer again; /* due when the server looks again */
    int32_t looks;   /* number of finished searches */
    uint8_t key[SGI_DIGEST_SIZE];
} sgi_withdrawn_search;

/* The calls that clients have withdrawn by their keys (withdrawn.c). */
typedef struct sgi_withdrawn_calls {
    sgi_digest_ring *keys; /* digests of the keys */
    size_t searches;       /* number of calls that are being looked up in the store */
    /* the calls that were not found and are looked for again later */
    TAILQ_HEAD(, sgi_withdrawn_search) waiting;
    size_t waiting_count;
} sgi_withdrawn_calls;

typedef enum sgi_server_stage {
    SGI_SERVER_NEW = 0,
    SGI_SERVER_RECOVERING,
    SGI_SERVER_OPEN,
    /* the server accepts no new conversations; running operations continue */
    SGI_SERVER_CLOSED,
    SGI_SERVER_DEAD /* the runtime has ended: nothing is appended to a log any more */
} sgi_server_stage;

/* The mailbox of a server: the operation to which other servers send answers
 * (mailbox.h). */
typedef struct sgi_mailbox {
    /* the operation that is the mailbox; NULL = the server has no mailbox */
    sgi_op *box;
    sgi_waiter waits; /* waits until the creation of the mailbox is durable */
    /* the id of the mailbox, and the name of the server: a part of the ids of its
     * questions and GET streams */
    char name[SGI_OPERATION_TEXT + 1];
} sgi_mailbox;

/* How a server gets the key that its store keeps (kept_key.h). */
typedef struct sgi_kept_key {
    sgi_timer again;     /* due when the server asks the store again */
    bool asked;          /* the server has asked the store */
    bool failed;         /* the store has failed to keep the key */
    bool holds_recovery; /* recovery starts when the store has answered */
} sgi_kept_key;

#define SGI_METRICS_KINDS 4  /* number of kinds of items whose calls are counted */
#define SGI_ASKED_METHODS 64 /* number of methods whose requests are counted apart */

/* How often a method was asked for, in each era (sgi_metrics_era). */
typedef struct sgi_asked_method {
    const struct sgi_method *method; /* NULL = the row is free */
    uint64_t count[2];
} sgi_asked_method;

/* What the server counts of requests for its metrics (metrics.h). */
typedef struct sgi_asked {
    sgi_asked_method methods[SGI_ASKED_METHODS];
    sgi_asked_method others; /* requests for methods that the server does not have */
    /* calls of items that do not exist, by kind and era */
    uint64_t unknown[SGI_METRICS_KINDS][2];
} sgi_asked;

/* What the server has counted since it was made (stats.c). */
typedef struct sgi_server_counts {
    uint64_t calls;      /* number of handlers that were started */
    uint64_t tasks;      /* number of tasks that were made */
    uint64_t refused;    /* number of requests that were refused because of a limit */
    uint64_t streams;    /* number of streams that were opened */
    uint64_t thinned;    /* number of progress and log messages that were left out */
    uint64_t resumes;    /* number of streams that a client resumed */
    uint64_t sent_again; /* number of bytes that were sent again on resumed streams */
    /* number of times that a client has fetched segments that it had missed */
    uint64_t repaired;
    /* number of operations that this server took over from servers that had gone */
    uint64_t taken_over;
    sgi_asked asked;
} sgi_server_counts;

/* The calls of a server. */
typedef struct sgi_server_calls {
    LIST_HEAD(, segue_call) running; /* the calls that have a handler */
    size_t count;                    /* number of calls in `running` */
    /* the interrupted operations that wait to run again (waiting_ops.h) */
    LIST_HEAD(, sgi_served_op_data) waiting;
} sgi_server_calls;

/* Ended operations that stay in memory for a while. The oldest operation is first. */
typedef struct sgi_lingering_ops {
    struct sgi_cluster_op_list ops;
    int32_t count;
} sgi_lingering_ops;

struct segue_server {
    sgi_handle handle;
    sgi_engine *engine;
    int32_t refs;
    /* the stage of the server; only stages.c changes this member */
    sgi_server_stage stage;
    /* the functions that serve the server's conversations */
    const sgi_server_ops *serving;
    /* the options, with all defaults filled in; the server owns the texts */
    segue_server_options options;
    char *texts[4];
    bool abandoned; /* the application has freed its handle */
    /* on_idle was queued, because no client is connected and no client can connect any
     * more */
    bool is_idle;
    /* the server has a store for idempotency keys (sgi_peer_keeps_keys) */
    bool idempotency;
    /* the store is in memory, so its content is lost when the process ends */
    bool forgets;
    /* every segment becomes a separate block of its result (dialects.h) */
    bool keeps_segments_apart;
    /* the store can list tasks, so tasks/list works (sgi_peer_may_list_tasks) */
    bool lists;
    uint32_t dialects;
    /* for clients of versions that begin with `initialize`: index of the log level of a
     * client that has set no level; -1 = such a client gets no log messages */
    int32_t first_log_level;
    sgi_buf info;        /* "io.modelcontextprotocol/serverInfo":{...} */
    sgi_buf legacy_info; /* "serverInfo":{...} */
    /* the time and the scope for which clients can cache the answers to list requests */
    sgi_freshness freshness;
    sgi_typed_items shelves[SGI_ITEM_TYPES];
    sgi_known_caps known_caps;
    bool completes; /* at least one item that was added has on_completion */
    TAILQ_HEAD(, sgi_peer) peers;
    LIST_HEAD(, sgi_server_listener) listeners;
    /* the wire sessions: sessions over HTTP that began with `initialize` */
    sgi_wire_sessions sessions;
    /* the clients as the application sees them, if it watches them (clients.h) */
    sgi_clients clients;
    sgi_server_calls calls;
    sgi_map principals;
    sgi_usage use;
    sgi_server_counts counts;
    sgi_index by_key; /* the operations with an idempotency key */
    /* the rounds (sgi_round) of plain calls that wait for answers; the key is the id of
     * the round */
    sgi_map rounds;
    /* the unanswered requests to clients (sgi_question_request); the key is the id of the
     * question (question_requests.c) */
    sgi_map questions;
    /* counts the answers whose question is being looked up, or that are being
     * forwarded */
    sgi_late_answer_usage late;
    /* the mailbox to which other servers send answers for plain calls of this server */
    sgi_mailbox mailbox;
    sgi_seal seal;         /* seals the texts that clients send back */
    sgi_kept_key kept_key; /* how the server gets the key that the store keeps */
    /* digests of the names of ended sessions (session_name.c) */
    sgi_digest_ring *ended_sessions;
    sgi_withdrawn_calls withdrawn;
    sgi_lingering_ops lingering;
    sgi_committer committer;
    sgi_cluster cluster;
    /* called when the last reference to the server is dropped */
    void (*gone)(segue_server *server, void *user);
    void *gone_user;
    sgi_ready_object ready; /* queued when free_user of the options must run */
    /* queued when on_idle must run; the ready queue then holds a reference to the
     * server */
    sgi_ready_object idle;
};

static inline segue_server *sgi_cluster_server(sgi_cluster *cluster)
{
    return SGI_OWNER(cluster, segue_server, cluster);
}

static inline segue_server *sgi_op_server(const sgi_op *op)
{
    return SGI_OWNER(op->committer, segue_server, committer);
}

/* ---- life (server.c), stages (stages.c) ---- */

/* Makes a server. options: the newest form of the struct, which the room `api` has
 * checked. Returns SEGUE_E_NOMEM when out of memory, SEGUE_E_FATAL when the system gives
 * no random bytes. */
segue_status sgi_server_new(sgi_engine *engine, const sgi_server_ops *serving,
                            const segue_server_options *options, bool idempotency,
                            segue_server **out);
void sgi_server_ref(segue_server *server);
void sgi_server_unref(segue_server *server);
void sgi_server_close(segue_server *server);
/* Drops the application's reference, because the application has freed its handle. */
void sgi_server_on_handle_freed(segue_server *server);
/* Reports that a conversation has left the server's list. */
void sgi_server_note_peer_gone(segue_server *server);
/* Frees the ended operations in memory if no client can ask for them any more. Otherwise
 * their references would keep the server in memory. */
void sgi_server_free_lingering_ops(segue_server *server);
/* Cancels handlers and stops timers, because the runtime ends. Stored operations stay in
 * the store for the next server. */
void sgi_server_shut_down(segue_server *server);

/* ---- items (registry.c); type is a segue_item ---- */

segue_status sgi_item_add(segue_server *server, int32_t type, sgi_json json,
                          const segue_item_options *options, segue_error **error);
/* Checks an item as sgi_item_add does, and its URI, without a server. *advice receives a
 * text when the specification advises against the item, else NULL. */
segue_status sgi_item_try(const sgi_mem *mem, int32_t type, sgi_json json,
                          const segue_item_options *options, const char **advice,
                          segue_error **error);
segue_status sgi_item_remove(segue_server *server, int32_t type, const char *key);
sgi_item *sgi_item_find(segue_server *server, int32_t type, sgi_str key);
/* Returns the item that serves this URI: the resource with this URI, or the first
 * template that matches. Returns NULL when no item matches. */
sgi_item *sgi_resource_find(segue_server *server, sgi_str uri);
void sgi_item_ref(sgi_item *item);
void sgi_item_unref(sgi_item *item);
void sgi_items_clear(segue_server *server);
/* True when the server serves this type of item: at least one item of the type was added,
 * now or earlier. Tools are always served. One resource or template suffices for both
 * types. */
bool sgi_items_served(const segue_server *server, int32_t type);

static inline sgi_typed_items *sgi_items_of_type(segue_server *server, int32_t type)
{
    return &server->shelves[type - 1];
}

/* ---- conversations ---- */

/* Makes the server's side of a conversation. The caller attaches the transport. The first
 * conversation starts recovery. */
segue_status sgi_server_accept(segue_server *server, void *transport, sgi_conn **out);
/* Starts recovery unless it was started before. */
void sgi_server_start_recovery(segue_server *server);
/* Opens the waiting conversations and listeners. Called when recovery has ended. */
void sgi_server_open(segue_server *server);
/* Returns the principal of this name, with a reference that the caller owns. Returns NULL
 * when out of memory. */
sgi_principal *sgi_server_get_principal(segue_server *server, const char *name);

/* ---- operations (known_ops.c) ---- */

/* Puts a task, or an operation with an idempotency key, into the maps in which the server
 * finds operations for clients. */
void sgi_server_put_in_maps(sgi_op *op);
/* Removes the operation from the maps. */
void sgi_server_take_from_maps(sgi_op *op);
/* Drops the maps' reference to an operation, because the server or the runtime ends. An
 * operation that has not ended is released in the store, so that another server can
 * continue the operation. */
void sgi_server_op_release(sgi_op *op);
/* Continues or ends an operation that this server now owns and whose whole log this
 * server has read (taking_over.c). */
void sgi_server_on_op_taken_over(sgi_op *op);
/* Keeps an ended operation in memory for a while. Only the newest ended operations stay
 * in memory; the store keeps a stored operation longer. An operation that could not be
 * stored stays in memory until its purge time. Returns false when the operation was
 * already kept. */
bool sgi_server_keep_ended_op(sgi_op *op);
/* Takes the operation from the list of ended operations, because another server owns it
 * now. Does nothing if the operation is not in this list. */
void sgi_server_end_lingering(sgi_op *op);
/* Returns the wall clock time in ms from which the store can delete the operation. */
int64_t sgi_server_purge_time(const sgi_op *op);
/* Called when the client has received the whole operation. Keeps the operation in memory
 * for a while, so that later requests find it. */
void sgi_server_on_op_delivered(sgi_op *op);
/* Starts the timer that ends the operation when its time to live is over. */
void sgi_server_start_ttl(sgi_op *op);
/* Ends the operation because its time to live is over. Without memory for the end, the
 * timer tries again later. */
void sgi_server_expire(sgi_op *op);
/* Begins to purge the store. */
void sgi_server_start_purging(segue_server *server);

/* Find an operation by task id or by idempotency key, in memory or in the store. `found`
 * runs once, perhaps before the function returns. The op that `found` gets is a borrowed
 * pointer; NULL = there is no such operation (SEGUE_E_NOT_FOUND), or the store failed.
 * who: the owner; operations of other owners are not found. */
void sgi_server_find_task(segue_server *server, const sgi_principal *who, sgi_str task_id,
                          sgi_found_fn found, void *user);
void sgi_server_find_by_key(segue_server *server, const uint8_t key[SGI_DIGEST_SIZE],
                            sgi_found_fn found, void *user);
/* Returns the operation in memory that has this idempotency key; NULL = there is none. */
sgi_op *sgi_server_op_with_key(const segue_server *server,
                               const uint8_t key[SGI_DIGEST_SIZE]);
/* The keys of the index `by_key`. */
extern const sgi_index_keys sgi_idempotency_keys;

#endif
