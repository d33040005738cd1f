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

/* True for an entry that counts against SGB_LINES_MAX. */
static bool is_line(int kind)
{
    return kind == SGB_RUNTIME_LOG || kind == SGB_RUNTIME_EVENT;
}

bool sgb_side_put(sgb_side_queue *queue, int kind, void *user, int64_t number,
                  const char *text, size_t len)
{
    bool counts = is_line(kind);
    sgb_side *side = malloc(sizeof *side + len);
    if (!side)
        return false;
    *side = (sgb_side){.user = user, .number = number, .kind = kind, .len = len};
    if (len)
        memcpy(side->text, text, len);
    pthread_mutex_lock(&queue->mutex);
    bool has_room = !counts || queue->lines < SGB_LINES_MAX;
    if (has_room) {
        *queue->last = side;
        queue->last = &side->next;
        queue->lines += counts;
        wake(queue);
    }
    queue->dropped += !has_room && kind == SGB_RUNTIME_EVENT;
    pthread_mutex_unlock(&queue->mutex);
    if (!has_room)
        free(side);
    return has_room;
}

static void put_json(sgb_side_queue *queue, const segue_event *event)
{
    char room[1024], *text = room;
    size_t len = sizeof room;
    segue_status status = segue_event_json(event, text, &len);
    if (status == SEGUE_E_TOO_SMALL) {
        text = malloc(++len);
        status = text ? segue_event_json(event, text, &len) : SEGUE_E_NOMEM;
    }
    if (status == SEGUE_OK)
        sgb_side_put(queue, SGB_RUNTIME_EVENT, NULL, event->level, text, len);
    if (text != room)
        free(text);
}

/* Returns the number of dropped events, which the caller reports now. Returns 0 when the
 * queue has no room for the report and the next event. */
static uint64_t take_dropped(sgb_side_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    uint64_t dropped = queue->lines + 2 > SGB_LINES_MAX ? 0 : queue->dropped;
    queue->dropped -= dropped;
    pthread_mutex_unlock(&queue->mutex);
    return dropped;
}

void sgb_side_put_event(sgb_side_queue *queue, const segue_event *event)
{
    uint64_t dropped = take_dropped(queue);
    if (dropped) {
        segue_event report = {.struct_size = sizeof report,
                              .name = "events_dropped",
                              .level = SEGUE_LOG_WARNING,
                              .time_ms = event->time_ms,
                              .duration_us = -1,
                              .count = (int64_t)dropped};
        put_json(queue, &report);
    }
    put_json(queue, event);
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
    queue->lines += is_line(first->kind);
    while (tail->next) {
        tail = tail->next;
        queue->lines += is_line(tail->kind);
    }
    tail->next = queue->first;
    if (!queue->first)
        queue->last = &tail->next;
    queue->first = first;
    wake(queue);
    pthread_mutex_unlock(&queue->mutex);
}
