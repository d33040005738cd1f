/* Stores notifications about a task that come before the answer which creates the task.
 * Over HTTP the two travel on different connections, and the notification may be faster.
 * While a request waits that may become a task, the latest status is stored of each task
 * that no request follows. */
#ifndef SGI_EARLY_STATUS_H
#define SGI_EARLY_STATUS_H

#include "base/thresholds.h"
#include "engine/client/dialects.h"

/* largest number of tasks; a new task replaces the oldest one */
#define SGI_EARLY_MAX SGI_THRESHOLD(early_max)
/* largest size of one status; a larger one is not stored */
#define SGI_EARLY_BYTES SGI_THRESHOLD(early_bytes)

typedef struct sgi_early_status {
    TAILQ_ENTRY(sgi_early_status) link;
    size_t len;
    char params[];
} sgi_early_status;

typedef struct sgi_early_status_list {
    TAILQ_HEAD(, sgi_early_status) all; /* the stored statuses, the oldest first */
    int32_t count;
} sgi_early_status_list;

/* Stores the params of a notifications/tasks/status whose task no request follows. */
void sgi_early_status_keep(segue_session *session, sgi_json params);
/* Passes the stored status of its task to a request that has just begun to follow the
 * task. */
void sgi_early_status_apply(segue_request *request);
/* Frees all stored statuses: the session ends, or no waiting request can become a
 * task. */
void sgi_early_status_free(segue_session *session, sgi_early_status_list *list);

#endif
