/* A server: its items, the operations they run, and the conversations it serves.
 *
 * Life: items are added; the first attach claims what the store holds of an earlier
 * process (recovery); only when that is through are conversations read. The server lives
 * while its handle, a conversation, an operation or a job to the store needs it. */
#ifndef SGI_SERVER_H
#define SGI_SERVER_H

#include "engine/conn.h"
#include "engine/freshness.h"
#include "engine/handle.h"
#include "engine/negotiate.h"
#include "engine/seal.h"
#include "engine/log/op.h"
#include "engine/serving/principal.h"
#include "wire/mcp_params.h"
#include "wire/uri_template.h"

typedef struct sgi_peer sgi_peer;
typedef struct sgi_wire_session sgi_wire_session;

/* Something that the application serves, in the registry. */
struct sgi_item {
    int32_t refs; /* the registry, and calls that run it */
    sgi_engine *engine;
    int32_t type; /* segue_item */
    TAILQ_ENTRY(sgi_item) link;
    sgi_map_node node;
    char *key;    /* its name, URI or template */
    char *scopes; /* that its callers need over HTTP; NULL = none */
    char *json;   /* as it is listed */
    size_t json_len;
    uint64_t order; /* 1, 2, 3, ... of its type: what a cursor of its list points at */
    segue_item_options options;
    sgi_ready ready;           /* free_user is due */
    sgi_mcp_params params;     /* a tool: arguments that are repeated in headers */
    bool has_output;           /* ... it has an outputSchema, */
    bool has_modern_output;    /* ... of more than objects, which came with 2026-07-28 */
    sgi_uri_template *pattern; /* a resource template; views of its key */
};

TAILQ_HEAD(sgi_item_list, sgi_item);

/* The items of one type. */
typedef struct sgi_shelf {
    struct sgi_item_list items;
    sgi_map by_key;
    uint64_t order; /* of the item that came last; 0 = there never was one */
} sgi_shelf;

#define SGI_ITEM_TYPES 5
#define SGI_SERVER_MARK 16
#define SGI_ENDED_SESSIONS 256
/* Keys of calls that were withdrawn before they came; see withdrawn.h. */
#define SGI_WITHDRAWN_MAX 64

typedef enum sgi_server_stage {
    SGI_SERVER_NEW = 0,
    SGI_SERVER_RECOVERING,
    SGI_SERVER_OPEN,
    SGI_SERVER_CLOSED, /* no new conversations; what runs goes on */
    SGI_SERVER_DEAD    /* the runtime is gone: nothing is appended any more */
} sgi_server_stage;

/* What has happened, since the server is there; see stats.c. */
typedef struct sgi_counts {
    uint64_t calls;      /* handlers that were started */
    uint64_t tasks;      /* tasks that were made */
    uint64_t refused;    /* requests that a limit refused */
    uint64_t resumes;    /* streams that a client came back to */
    uint64_t sent_again; /* ... and bytes that were sent again for them */
    uint64_t repaired;   /* fetches of segments that a client had missed */
    uint64_t letters;    /* taken, of other servers */
    uint64_t taken_over; /* operations of owners that had gone */
    uint64_t fenced;     /* operations that another server had taken over */
} sgi_counts;

struct segue_server {
    sgi_handle handle;
    sgi_engine *engine;
    int32_t refs;
    sgi_server_stage stage;
    segue_server_options options; /* numbers resolved; texts owned */
    char *texts[4];
    bool abandoned;   /* its handle was freed */
    bool is_idle;     /* nobody is there, or can come, and on_idle was told */
    bool idempotency; /* a store was given: it knows keys; sgi_peer_takes_keys */
    bool forgets;     /* what its store keeps ends with the process */
    bool lists;       /* its store has lists: tasks/list, for callers told apart */
    uint32_t dialects;
    sgi_buf info;        /* "io.modelcontextprotocol/serverInfo":{...} */
    sgi_buf legacy_info; /* "serverInfo":{...} */
    sgi_limits limits;
    sgi_retention_limits retention; /* of the events of a task */
    sgi_freshness freshness;        /* of lists */
    sgi_shelf shelves[SGI_ITEM_TYPES];
    bool completes; /* there is, or was, an item with on_completion */
    TAILQ_HEAD(, sgi_peer) peers;
    LIST_HEAD(, sgi_door) doors;
    sgi_map sessions;    /* of the handshake eras over HTTP, by id */
    size_t parked_bytes; /* what their parked exchanges keep for a replay, */
    size_t max_parked;   /* and may keep */
    TAILQ_HEAD(, sgi_wire_session) sessions_by_use; /* the one unused longest first */
    LIST_HEAD(, segue_call) calls;
    sgi_map principals;
    sgi_use use;
    sgi_counts counts;
    size_t read_bytes; /* of a log, that are read back from the store at once */
    size_t call_count; /* in calls */
    size_t followed;   /* operations of other servers that are in the maps */
    sgi_map by_task;
    sgi_map by_id;
    sgi_map by_key;
    struct sgi_op_list followed_ops; /* seen longest ago first */
    LIST_HEAD(, sgi_rebuilding) rebuilds;
    uint64_t errand_number; /* of the last */
    size_t errands;         /* that are not done */
    size_t errand_bytes;    /* that they hold; see errands.h */
    sgi_map rounds;         /* of plain calls that wait for input, by id */
    sgi_map asks;           /* requests to clients that are out, by id; see asks.c */
    size_t late_answers;    /* that are looked for in the store */
    size_t late_bytes;      /* that they hold; see late_answer.h */
    sgi_op *mailbox;        /* by which other servers reach its plain calls, or NULL */
    sgi_waiter mail_waits;  /* until it is there; see mail.h */
    sgi_seal seal;          /* of what clients bring back */
    uint8_t ended_sessions[SGI_ENDED_SESSIONS][SGI_DIGEST_SIZE]; /* session_name.c */
    size_t ended_count;
    uint8_t withdrawn[SGI_WITHDRAWN_MAX][SGI_DIGEST_SIZE]; /* withdrawn.c */
    size_t withdrawn_count;
    uint8_t mark[SGI_SERVER_MARK];  /* tells it its own states: request_state.h */
    char name[SGI_RANDOM_TEXT + 1]; /* in ids of questions, and on streams of GET */
    TAILQ_HEAD(, sgi_op) lingering; /* ended operations, oldest first */
    int32_t linger_count;
    sgi_keeper keeper;
    void (*gone)(segue_server *server, void *user); /* told to the api when refs end */
    void *gone_user;
    sgi_ready ready;              /* free_user is due */
    sgi_ready idle;               /* on_idle is due; being queued is a reference */
    int32_t recovering;           /* operations still being rebuilt, and claims */
    struct sgi_found_list claims; /* operations that are ours, and not here yet */
    sgi_map claims_by_id;         /* the same */
    bool claiming;                /* a claim is under way, */
    bool claim_again;             /* ... and is not the last */
    sgi_timer claim_timer;
};

/* options: full size, already checked by the api. */
segue_status sgi_server_new(sgi_engine *engine, const segue_server_options *options,
                            bool idempotency, segue_server **out);
void sgi_server_ref(segue_server *server);
void sgi_server_unref(segue_server *server);
void sgi_server_close(segue_server *server);
/* The application gives its handle up. */
void sgi_server_abandon(segue_server *server);
/* A conversation has left the list. */
void sgi_server_peer_left(segue_server *server);
/* Nobody can ask for an operation any more: what only lingers must not keep the server
 * alive. */
void sgi_server_forget_lingering(segue_server *server);
/* The runtime goes away: handlers are told, timers stop, what is stored stays. */
void sgi_server_die(segue_server *server);

/* ---- items (registry.c); type: segue_item ---- */

segue_status sgi_item_add(segue_server *server, int32_t type, sgi_json json,
                          const segue_item_options *options, segue_error **error);
segue_status sgi_item_remove(segue_server *server, int32_t type, const char *key);
sgi_item *sgi_item_find(segue_server *server, int32_t type, sgi_str key);
/* What a URI is read by: the resource, or the first template that makes it; or NULL. */
sgi_item *sgi_resource_of(segue_server *server, sgi_str uri);
void sgi_item_ref(sgi_item *item);
void sgi_item_unref(sgi_item *item);
void sgi_items_clear(segue_server *server);
/* Is there, or was there, an item of the type? Tools are always served; resources and
 * their templates are served together. */
bool sgi_items_served(const segue_server *server, int32_t type);

static inline sgi_shelf *sgi_shelf_of(segue_server *server, int32_t type)
{
    return &server->shelves[type - 1];
}

/* ---- conversations ---- */

/* Makes the serving side of a conversation; its transport is attached by the caller. The
 * first one begins the recovery. */
segue_status sgi_server_accept(segue_server *server, void *transport, sgi_conn **out);
/* Begins the recovery, once. */
void sgi_server_begin(segue_server *server);
/* Recovery is through: whoever waits may come in. */
void sgi_server_open(segue_server *server);
/* Who goes by this name; counted. NULL when out of memory. */
sgi_principal *sgi_server_principal(segue_server *server, const char *name);

/* ---- operations (catalog.c) ---- */

/* Puts a task or keyed operation into the maps. */
void sgi_server_op_known(sgi_op *op);
/* Something of it became visible, perhaps its end. */
void sgi_server_op_visible(sgi_op *op);
/* Takes it out of them again. */
void sgi_server_op_forget(sgi_op *op);
/* The server dies. What has not ended is let go in the store: a later one goes on with
 * it. */
void sgi_server_op_release(sgi_op *op);
/* Another server has taken it over: its handler here is told. */
void sgi_server_op_fenced(sgi_op *op);
/* It could not be created. */
void sgi_server_op_lost(sgi_op *op, segue_status status);
/* Starts, or starts again, its handler. */
segue_status sgi_server_run(sgi_op *op, bool again);
/* When the store may delete it; wall clock. */
int64_t sgi_server_purge_time(const sgi_op *op);
/* It has ended, its client has everything: it stays for a while to say so. */
void sgi_server_op_closed(sgi_op *op);
/* Its time to live has come into force. */
void sgi_server_start_ttl(sgi_op *op);

/* Finds an operation by task id or by key, in memory or in the store. found runs once,
 * perhaps before the call returns; op is NULL when there is none (SEGUE_E_NOT_FOUND) or
 * the store failed. The op is borrowed. who: the owner; there is none of anybody else. */
typedef void (*sgi_found_fn)(void *user, sgi_op *op, segue_status status);
void sgi_server_find_task(segue_server *server, const sgi_principal *who, sgi_str task_id,
                          sgi_found_fn found, void *user);
void sgi_server_find_key(segue_server *server, const uint8_t key[SGI_DIGEST_SIZE],
                         sgi_found_fn found, void *user);

#endif
