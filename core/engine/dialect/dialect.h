/* A dialect: one way of showing an operation on the wire. One file here and one row in
 * dialects.c; what may be used when stands in negotiate.c. A dialect is a projection: it
 * reads record, log and cursor and changes nothing but by the verbs of task.h. */
#ifndef SGI_DIALECT_H
#define SGI_DIALECT_H

#include "engine/serving/peer.h"

typedef struct sgi_dialect {
    const char *name;
    uint32_t bit;              /* sgi_dialect_bit */
    const sgi_method *methods; /* its own, ended by a NULL name */
    /* Answers a tools/call with the task it became; NULL = makes no tasks. */
    void (*created)(sgi_reply *reply, const sgi_op *op);
    const char *extension; /* its name under capabilities.extensions; NULL = none */
} sgi_dialect;

/* All of them, ended by a NULL name. */
extern const sgi_dialect *const sgi_dialects[];

/* The one that makes tasks, of a set that was negotiated; NULL when none does. */
const sgi_dialect *sgi_dialect_of(uint32_t set);
/* The method of a dialect of the set; NULL when there is none. */
const sgi_method *sgi_dialect_method(uint32_t set, sgi_str name);

extern const sgi_dialect sgi_dialect_tasks_ext;   /* X */
extern const sgi_dialect sgi_dialect_task_events; /* E */

/* "capabilities":{...}, as server/discover (modern) or initialize has it. */
void sgi_write_capabilities(sgi_jw *w, const segue_server *server, bool modern);

/* ---- what X shares with E and with subscriptions ---- */

/* taskId, status, ... of a task as tasks/get shows it, into an object that is open. fold:
 * of a completed task, else ignored. */
void sgi_tasks_ext_write(sgi_jw *w, const sgi_op *op, const sgi_fold *fold);
/* params.taskId as plain text; false when it was refused. */
bool sgi_tasks_ext_id(const sgi_inbound *in, sgi_str *id);
/* May this peer see the operation, and is it a task? */
bool sgi_tasks_ext_visible(const sgi_peer *peer, const sgi_op *op);
/* What sgi_server_find_task found: the op when the asker may see it, else NULL and the
 * reply has been answered. */
sgi_op *sgi_tasks_ext_found(sgi_reply *reply, sgi_op *op, segue_status status);
/* -32021 for the tasks extension. */
void sgi_answer_missing_tasks(const sgi_inbound *in);

#define SGI_TASK_NOT_FOUND "Failed to retrieve task: Task not found"

#endif
