/* Asking the server on the connection of the calls, again and again if need be.
 *
 *     send -> replies -> done
 *       \-> lost, LOADING, NOSCRIPT, READONLY, ... -> pause -> connect -> the same bytes
 *
 * The bytes are the same, so a call that changes something has the number of its first
 * try and the script knows when it has been applied: asking again is always right. What
 * reads can be asked twice anyway. When the time limit is over the outcome of the last
 * try is not known, and the status says that the store failed. */
#include "store/redis_store.h"

#include <stdio.h>
#include <time.h>

#include "base/backoff.h"

static const sgi_backoff PACE = {.first_ms = 5, .most_ms = 500};

/* ---- commands ---- */

void sgi_redis_key(const sgi_redis_store *store, sgi_buf *commands, const char *name,
                   const uint8_t *id)
{
    size_t keys = strlen(store->keys), len = strlen(name);
    sgi_redis_arg_begin(commands, keys + len + (id ? SEGUE_STORE_ID_SIZE : 0));
    sgi_buf_add(commands, store->keys, keys);
    sgi_buf_add(commands, name, len);
    if (id)
        sgi_buf_add(commands, id, SEGUE_STORE_ID_SIZE);
    sgi_redis_arg_end(commands);
}

void sgi_redis_call_on(const sgi_redis_store *store, const sgi_redis_link *link,
                       sgi_buf *commands, sgi_redis_script script, size_t count)
{
    sgi_redis_begin(commands, 4 + count);
    sgi_redis_arg_text(commands, "EVALSHA");
    sgi_redis_arg(commands, link->shas[script], SGI_REDIS_SHA);
    sgi_redis_arg_text(commands, "1");
    sgi_redis_key(store, commands, "", NULL);
}

void sgi_redis_call(sgi_redis_store *store, sgi_redis_script script, size_t count)
{
    sgi_redis_call_on(store, &store->link, &store->commands, script, count);
}

void sgi_redis_change(sgi_redis_store *store, sgi_redis_script script, size_t count)
{
    sgi_redis_call(store, script, count + 3);
    sgi_redis_arg_text(&store->commands, store->me);
    sgi_redis_arg_int(&store->commands, (int64_t)++store->calls);
    sgi_redis_arg_text(&store->commands, store->lease);
}

/* ---- errors ---- */

static bool says(const redisReply *reply, const char *word)
{
    return strstr(reply->str, word) != NULL;
}

segue_status sgi_redis_fault(const redisReply *reply)
{
    return says(reply, "OOM command not allowed") ? SEGUE_E_STORE_FULL : SEGUE_E_STORE;
}

/* Nothing was done, and soon it may be otherwise. */
static bool is_passing(const redisReply *reply)
{
    static const char *const words[] = {"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(reply->str, words[i], strlen(words[i])))
            return true;
    return false;
}

/* Another connection may do better: it loads the scripts, it may reach another server. */
static bool needs_new_link(const redisReply *reply)
{
    return !strncmp(reply->str, "NOSCRIPT", 8) || says(reply, "READONLY");
}

/* ---- asking ---- */

static void free_replies(redisReply **replies, size_t count)
{
    for (size_t i = 0; i < count; i++)
        freeReplyObject(replies[i]);
}

typedef enum outcome {
    ANSWERED,
    REFUSED, /* by an error that stays */
    AGAIN
} outcome;

static outcome judge(sgi_redis_store *store, redisReply **replies, size_t count,
                     segue_status *status)
{
    for (size_t i = 0; i < count; i++) {
        if (replies[i]->type != REDIS_REPLY_ERROR)
            continue;
        snprintf(store->link.fault, sizeof store->link.fault, "%s", replies[i]->str);
        bool renew = needs_new_link(replies[i]), passing = is_passing(replies[i]);
        *status = sgi_redis_fault(replies[i]);
        free_replies(replies, count);
        if (renew)
            sgi_redis_link_close(&store->link);
        return renew || passing ? AGAIN : REFUSED;
    }
    return ANSWERED;
}

static outcome try_once(sgi_redis_store *store, size_t count, redisReply **replies,
                        int64_t deadline, segue_status *status)
{
    sgi_redis_link *link = &store->link;
    *status = SEGUE_E_STORE;
    if (!sgi_redis_link_is_up(link) && sgi_redis_link_open(link, deadline) != SEGUE_OK)
        return AGAIN;
    if (!sgi_redis_link_send(link, store->commands.p, store->commands.len))
        return AGAIN;
    for (size_t i = 0; i < count; i++) {
        replies[i] = sgi_redis_link_reply(link, deadline);
        if (!replies[i]) {
            free_replies(replies, i);
            return AGAIN;
        }
    }
    return judge(store, replies, count, status);
}

static void pause_for(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    if (ms > 0)
        nanosleep(&time, NULL);
}

segue_status sgi_redis_ask(sgi_redis_store *store, size_t count, redisReply **replies)
{
    int64_t deadline = sgi_redis_now() + store->timeout_ms;
    if (store->commands.failed)
        return SEGUE_E_NOMEM;
    for (int32_t failures = 0;; failures++) {
        segue_status status;
        int64_t left = deadline - sgi_redis_now();
        int64_t wait = sgi_backoff_ms(&PACE, failures);
        if (failures && left <= 0)
            return SEGUE_E_STORE;
        pause_for(wait < left ? wait : left > 0 ? left : 0);
        outcome how = try_once(store, count, replies, deadline, &status);
        if (how == ANSWERED)
            return SEGUE_OK;
        if (how == REFUSED)
            return status;
    }
}

segue_status sgi_redis_ask_status(sgi_redis_store *store)
{
    redisReply *reply;
    segue_status status = sgi_redis_ask(store, 1, &reply);
    if (status)
        return status;
    status = reply->type == REDIS_REPLY_INTEGER ? (segue_status)reply->integer
                                                : SEGUE_E_STORE_CORRUPT;
    freeReplyObject(reply);
    return status;
}
