/* The side queue of a runtime. Other threads put events into the queue (log lines, events
 * of custom transports), because other threads must not touch the binding's language. The
 * language's own thread takes the events from the queue.
 *
 * Log lines and events beyond SGB_LINES_MAX are dropped. A custom transport limits its
 * unwritten bytes, which also limits its entries in the queue (custom_transport.h). */
#ifndef SGB_SIDE_QUEUE_H
#define SGB_SIDE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <segue/segue_ext.h>

#define SGB_LINES_MAX 1024

typedef struct sgb_side {
    struct sgb_side *next;
    void *user; /* the `user` of the custom transport; NULL for a log line or an event */
    int64_t number;
    int kind;
    size_t len;
    char text[];
} sgb_side;

typedef struct sgb_side_queue {
    pthread_mutex_t mutex;
    sgb_side *first, **last;
    size_t lines;     /* number of log lines and events in the queue */
    uint64_t dropped; /* number of events that were dropped and not reported yet */
    /* true = the queue has entries, or the owner was woken and has not taken the entries
     * yet */
    _Atomic bool due;
    /* wakes the owner; called with the mutex held when `due` becomes true */
    void (*wake)(void *owner);
    void *owner;
} sgb_side_queue;

void sgb_side_init(sgb_side_queue *queue, void (*wake)(void *owner), void *owner);
void sgb_side_free(sgb_side_queue *queue);

/* Appends an entry with a copy of the text and wakes the owner. `text` may be NULL. May
 * be called on any thread. Returns false when the queue has no room or when out of
 * memory. */
bool sgb_side_put(sgb_side_queue *queue, int kind, void *user, int64_t number,
                  const char *text, size_t len);
/* Appends an event of the library as a line of JSON (SGB_RUNTIME_EVENT). If earlier
 * events were dropped, an event that says so comes first. May be called on any thread. */
void sgb_side_put_event(sgb_side_queue *queue, const segue_event *event);
/* Wakes the owner of the queue, even if the queue is empty. May be called on any
 * thread. */
void sgb_side_wake(sgb_side_queue *queue);
/* Returns whether the owner should take entries from the queue. May be called without the
 * mutex. */
bool sgb_side_is_due(const sgb_side_queue *queue);
/* Takes all entries from the queue and returns them as a list. The caller must free each
 * entry with free(). */
sgb_side *sgb_side_take(sgb_side_queue *queue);
/* Puts a list of entries that could not be delivered back to the front of the queue. */
void sgb_side_put_back(sgb_side_queue *queue, sgb_side *first);

#endif
