/* Commands on the connection that the vtable's calls use. A command is repeated until
 * it succeeds or until the time limit is over.
 *
 *     send -> replies -> done
 *        \-> connection lost, or a temporary error -> pause -> connect -> again
 *
 * A call that changes something has a number. Each try sends the same bytes with the
 * same number, and the script recognises a number that was already applied. Therefore it
 * is always safe to repeat a call. Calls that only read need no number. When the time
 * limit is over, the outcome of the last try is unknown, and the returned status says
 * that the store failed. */
#include "store/redis_store.h"

#include <stdio.h>
#include <time.h>

#include "base/backoff.h"

static const sgi_backoff PACE = {.first_ms = 5, .most_ms = 500};

/* ---- commands ---- */

void sgi_redis_arg_key(const sgi_redis_store *store, sgi_buf *commands, const char *name,
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

void sgi_redis_begin_script_on(const sgi_redis_store *store, const sgi_redis_link *link,
                               sgi_buf *commands, sgi_redis_script script, size_t count)
{
    sgi_redis_command_begin(commands, 4 + count);
    sgi_redis_arg_text(commands, "EVALSHA");
    sgi_redis_arg(commands, link->shas[script], SGI_REDIS_SHA);
    sgi_redis_arg_text(commands, "1");
    sgi_redis_arg_key(store, commands, "", NULL);
}

void sgi_redis_begin_script(sgi_redis_store *store, sgi_redis_script script, size_t count)
{
    sgi_redis_begin_script_on(store, &store->link, &store->commands, script, count);
}

void sgi_redis_begin_write_script(sgi_redis_store *store, sgi_redis_script script,
                                  size_t count)
{
    sgi_redis_begin_script(store, script, count + 3);
    sgi_redis_arg_text(&store->commands, store->me);
    sgi_redis_arg_int(&store->commands, (int64_t)++store->calls);
    sgi_redis_arg_text(&store->commands, store->lease);
}

/* ---- errors ---- */

typedef enum deed {
    GIVE_UP,   /* the error is permanent */
    TRY_AGAIN, /* the call had no effect, and the cause of the error can pass soon */
    RECONNECT, /* the call had no effect, and can succeed on a new connection */
} deed;

typedef struct fault {
    /* the first word of Redis's error text */
    const char *word;
    deed deed;
    segue_status status;
} fault;

/* The errors that Redis replies when it has written nothing for the call. A fault of a
 * disk, a replica or a configuration can be repaired soon, so the call is repeated. OOM
 * (out of memory) is not repeated, because memory becomes free only when operations end
 * or are purged. */
static const fault FAULTS[] = {
    {"OOM", GIVE_UP, SEGUE_E_STORE_FULL},     {"LOADING", TRY_AGAIN, SEGUE_E_STORE},
    {"BUSY", TRY_AGAIN, SEGUE_E_STORE},       {"MISCONF", TRY_AGAIN, SEGUE_E_STORE},
    {"NOREPLICAS", TRY_AGAIN, SEGUE_E_STORE}, {"TRYAGAIN", TRY_AGAIN, SEGUE_E_STORE},
    {"NOSCRIPT", RECONNECT, SEGUE_E_STORE},   {"READONLY", RECONNECT, SEGUE_E_STORE},
    {"MASTERDOWN", RECONNECT, SEGUE_E_STORE}, {"CLUSTERDOWN", RECONNECT, SEGUE_E_STORE},
    {"MOVED", RECONNECT, SEGUE_E_STORE},      {"ASK", RECONNECT, SEGUE_E_STORE},
    {"NOAUTH", RECONNECT, SEGUE_E_STORE},     {"NOPERM", GIVE_UP, SEGUE_E_STORE},
    {"CROSSSLOT", GIVE_UP, SEGUE_E_STORE},
};

/* True when the error starts with the word. In Redis 5 and 6 the error of a script is
 * inside a longer text: "ERR Error running script ...: -WORD ...". */
static bool means(const char *text, const char *word)
{
    size_t len = strlen(word);
    const char *at = text;
    if (!strncmp(at, word, len) && (at[len] == ' ' || !at[len]))
        return true;
    if (strncmp(text, "ERR Error running script", 24) != 0)
        return false;
    while ((at = strstr(at, word))) {
        if (at[-1] == '-' && at[len] == ' ')
            return true;
        at += len;
    }
    return false;
}

/* Returns how to handle an error reply. A killed script may be repeated, because Redis
 * kills only scripts that have not written yet. */
static fault fault_of(const char *text)
{
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++)
        if (means(text, FAULTS[i].word))
            return FAULTS[i];
    return (fault){NULL, strstr(text, "Script killed by user") ? TRY_AGAIN : GIVE_UP,
                   SEGUE_E_STORE};
}

/* ---- sending commands ---- */

static void free_replies(redisReply **replies, size_t count)
{
    for (size_t i = 0; i < count; i++)
        freeReplyObject(replies[i]);
}

typedef enum outcome {
    ANSWERED,
    REFUSED, /* Redis replied to one of the commands with a permanent error */
    AGAIN
} outcome;

static outcome judge(sgi_redis_store *store, redisReply **replies, size_t count,
                     segue_status *status)
{
    for (size_t i = 0; i < count; i++) {
        if (replies[i]->type != REDIS_REPLY_ERROR)
            continue;
        snprintf(store->link.fault, sizeof store->link.fault, "%s", replies[i]->str);
        fault f = fault_of(replies[i]->str);
        *status = f.status;
        free_replies(replies, count);
        if (f.deed == RECONNECT)
            sgi_redis_link_close(&store->link);
        return f.deed == GIVE_UP ? REFUSED : AGAIN;
    }
    return ANSWERED;
}

static outcome try_once(sgi_redis_store *store, size_t count, redisReply **replies,
                        int64_t deadline, segue_status *status)
{
    sgi_redis_link *link = &store->link;
    *status = SEGUE_E_STORE;
    if (!sgi_redis_link_is_up(link) &&
        sgi_redis_connect(store, link, deadline) != SEGUE_OK)
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

segue_status sgi_redis_execute(sgi_redis_store *store, size_t count, redisReply **replies)
{
    int64_t deadline = sgi_redis_monotonic_ms() + store->timeout_ms;
    if (store->commands.failed)
        return SEGUE_E_NOMEM;
    for (int32_t failures = 0;; failures++) {
        segue_status status;
        int64_t left = deadline - sgi_redis_monotonic_ms();
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

segue_status sgi_redis_execute_for_status(sgi_redis_store *store)
{
    redisReply *reply;
    segue_status status = sgi_redis_execute(store, 1, &reply);
    if (status)
        return status;
    status = reply->type == REDIS_REPLY_INTEGER ? (segue_status)reply->integer
                                                : SEGUE_E_STORE_CORRUPT;
    freeReplyObject(reply);
    return status;
}
