#include "side_queue.h"

#include <stdlib.h>
#include <string.h>

#include "events.h"

void sgb_side_init(sgb_side_queue *queue, void (*wake)(void *owner), void *owner)
{
    pthread_mutex_init(&queue->mutex, NULL);
    queue->last = &queue->first;
    queue->wake = wake;
    queue->owner = owner;
}

void sgb_side_free(sgb_side_queue *queue)
{
    while (queue->first) {
        sgb_side *next = queue->first->next;
        free(queue->first);
        queue->first = next;
    }
    pthread_mutex_destroy(&queue->mutex);
}

static void wake(sgb_side_queue *queue)
{
    if (!atomic_exchange(&queue->due, true))
        queue->wake(queue->owner);
}

bool sgb_side_put(sgb_side_queue *queue, int kind, void *user, int64_t number,
                  const char *text, size_t len)
{
    bool is_line = kind == SGB_RUNTIME_LOG;
    sgb_side *side = malloc(sizeof *side + len);
    if (!side)
        return false;
    *side = (sgb_side){.user = user, .number = number, .kind = kind, .len = len};
    if (len)
        memcpy(side->text, text, len);
    pthread_mutex_lock(&queue->mutex);
    bool has_room = !is_line || queue->lines < SGB_LINES_MAX;
    if (has_room) {
        *queue->last = side;
        queue->last = &side->next;
        queue->lines += is_line;
        wake(queue);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (!has_room)
        free(side);
    return has_room;
}

void sgb_side_wake(sgb_side_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    wake(queue);
    pthread_mutex_unlock(&queue->mutex);
}

bool sgb_side_is_due(const sgb_side_queue *queue)
{
    return atomic_load_explicit(&queue->due, memory_order_acquire);
}

sgb_side *sgb_side_take(sgb_side_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    sgb_side *first = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    queue->lines = 0;
    atomic_store(&queue->due, false);
    pthread_mutex_unlock(&queue->mutex);
    return first;
}

void sgb_side_put_back(sgb_side_queue *queue, sgb_side *first)
{
    sgb_side *tail = first;
    pthread_mutex_lock(&queue->mutex);
    queue->lines += first->kind == SGB_RUNTIME_LOG;
    while (tail->next) {
        tail = tail->next;
        queue->lines += tail->kind == SGB_RUNTIME_LOG;
    }
    tail->next = queue->first;
    if (!queue->first)
        queue->last = &tail->next;
    queue->first = first;
    wake(queue);
    pthread_mutex_unlock(&queue->mutex);
}
