/* What a server says of a task before the answer that creates it has come: over HTTP a
 * notification and an answer take different ways, and the first may overtake the second.
 * The latest status of each task that no request follows is kept for as long as a request
 * waits that may become a task. */
#ifndef SGI_EARLY_STATUS_H
#define SGI_EARLY_STATUS_H

#include "wire/json_read.h"

#include <sys/queue.h>

#define SGI_EARLY_MAX 32     /* tasks; the oldest makes room */
#define SGI_EARLY_BYTES 4096 /* of one status; a longer one is not kept */

struct segue_session;
struct segue_request;

typedef struct sgi_early {
    TAILQ_ENTRY(sgi_early) link;
    size_t len;
    char params[];
} sgi_early;

typedef struct sgi_early_list {
    TAILQ_HEAD(, sgi_early) all; /* the oldest first */
    int32_t count;
} sgi_early_list;

/* params of notifications/tasks/status about a task that no request follows. */
void sgi_early_keep(struct segue_session *session, sgi_json params);
/* The request has begun to follow its task: it hears what was kept of it. */
void sgi_early_tell(struct segue_request *request);
/* The session ends. */
void sgi_early_free(struct segue_session *session);

#endif
