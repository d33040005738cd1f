/* The eventfd with which libwebsockets wakes a context. libwebsockets 4.2 and 4.3 do not
 * close this eventfd when the context is destroyed, so each context would leak a
 * descriptor. This file finds the eventfd before the context is destroyed, and closes the
 * eventfd afterwards if libwebsockets has not closed it. */
#ifndef SEGUE_WAKE_DESCRIPTOR_H
#define SEGUE_WAKE_DESCRIPTOR_H

struct lws_context;

typedef struct sgi_wake_descriptor {
    int fd; /* the context's eventfd; -1 = not found */
    /* a duplicate of `fd`, which shows later whether the number `fd` still is the same
     * eventfd */
    int twin;
} sgi_wake_descriptor;

/* Finds the eventfd of the context. Nothing else must read the eventfd during the call,
 * so only the thread of the context calls the function. Without /proc the eventfd is not
 * found. */
sgi_wake_descriptor sgi_wake_descriptor_find(struct lws_context *context);

/* Closes the eventfd if it is still open. To be called after the context was
 * destroyed. */
void sgi_wake_descriptor_close(sgi_wake_descriptor wake);

#endif
