/* A server: its items, the operations that run them, and the conversations that it
 * serves.
 *
 * The application first adds items. The first attach starts recovery, which claims the
 * operations that an earlier process left in the store. No conversation is read before
 * recovery has ended. The server stays in memory as long as its handle, a conversation,
 * an operation or a job of the store needs it. */
#ifndef SGI_SERVER_H
#define SGI_SERVER_H

#include "base/thresholds.h"
#include "engine/conversation/conn.h"
#include "wire/freshness.h"
#include "engine/handle.h"
#include "engine/negotiate.h"
#include "engine/server/digest_ring.h"
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
typedef struct sgi_serving_ops sgi_serving_ops;

/* A tool, resource, resource template, prompt or question that the application has
 * added. */
struct sgi_item {
    /* one reference of the registry, and one of each call that runs the item */
    int32_t refs;
    sgi_engine *engine;
    int32_t type; /* the type, a segue_item */
    TAILQ_ENTRY(sgi_item) link;
    sgi_map_node node;
    char *key;    /* the item's name, URI or URI template */
    char *scopes; /* scopes that callers need over HTTP; NULL = none */
    char *json;   /* the item's JSON description in lists */
    size_t json_len;
    /* number of the item among the items of its type: 1, 2, 3, ...; cursors of lists
     * contain this number */
    uint64_t order;
    segue_item_options options;
    sgi_ready ready; /* queued when free_user is due */
    /* for a tool: the arguments that headers repeat */
    sgi_mcp_params params;
    bool has_output; /* for a tool: it has an outputSchema */
    /* for a tool: its outputSchema allows values other than objects (since 2026-07-28) */
    bool has_modern_output;
    /* for a resource template: the parsed template, whose views point into `key` */
    sgi_uri_template *pattern;
};

TAILQ_HEAD(sgi_item_list, sgi_item);

/* All items of one type. */
typedef struct sgi_typed_items {
    struct sgi_item_list items;
    sgi_map by_key;
    /* number of the item that was added last; 0 = no item was ever added */
    uint64_t order;
    uint64_t removals; /* the number of items that were removed */
} sgi_typed_items;

#define SGI_ITEM_TYPES 5
/* How many names of ended sessions, and how many keys of withdrawn calls, a server
 * remembers. */
#define SGI_ENDED_SESSIONS SGI_THRESHOLD(ended_sessions)
#define SGI_WITHDRAWN_MAX 64

typedef enum sgi_server_stage {
    SGI_SERVER_NEW = 0,
    SGI_SERVER_RECOVERING,
    SGI_SERVER_OPEN,
    /* the server accepts no new conversations; running operations continue */
    SGI_SERVER_CLOSED,
    SGI_SERVER_DEAD /* the runtime has ended: nothing is appended any more */
} sgi_server_stage;

/* The mailbox of a server; see mailbox.h. */
typedef struct sgi_mailbox {
    sgi_op *box;      /* the operation that is the mailbox, or NULL */
    sgi_waiter waits; /* waits until the mailbox is in the store */
} sgi_mailbox;

/* Counts since the server was made (stats.c). */
typedef struct sgi_counts {
    uint64_t calls;      /* number of handlers that were started */
    uint64_t tasks;      /* number of tasks that were made */
    uint64_t refused;    /* number of requests that were refused because of a limit */
    uint64_t resumes;    /* number of streams that a client resumed */
    uint64_t sent_again; /* number of bytes that were sent again on resumed streams */
    /* number of times that a client has fetched segments that it had missed */
    uint64_t repaired;
    /* number of operations that were taken over from servers that had gone */
    uint64_t taken_over;
} sgi_counts;

struct segue_server {
    sgi_handle handle;
    sgi_engine *engine;
    int32_t refs;
    sgi_server_stage stage; /* changed by stages.c only */
    /* the functions that serve the server's conversations */
    const sgi_serving_ops *serving;
    /* the options, with default numbers filled in; the texts belong to the server */
    segue_server_options options;
    char *texts[4];
    bool abandoned; /* the application has freed its handle */
    /* on_idle was queued, because no client is connected and none can connect any more */
    bool is_idle;
    /* the server has a store for idempotency keys (sgi_peer_keeps_keys) */
    bool idempotency;
    bool forgets; /* the store is in memory: its content is lost with the process */
    bool keeps_segments_apart; /* every segment stays a block of its own (dialects.h) */
    /* the store can list tasks, so tasks/list works (sgi_peer_may_list_tasks) */
    bool lists;
    uint32_t dialects;
    /* index of the log level for handshake clients that have not set one; -1 = no
     * messages */
    int32_t first_log_level;
    sgi_buf info;            /* "io.modelcontextprotocol/serverInfo":{...} */
    sgi_buf legacy_info;     /* "serverInfo":{...} */
    sgi_freshness freshness; /* for how long answers to list requests stay fresh */
    sgi_typed_items shelves[SGI_ITEM_TYPES];
    bool completes; /* at least one item with on_completion was added */
    TAILQ_HEAD(, sgi_peer) peers;
    LIST_HEAD(, sgi_server_listener) listeners;
    sgi_wire_sessions sessions; /* sessions of the handshake eras over HTTP */
    LIST_HEAD(, segue_call) calls;
    sgi_map principals;
    sgi_usage use;
    sgi_counts counts;
    size_t call_count; /* number of calls in the list `calls` */
    sgi_map by_key;
    /* the rounds (sgi_round) of plain calls that wait for answers, by id */
    sgi_map rounds;
    /* the requests to clients (sgi_question_request) that have no answer yet, by id
     * (question_requests.c) */
    sgi_map questions;
    sgi_late_answer_use late; /* counts answers that are being looked up or forwarded */
    /* the mailbox by which other servers reach plain calls of this server */
    sgi_mailbox mailbox;
    sgi_seal seal;                   /* seals texts that clients send back */
    sgi_digest_ring *ended_sessions; /* names of ended sessions (session_name.c) */
    sgi_digest_ring *withdrawn;      /* keys of withdrawn calls (withdrawn.c) */
    /* name of the server, a random text: part of the ids of its questions and of its GET
     * streams */
    char name[SGI_RANDOM_TEXT + 1];
    /* ended operations that stay in memory, the oldest first */
    struct sgi_shared_list lingering;
    int32_t linger_count;
    sgi_committer committer;
    sgi_cluster cluster;
    /* called when the last reference to the server is dropped */
    void (*gone)(segue_server *server, void *user);
    void *gone_user;
    sgi_ready ready; /* queued when free_user is due */
    /* queued when on_idle is due; the queue holds a reference to the server */
    sgi_ready idle;
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

/* Makes a server. options: a struct of full size, which the API layer has checked. */
segue_status sgi_server_new(sgi_engine *engine, const sgi_serving_ops *serving,
                            const segue_server_options *options, bool idempotency,
                            segue_server **out);
void sgi_server_ref(segue_server *server);
void sgi_server_unref(segue_server *server);
void sgi_server_close(segue_server *server);
/* Drops the application's reference, because the application has freed its handle. */
void sgi_server_handle_freed(segue_server *server);
/* Reports that a conversation has left the server's list. */
void sgi_server_note_peer_gone(segue_server *server);
/* Frees the ended operations in memory when no client can ask for them any more. So they
 * do not keep the server alive. */
void sgi_server_free_lingering(segue_server *server);
/* Cancels handlers and stops timers, because the runtime ends. Stored operations stay in
 * the store. */
void sgi_server_shut_down(segue_server *server);

/* ---- items (registry.c); type is a segue_item ---- */

segue_status sgi_item_add(segue_server *server, int32_t type, sgi_json json,
                          const segue_item_options *options, segue_error **error);
segue_status sgi_item_remove(segue_server *server, int32_t type, const char *key);
sgi_item *sgi_item_find(segue_server *server, int32_t type, sgi_str key);
/* Returns the item for this URI: the resource, or the first template that matches; NULL =
 * there is none. */
sgi_item *sgi_resource_find(segue_server *server, sgi_str uri);
void sgi_item_ref(sgi_item *item);
void sgi_item_unref(sgi_item *item);
void sgi_items_clear(segue_server *server);
/* True when the server serves this type of item, because at least one item of the type
 * was ever added. Tools are always served. A resource or a template makes both types
 * served. */
bool sgi_items_served(const segue_server *server, int32_t type);

static inline sgi_typed_items *sgi_items_of_type(segue_server *server, int32_t type)
{
    return &server->shelves[type - 1];
}

/* ---- conversations ---- */

/* Makes the server's side of a conversation. The caller attaches the transport. The first
 * conversation starts the recovery. */
segue_status sgi_server_accept(segue_server *server, void *transport, sgi_conn **out);
/* Starts the recovery, if it was not started yet. */
void sgi_server_begin(segue_server *server);
/* Opens the conversations and listeners that wait, because recovery has ended. */
void sgi_server_open(segue_server *server);
/* Returns the principal of this name. The caller owns a reference to it. NULL = out of
 * memory. */
sgi_principal *sgi_server_get_principal(segue_server *server, const char *name);

/* ---- operations (known_ops.c) ---- */

/* Puts a task or an operation with a key into the maps by which clients find it. */
void sgi_server_put_in_maps(sgi_op *op);
/* Removes the operation from the maps. */
void sgi_server_take_from_maps(sgi_op *op);
/* Drops the maps' reference to an operation, because the runtime ends. An operation that
 * has not ended is released in the store, so that another server can continue it. */
void sgi_server_op_release(sgi_op *op);
/* Continues or ends an operation of which this server has become the owner. Its whole log
 * has been read (taking_over.c). */
void sgi_server_op_taken_over(sgi_op *op);
/* Keeps an ended operation in memory for a while. Only the newest ended operations stay;
 * the store keeps a stored operation longer. An operation that is not stored stays as
 * long as its record would stay in the store. Returns false when the operation is kept
 * already. */
bool sgi_server_op_linger(sgi_op *op);
/* Returns the wall clock time at which the store may delete the operation. */
int64_t sgi_server_purge_time(const sgi_op *op);
/* Called when the client has received everything of an operation. Keeps the operation in
 * memory for a while, so that later requests find it. */
void sgi_server_op_delivered(sgi_op *op);
/* Starts the timer that ends the operation when its time to live is over. */
void sgi_server_start_ttl(sgi_op *op);

/* Find an operation by task id or by key, in memory or in the store. `found` runs once,
 * perhaps before the call returns. Its op has no reference of its own; op is NULL when
 * there is no such operation (SEGUE_E_NOT_FOUND) or when the store failed. who: the
 * owner; operations of other owners are not found. */
void sgi_server_find_task(segue_server *server, const sgi_principal *who, sgi_str task_id,
                          sgi_found_fn found, void *user);
void sgi_server_find_key(segue_server *server, const uint8_t key[SGI_DIGEST_SIZE],
                         sgi_found_fn found, void *user);

#endif
