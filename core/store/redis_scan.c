/* Shows the operations of a Redis store. The hash from task ids to ids is read in steps
 * of HSCAN, whose cursor is the place of the scan, and the operations of a step are found
 * together. HSCAN may return a task id twice. */
#include "store/redis_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thresholds.h"

#define STEP SGI_THRESHOLD(scan_step)
#define AT_ONCE 16 /* operations that are found with one exchange */

typedef struct scan {
    sgi_redis_store *store;
    segue_store_record_fn fn;
    void *user;
    uint64_t cursor; /* 0 = the scan is at its beginning, or over */
    bool stop;
} scan;

static segue_status read_step(scan *s, redisReply **step)
{
    sgi_redis_store *store = s->store;
    sgi_buf *commands = &store->commands;
    char cursor[24];
    snprintf(cursor, sizeof cursor, "%" PRIu64, s->cursor);
    sgi_buf_reset(commands, SIZE_MAX);
    sgi_redis_command_begin(commands, 5);
    sgi_redis_arg_text(commands, "HSCAN");
    sgi_redis_arg_key(store, commands, "task", NULL);
    sgi_redis_arg_text(commands, cursor);
    sgi_redis_arg_text(commands, "COUNT");
    sgi_redis_arg_int(commands, STEP);
    segue_status status = sgi_redis_execute(store, 1, step);
    if (status)
        return status;
    const redisReply *reply = *step;
    if (sgi_redis_is_array(reply, 2) && sgi_redis_is_text(reply->element[0]) &&
        sgi_redis_is_array(reply->element[1], 0)) {
        s->cursor = strtoull(reply->element[0]->str, NULL, 10);
        return SEGUE_OK;
    }
    freeReplyObject(*step);
    return SEGUE_E_STORE_CORRUPT;
}

/* Passes a record to the callback. An operation that is gone meanwhile is left out. */
static segue_status show(scan *s, const redisReply *found)
{
    segue_store_record record;
    char text[SGI_STORE_TASK_MAX + 1];
    if (found->type == REDIS_REPLY_INTEGER)
        return found->integer == SEGUE_E_NOT_FOUND ? SEGUE_OK
                                                   : (segue_status)found->integer;
    if (!sgi_redis_is_array(found, 4) ||
        !sgi_redis_fill_record(found->element, &record, text))
        return SEGUE_E_STORE_CORRUPT;
    s->stop = s->stop || s->fn(s->user, &record) != 0;
    return SEGUE_OK;
}

/* Finds up to `count` operations, whose task ids are each second element of `names`. */
static segue_status show_some(scan *s, redisReply *const *names, size_t count)
{
    redisReply *found[AT_ONCE];
    sgi_redis_store *store = s->store;
    sgi_buf_reset(&store->commands, SIZE_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!sgi_redis_is_text(names[2 * i]))
            return SEGUE_E_STORE_CORRUPT;
        sgi_redis_begin_script(store, SGI_REDIS_FIND, 2);
        sgi_redis_arg_text(&store->commands, "task");
        sgi_redis_arg(&store->commands, names[2 * i]->str, names[2 * i]->len);
    }
    segue_status status = sgi_redis_execute(store, count, found);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        segue_status shown = s->stop ? SEGUE_OK : show(s, found[i]);
        if (shown && (!status || status == SEGUE_E_STORE_CORRUPT))
            status = shown;
        freeReplyObject(found[i]);
    }
    return status;
}

static segue_status show_step(scan *s, const redisReply *names)
{
    segue_status all = SEGUE_OK;
    size_t count = names->elements / 2;
    for (size_t at = 0; at < count && !s->stop;) {
        size_t some = count - at < AT_ONCE ? count - at : AT_ONCE;
        segue_status status = show_some(s, names->element + 2 * at, some);
        if (status == SEGUE_E_STORE_CORRUPT)
            all = status;
        else if (status)
            return status;
        at += some;
    }
    return all;
}

segue_status sgi_redis_scan(void *self, uint64_t *place, segue_store_record_fn fn,
                            void *user)
{
    scan s = {.store = self, .fn = fn, .user = user, .cursor = *place};
    redisReply *step;
    segue_status status = read_step(&s, &step);
    if (status)
        return status;
    status = show_step(&s, step->element[1]);
    freeReplyObject(step);
    *place = s.cursor;
    return status;
}
