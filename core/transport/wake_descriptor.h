/* The eventfd by which libwebsockets wakes a context. Versions 4.2 and 4.3 do not close
 * it when the context is destroyed: their close path skips it, and then forgets its
 * number. So each context costs a descriptor. This file finds the eventfd before the end
 * of the context and closes it afterwards if the library has not. */
#ifndef SEGUE_WAKE_DESCRIPTOR_H
#define SEGUE_WAKE_DESCRIPTOR_H

struct lws_context;

typedef struct sgi_wake_descriptor {
    int fd;   /* the number that the context uses; -1 = not found */
    int twin; /* a duplicate; it shows whether `fd` is still the same eventfd */
} sgi_wake_descriptor;

/* Finds the eventfd of the context. Nobody may read the eventfd meanwhile, so the caller
 * is the thread of the context. Without /proc nothing is found. */
sgi_wake_descriptor sgi_wake_descriptor_find(struct lws_context *context);

/* Closes the eventfd if it is still open, after the context was destroyed. */
void sgi_wake_descriptor_close(sgi_wake_descriptor wake);

#endif
