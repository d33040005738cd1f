/* The side queue holds events of other threads (log lines, custom transports) until the
 * language's own thread takes them. The other threads must not touch the language.
 *
 * Log lines beyond SGB_LINES_MAX are dropped. The entries of a custom transport are
 * bounded by its limit of unwritten bytes (custom_transport.h). */
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
    size_t lines;              /* log lines in the queue */
    _Atomic bool due;          /* there is something to take */
    void (*wake)(void *owner); /* called when `due` becomes true, with the mutex held */
    void *owner;
} sgb_side_queue;

void sgb_side_init(sgb_side_queue *queue, void (*wake)(void *owner), void *owner);
void sgb_side_free(sgb_side_queue *queue);

/* Any thread: appends an entry with a copy of the text, and wakes the owner. text may be
 * NULL. False when there is no room or no memory. */
bool sgb_side_put(sgb_side_queue *queue, int kind, void *user, int64_t number,
                  const char *text, size_t len);
/* Any thread: wakes the owner although the queue may be empty. */
void sgb_side_wake(sgb_side_queue *queue);
/* May be called without the mutex. */
bool sgb_side_is_due(const sgb_side_queue *queue);
/* Takes all entries. The caller frees each with free. */
sgb_side *sgb_side_take(sgb_side_queue *queue);
/* Puts entries that could not be delivered back to the front of the queue. */
void sgb_side_put_back(sgb_side_queue *queue, sgb_side *first);

#endif
