/* Stores notifications about a task that come before the answer which creates the task.
 * Over HTTP the notification and the answer travel on different connections, and the
 * notification may be faster. While a waiting request may become a task, the session
 * stores the latest status of each task that no request follows. */
#ifndef SGI_EARLY_STATUS_H
#define SGI_EARLY_STATUS_H

#include "base/thresholds.h"
#include "engine/client/dialects.h"

/* The largest number of tasks whose status is stored. The status of a new task replaces
 * that of the oldest one. */
#define SGI_EARLY_MAX SGI_THRESHOLD(early_max)
/* The largest size of one status in bytes. A larger status is not stored. */
#define SGI_EARLY_BYTES SGI_THRESHOLD(early_bytes)

typedef struct sgi_early_status {
    TAILQ_ENTRY(sgi_early_status) link;
    size_t len;
    char params[];
} sgi_early_status;

typedef struct sgi_early_status_list {
    /* the stored statuses; the oldest status is first */
    TAILQ_HEAD(, sgi_early_status) all;
    int32_t count;
} sgi_early_status_list;

/* Stores the params of a notifications/tasks/status. Called when no request follows the
 * task. */
void sgi_early_status_keep(segue_session *session, sgi_json params);
/* Passes the stored status of a task to the request that has just begun to follow the
 * task. */
void sgi_early_status_apply(segue_request *request);
/* Frees all stored statuses. Called when the session ends, or when no waiting request can
 * become a task any more. */
void sgi_early_status_free(segue_session *session, sgi_early_status_list *list);

#endif
