/* The side queue holds events of other threads (log lines, custom transports) until
 * the language's own thread takes them, because the other threads must not touch the
 * language.
 *
 * Log lines beyond SGB_LINES_MAX are dropped. A custom transport limits its unwritten
 * bytes, and so its entries in the queue (custom_transport.h). */
#ifndef SGB_SIDE_QUEUE_H
#define SGB_SIDE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SGB_LINES_MAX 1024

typedef struct sgb_side {
    struct sgb_side *next;
    void *user; /* the user of the transport; NULL for a log line */
    int64_t number;
    int kind;
    size_t len;
    char text[];
} sgb_side;

typedef struct sgb_side_queue {
    pthread_mutex_t mutex;
    sgb_side *first, **last;
    size_t lines;              /* number of log lines in the queue */
    _Atomic bool due;          /* true = the queue has entries, or the owner was woken */
    void (*wake)(void *owner); /* called when `due` becomes true, with the mutex held */
    void *owner;
} sgb_side_queue;

void sgb_side_init(sgb_side_queue *queue, void (*wake)(void *owner), void *owner);
void sgb_side_free(sgb_side_queue *queue);

/* Appends an entry with a copy of the text (may be NULL), and wakes the owner. Called
 * on any thread. Returns false when there is no room or no memory. */
bool sgb_side_put(sgb_side_queue *queue, int kind, void *user, int64_t number,
                  const char *text, size_t len);
/* Wakes the owner, even if the queue is empty. Called on any thread. */
void sgb_side_wake(sgb_side_queue *queue);
/* Tells whether there are entries to take. May be called without the mutex. */
bool sgb_side_is_due(const sgb_side_queue *queue);
/* Takes all entries. The caller frees each with free. */
sgb_side *sgb_side_take(sgb_side_queue *queue);
/* Puts entries that could not be delivered back to the front of the queue. */
void sgb_side_put_back(sgb_side_queue *queue, sgb_side *first);

#endif
