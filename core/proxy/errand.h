/* An errand: one short conversation of the proxy with its own server, as a client, over a
 * pair of transports, in the name of one principal. In this way the proxy makes, reads
 * and cancels the tasks of handles (handle.c). */
#ifndef PROXY_ERRAND_H
#define PROXY_ERRAND_H

#include "relay.h"
#include "service.h"

#include <segue/segue.h>

typedef enum purpose { GIVE_RESULT, GIVE_STATUS, CANCEL, MAKE } purpose;

typedef struct errand {
    struct errand *next;
    service *service;
    /* number of references: one of the session, and one of each request and timer */
    int32_t refs;
    purpose purpose;
    char *principal;
    /* the server's end of the pair, until the server asks for its principal; then NULL */
    segue_transport *there;
    segue_session *session;
    segue_task *task;
    segue_request *request;
    segue_timer *timer;
    /* the client's call; NULL = it was answered, or a relay has it (MAKE) */
    segue_call *call;
    relay *relay; /* MAKE: the relay of the client's call */
    /* MAKE: the relay has the call of the errand, and the client's call is its former
     * call */
    bool adopted;
    char note[NOTE_BYTES];
} errand;

/* Opens a conversation in the name of the principal. Returns NULL when this fails. */
errand *errand_begin(service *v, purpose why, const char *principal);
/* Closes the conversation. The errand is freed after its last callback. */
void errand_end(errand *e);
/* Drops a reference; a segue_free_fn. */
void errand_unref(void *user);

#endif
