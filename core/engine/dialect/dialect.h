/* A dialect: one way of showing an operation on the wire. One file here and one row in
 * dialects.c; what may be used when stands in negotiate.c. A dialect is a projection: it
 * reads record, log and cursor and changes nothing but by the verbs of task.h. The rules
 * that comments name (R-...) stand in core/docs/requirements.md. */
#ifndef SGI_DIALECT_H
#define SGI_DIALECT_H

#include "engine/serving/peer.h"

typedef struct sgi_dialect {
    const char *name;
    uint32_t bit;              /* sgi_dialect_bit */
    const sgi_method *methods; /* its own, ended by a NULL name */
    /* Answers a tools/call with the task it became, and closes the reply, now or later;
     * NULL = makes no tasks. */
    void (*created)(sgi_reply *reply, sgi_op *op);
    const char *extension; /* its name under capabilities.extensions; NULL = none */
    int64_t ttl_unit_ms; /* its tasks live whole multiples of it; 0 = any number of ms */
} sgi_dialect;

/* All of them, ended by a NULL name. */
extern const sgi_dialect *const sgi_dialects[];

/* The one that makes tasks, of a set that was negotiated; NULL when none does. */
const sgi_dialect *sgi_dialect_of(uint32_t set);
/* By its stored name; NULL when there is none. */
const sgi_dialect *sgi_dialect_named(sgi_str name);
/* The method of a dialect of the set; NULL when there is none. */
const sgi_method *sgi_dialect_method(uint32_t set, sgi_str name);

extern const sgi_dialect sgi_dialect_tasks_2025;     /* L, and S with it */
extern const sgi_dialect sgi_dialect_tasks_2557;     /* D */
extern const sgi_dialect sgi_dialect_tasks_ext;      /* X */
extern const sgi_dialect sgi_dialect_task_events;    /* E */
extern const sgi_dialect sgi_dialect_partial;        /* P */
extern const sgi_dialect sgi_dialect_partial_result; /* PN */
extern const sgi_dialect sgi_dialect_resumable;      /* Z */

/* "capabilities":{...}, as server/discover (modern) or initialize has it. */
void sgi_write_capabilities(sgi_jw *w, const sgi_inbound *in);

/* ---- what the dialects of tasks share (tasks.c) ---- */

/* Names of a task's numbers; the other members are called the same everywhere. */
typedef struct sgi_task_names {
    const char *ttl, *poll;
    int64_t ttl_unit_ms; /* 0 = 1 */
} sgi_task_names;

/* taskId, status, statusMessage, stamps, ttl, poll interval: into an object that is
 * open. */
void sgi_task_write(sgi_jw *w, const sgi_op *op, const char *status,
                    const sgi_task_names *names);
/* "inputRequests":{...}: all that are open. */
void sgi_task_write_inputs(sgi_jw *w, const sgi_op *op);
/* Members of _meta for a client that may have been shown segments of a result: up to
 * which one it was replaced, if it was, and how many there were, if text went on: then
 * its blocks are not its segments. */
void sgi_task_add_shown(sgi_buf *meta, const sgi_fold *fold);
/* The members of the result that a completed task has in it (D, X). */
void sgi_task_write_result(sgi_jw *w, const sgi_op *op, const sgi_fold *fold);
/* The task has ended, with this status: it cannot be cancelled (L, D). */
void sgi_task_refuse_cancel(sgi_reply *reply, const char *status);
/* params.taskId as plain text; false when it was refused. */
bool sgi_task_id_of(const sgi_inbound *in, sgi_str *id);
/* Is it a task that this dialect shows, and may this peer see it? */
bool sgi_task_is_visible(const sgi_peer *peer, const sgi_op *op,
                         const sgi_dialect *dialect);
/* What sgi_server_find_task found: the op when the asker may see it, else NULL and the
 * reply has been answered. */
sgi_op *sgi_task_found(sgi_reply *reply, sgi_op *op, segue_status status,
                       const sgi_dialect *dialect);
/* The reply says that the result is in the store and cannot be read. */
void sgi_task_answer_unreadable(sgi_reply *reply);

/* ---- L ---- */

/* May this peer have tasks of 2025-11-25? version: of its session. */
bool sgi_tasks_2025_are_for(const sgi_peer *peer, sgi_version version);
/* The member of the capabilities of initialize, if it may. */
void sgi_tasks_2025_write_capability(sgi_jw *w, const sgi_inbound *in);

/* ---- D ---- */

/* Does this conversation speak it, and may it have tasks? version: of its session. */
static inline bool sgi_tasks_2557_are_for(const sgi_peer *peer, sgi_version version)
{
    return version == SGI_VERSION_DRAFT_2026_V1 && !peer->stranger;
}
/* A task as tasks/get shows it, without resultType, into an object that is open. fold: of
 * a completed task, else ignored. */
void sgi_tasks_2557_write(sgi_jw *w, const sgi_op *op, const sgi_fold *fold);

/* ---- X ---- */

/* A task as tasks/get shows it, into an object that is open. fold: of a completed task,
 * else ignored. */
void sgi_tasks_ext_write(sgi_jw *w, const sgi_op *op, const sgi_fold *fold);
/* -32021 for the tasks extension. */
void sgi_answer_missing_tasks(const sgi_inbound *in);
void sgi_reply_missing_tasks(sgi_reply *reply);

/* ---- Z ---- */

/* Has its client declared it, and is it on? */
bool sgi_resumables_are_for(const sgi_peer *peer);
/* May a request of this method have an id that is in flight? */
bool sgi_resumable_may_reuse(const sgi_peer *peer, sgi_str method);

#define SGI_TASK_NOT_FOUND "Failed to retrieve task: Task not found"

#endif
