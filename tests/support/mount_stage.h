/* A host's HTTP server in miniature, for tests of exchanges by hand: it takes a request
 * as text in the form of HTTP/1.1, gives it to the listener of a stage (http_stage.h,
 * with by_hand), and keeps the answer. It checks the order of the callbacks. */
#ifndef MOUNT_STAGE_H
#define MOUNT_STAGE_H

#include "support/http_stage.h"

/* How the body of a request is given. */
typedef enum mount_way {
    MOUNT_WHOLE = 0, /* with the head */
    MOUNT_BYTES,     /* byte by byte, with turns of the loop between */
    MOUNT_PIECES,    /* in pieces of random lengths */
    MOUNT_OPEN       /* not at all: the test gives it */
} mount_way;

typedef struct mount_call {
    http_stage *s;
    segue_exchange *exchange;
    /* set before the begin; NULL = the defaults: a client of this machine at loopback */
    const char *peer, *local, *principal;
    void *context; /* of the exchange, with its function; NULL = there is none */
    segue_free_fn free_context;
    bool nowhere; /* peer and local are not known */
    bool is_tls;
    bool slow;       /* the host says nothing about sent bytes */
    bool free_early; /* the handle is freed at once */
    mount_way way;

    int status;
    char head[4096]; /* lines "name: value\n" */
    char *body;
    size_t len, unsent, most_unsent;
    int rooms;
    bool has_head, ended, freed;
    segue_status end;
} mount_call;

/* Begins an exchange with this request, whose text is not freed. Returns the status of
 * segue_exchange_open. The body is complete afterwards, unless the listener needs no more
 * of it. */
segue_status mount_begin(mount_call *c, http_stage *s, const char *request);
/* Runs the loop until the exchange has ended. */
void mount_finish(mount_call *c);
void mount_free(mount_call *c);
/* Begins, finishes, and checks the status. The request is freed. */
void mount_ask(mount_call *c, http_stage *s, char *request, int status);
/* Says that all given bytes were sent. */
void mount_sent(mount_call *c);

#endif
