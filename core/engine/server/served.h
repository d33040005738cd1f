/* The data that the server keeps with each operation: the call that made it, who may
 * access it, and the dialect in which clients see it. The data is in the same memory
 * block as the operation, so op->served is valid as long as the operation. */
#ifndef SGI_SERVED_H
#define SGI_SERVED_H

#include "engine/log/call_kind.h"
#include "engine/cluster/shared.h"

typedef struct sgi_item sgi_item;
typedef struct sgi_round sgi_round;
typedef struct sgi_srv_dialect sgi_srv_dialect;

/* What the client declared with the request that made the operation: a set of these
 * bits. */
enum sgi_cap {
    SGI_CAP_TASKS = 1,
    SGI_CAP_ELICITATION = 2,
    SGI_CAP_SAMPLING = 4,
    SGI_CAP_ROOTS = 8,
    SGI_CAP_PARTIAL = 16,
    /* questions that open a URL; SGI_CAP_ELICITATION alone means forms */
    SGI_CAP_ELICITATION_URL = 32,
    SGI_CAP_SAMPLING_TOOLS = 64,
    SGI_CAP_SAMPLING_TASK = 128, /* 2025-11-25: sampling can be requested as a task */
    SGI_CAP_ELICITATION_TASK = 256,
    /* 2025-11-25: the server may cancel tasks of the client */
    SGI_CAP_TASK_CANCEL = 512,
    /* 2026-07-28: the client has declared the tasks of 2025-11-25 */
    SGI_CAP_TASKS_2025 = 1024,
    /* 2025-11-25: the client accepts that segments which it has received become void */
    SGI_CAP_REPLACE = 2048,
    /* A capability that no client has. A question that requires it cannot be asked. */
    SGI_CAP_NOBODY = 1 << 30
};
/* The capabilities for questions to the client. */
#define SGI_CAPS_ASK                                                                     \
    ((uint32_t)(SGI_CAP_ELICITATION | SGI_CAP_ELICITATION_URL | SGI_CAP_SAMPLING |       \
                SGI_CAP_SAMPLING_TOOLS | SGI_CAP_ROOTS))

typedef struct sgi_served {
    sgi_shared shared;

    /* ---- the call ---- */
    const sgi_call_kind *kind;
    /* the item that the operation runs, a counted reference; NULL = the item was
     * removed */
    sgi_item *item;
    /* name of the tool or prompt, URI of the resource, or template to complete */
    char *item_name;
    char *params; /* the params of the call: a JSON object, as the client sent it */
    size_t params_len;
    /* points into params or own_arguments; empty = not looked up yet */
    sgi_json arguments;
    /* JSON object with the arguments; NULL = the arguments are in params */
    char *own_arguments;
    segue_call *call; /* the handler's handle, or NULL */

    /* ---- the caller ---- */
    struct sgi_principal *who; /* a counted reference */
    /* grant of the access token of the request; a counted reference, or NULL */
    struct sgi_grant *grant;
    uint32_t caps;  /* what the client has declared: a set of sgi_cap */
    bool is_scoped; /* the operation is limited to the scopes of its grant */
    /* the operation is counted among the live tasks of its principal */
    bool counted;

    /* ---- how the operation is represented ---- */
    /* the dialect of the task; NULL = the operation cannot be a task */
    const sgi_srv_dialect *dialect;
    bool is_task;
    /* the operation began as a plain call and may still become a task */
    bool may_turn;
    /* dialect S: the segments are sent while the handler runs */
    bool streams;
    /* dialect S: the response modes that the request lists: a set of sgi_response_mode */
    uint8_t listed_modes;
    uint8_t modes; /* the listed modes that may be used */
    /* before 2025-11-25: arguments that do not fit the schema are refused with -32602 */
    bool refuses_arguments;
    /* before 2026-07-28: a structuredContent that is not an object is left out of the
     * result */
    bool only_objects;
    int64_t asked_ttl_ms; /* the ttl that the client requested; 0 = none */
    int64_t poll_ms;      /* the poll interval that is sent to clients */
    /* number of segments that were appended together with the final entry */
    uint64_t closing_segments;
    /* fires after promote_after_ms: makes a plain call that still runs a task */
    sgi_timer promote;

    /* ---- clients that receive messages about the operation ---- */
    /* the open request of the call: progress and log messages are sent on it */
    struct sgi_reply *reply;
    /* the state of a plain call that asks its client (rounds.h) */
    sgi_round *round;
    /* the carried questions and answers (carried_answers.h), or NULL */
    struct sgi_carried_answers *carried;
    struct sgi_lasting *lasting; /* the state of a lasting call, or NULL (lasting.h) */
    /* the conversation that made the task (task_creator.h), or NULL */
    struct sgi_task_creator *creator;
} sgi_served;

/* Makes an operation for a tools/call. The caller may change its kind. The operation
 * holds a reference to the server. */
sgi_op *sgi_served_op_new(segue_server *server, sgi_str item_name, sgi_str params);
/* Sets the item that the operation runs and takes a reference to it; NULL = the item was
 * removed. */
void sgi_served_set_item(sgi_op *op, sgi_item *item);
/* Returns the arguments of the call; empty when the client sent none. */
sgi_json sgi_op_arguments(const sgi_op *op);
/* True when every segment stays a block of its own and no text is joined to an earlier
 * block. */
bool sgi_op_keeps_segments_apart(const sgi_op *op);

/* ---- the observer of the log (observer.c) ---- */

extern const struct sgi_log_observer sgi_server_observer;
extern const struct sgi_cluster_observer sgi_server_cluster_observer;
void sgi_served_configure_fold(const sgi_op *op, sgi_fold *fold);
/* Write and read the server's part of the stored record (served_record.c). */
void sgi_served_write(const sgi_op *op, segue_store_record *head, sgi_jw *w);
segue_status sgi_served_op_from_record(sgi_committer *committer,
                                       const segue_store_record *record, sgi_json data,
                                       sgi_op **out);
/* True when this is the record of a task of this dialect. False for any other record, and
 * for a record that cannot be read. */
bool sgi_record_is_task_of_dialect(sgi_engine *engine, const segue_store_record *record,
                                   const sgi_srv_dialect *dialect);

#endif
