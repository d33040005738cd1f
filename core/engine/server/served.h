/* The data that the server keeps with each operation: the call that made the operation,
 * who can access the operation, and the dialect in which clients see the operation. The
 * data is in the same memory block as the operation, so op->served is valid as long as
 * the operation. */
#ifndef SGI_SERVED_H
#define SGI_SERVED_H

#include "engine/log/call_kind.h"
#include "engine/cluster/shared.h"

typedef struct sgi_item sgi_item;
typedef struct sgi_client sgi_client;
typedef struct sgi_round sgi_round;
typedef struct sgi_srv_dialect sgi_srv_dialect;
typedef struct sgi_session_mark sgi_session_mark;

/* The declarations of a client in the request that made the operation: a set of these
 * bits. */
enum sgi_cap {
    SGI_CAP_TASKS = 1,
    SGI_CAP_ELICITATION = 2,
    SGI_CAP_SAMPLING = 4,
    SGI_CAP_ROOTS = 8,
    SGI_CAP_PARTIAL = 16,
    /* questions that open a URL; SGI_CAP_ELICITATION declares only questions by forms */
    SGI_CAP_ELICITATION_URL = 32,
    SGI_CAP_SAMPLING_TOOLS = 64,
    SGI_CAP_SAMPLING_TASK = 128, /* 2025-11-25: a server can request sampling as a task */
    SGI_CAP_ELICITATION_TASK = 256,
    /* 2025-11-25: the server can cancel tasks of the client */
    SGI_CAP_TASK_CANCEL = 512,
    /* 2026-07-28: the client has declared the tasks of 2025-11-25 */
    SGI_CAP_TASKS_2025 = 1024,
    /* 2025-11-25: the client accepts that a segment becomes void after the client
     * received it */
    SGI_CAP_REPLACE = 2048,
    /* A capability that no client has. A question that requires this capability cannot be
     * asked. */
    SGI_CAP_NOBODY = 1 << 30
};
/* The set of all capabilities by which a client declares that it answers questions. */
#define SGI_CAPS_ASK                                                                     \
    ((uint32_t)(SGI_CAP_ELICITATION | SGI_CAP_ELICITATION_URL | SGI_CAP_SAMPLING |       \
                SGI_CAP_SAMPLING_TOOLS | SGI_CAP_ROOTS))

typedef struct sgi_served_op_data {
    sgi_cluster_op_data shared;

    /* ---- facts ---- */
    uint32_t caps; /* the capabilities that the client has declared: a set of sgi_cap */
    /* true when the operation is in server->calls.waiting: it was interrupted, and waits
     * to run again (waiting_ops.h) */
    bool waits_to_run;
    bool is_scoped; /* the operation can use only the scopes that its `grant` contains */
    /* the principal's number of live tasks includes the operation */
    bool counted;
    /* for a task with segments (SEP-1905): the segments are sent to the client while the
     * handler runs */
    bool streams;
    /* the response modes (SEP-1905) that the request lists: a set of sgi_response_mode */
    uint8_t listed_modes;
    /* the listed response modes that the server may use: a set of sgi_response_mode */
    uint8_t modes;
    /* versions before 2025-11-25: a call whose arguments do not fit the schema is refused
     * with -32602 */
    bool refuses_arguments;
    /* versions before 2026-07-28: a structuredContent that is not an object is left out
     * of the result */
    bool only_objects;

    /* ---- the call ---- */
    const sgi_call_kind *kind;
    /* the item that the operation runs, a counted reference; NULL = the application has
     * removed the item */
    sgi_item *item;
    /* the params of the call: a JSON object, as the client sent it; like item_name in
     * op->text or in op->start */
    const char *params;
    size_t params_len;
    /* name of the tool or prompt, URI of the resource, or name of the item to complete */
    const char *item_name;
    /* the arguments of the call, inside own_arguments or params; empty = the arguments
     * are the member of params */
    sgi_json arguments;
    /* JSON object with the arguments, which the operation owns; NULL = the arguments are
     * in params */
    char *own_arguments;
    segue_call *call; /* the handler's handle; NULL = no handler runs */
    LIST_ENTRY(sgi_served_op_data) waiting; /* link in server->calls.waiting */

    /* ---- the caller ---- */
    struct sgi_principal *who; /* a counted reference */
    /* the rights (grant) that the request's access token gives, a counted reference; NULL
     * = the request had no token */
    struct sgi_grant *grant;
    /* what the handler learns of the HTTP request that made the call (origin.h), a
     * counted reference, until the call takes it; NULL = nothing */
    struct sgi_origin *origin;
    /* the span that the events of the call belong to (call_trace.h); NULL = that of the
     * request */
    char *trace_parent;
    /* number of the client that made the call (clients.h); 0 = none, or the clients are
     * not watched */
    uint64_t client;
    /* the client that the application asks by this operation, outside of a request; NULL
     * = the operation is not of this kind */
    sgi_client *asks;
    LIST_ENTRY(sgi_served_op_data) by_client;
    /* the mark of the session that made the call (session_mark.h); NULL = no session, or
     * the server knows its caller */
    char *session;

    /* ---- how the operation is represented ---- */
    /* the dialect of the task; NULL = the operation cannot be a task */
    const sgi_srv_dialect *dialect;
    /* the time to live that the client requested, in ms; 0 = the client requested none */
    int64_t asked_ttl_ms;
    int64_t poll_ms; /* the poll interval that clients get, in ms */
    /* number of segments that were appended together with the final entry */
    uint64_t closing_segments;
    /* fires after promote_after_ms and makes a plain call that still runs a task; or
     * after tool_wait_ms and ends an operation that waits for its tool */
    sgi_timer promote;

    /* ---- clients that receive messages about the operation ---- */
    /* the reply of the call's open request, on which progress and log messages are sent;
     * NULL = no request is open */
    struct sgi_reply *reply;
    /* the round of a plain call that asks its client questions (rounds.h); NULL = no
     * round */
    sgi_round *round;
    /* the questions and answers that the client has brought along from an earlier run
     * (carried_answers.h); NULL = none */
    struct sgi_carried_answers *carried;
    /* the state of a lasting call, whose client can leave and come back (lasting.h); NULL
     * = the call is not lasting */
    struct sgi_lasting_call *lasting;
    /* the conversation that made the task (task_creator.h); NULL = no task creator */
    struct sgi_task_creator *creator;
} sgi_served_op_data;

/* Makes an operation, by default for a tools/call; the caller can then set another kind.
 * The operation holds a reference to the server. Returns NULL when out of memory. */
sgi_op *sgi_served_op_new(segue_server *server, sgi_str item_name, sgi_str params);
/* Sets the item that the operation runs, and adds a reference to the item. item = NULL:
 * the application has removed the item. */
void sgi_served_set_item(sgi_op *op, sgi_item *item);
/* Returns the arguments of the call, or an empty value when the client sent no
 * arguments. */
sgi_json sgi_op_arguments(const sgi_op *op);
/* True when every segment becomes a separate block of the result, and no text is appended
 * to an earlier block. */
bool sgi_op_keeps_segments_apart(const sgi_op *op);

/* ---- the observer of the log (observer.c) ---- */

extern const struct sgi_log_observer sgi_server_observer;
extern const struct sgi_cluster_observer sgi_server_cluster_observer;
void sgi_served_configure_fold(const sgi_op *op, sgi_fold *fold);
/* These functions write and read the server's part of the stored record
 * (served_record.c). sgi_served_moves_texts: op->text has the params and the name from
 * now on, unless a handler that runs already may know the older ones. */
sgi_str sgi_served_name(const sgi_op *op);
bool sgi_served_moves_texts(sgi_op *op, const char *name, const char *data);
void sgi_served_write_record(const sgi_op *op, segue_store_record *head, sgi_jw *w);
segue_status sgi_served_op_from_record(sgi_committer *committer,
                                       const segue_store_record *record, sgi_json data,
                                       sgi_op **out);
/* True when the record is readable and belongs to an operation of this dialect that is a
 * task, or that can have become a task since the record was written. The mark of the
 * record must fit `asked` (session_mark.h). */
bool sgi_record_may_be_listed(sgi_engine *engine, const segue_store_record *record,
                              const sgi_srv_dialect *dialect,
                              const sgi_session_mark *asked);

#endif
