/* The store on a Redis server that several servers of this library share: opening,
 * closing and the vtable. redis_script.c describes the keys and the atomic scripts;
 * redis_store.h lists the other files.
 *
 * Each instance is an owner. The owner's name has two parts: a number that Redis gives
 * out once, and a random part. The random part makes the name unique even when Redis
 * has lost its data. An owner is alive while its lease is in Redis; the thread of the
 * instance renews the lease. The script of each commit checks that the operation
 * belongs to this owner. Therefore no clock decides whether an instance may write.
 *
 *     open:  connect (right server? which data?) -> become an owner -> start the thread
 *     close: end the thread -> give up the lease, so others claim at once -> disconnect
 *
 * The settings of the Redis server decide which data survive when Redis stops. With
 * "appendfsync always", every commit survives that Redis has confirmed. With
 * "everysec", the commits of the last second can be lost; a server of this library
 * then finds a hole in the log of an operation (SEGUE_E_STATE) and ends the operation.
 * Without AOF, everything since the last snapshot is lost. This library changes no
 * setting of Redis. */
#include "store/redis_store.h"

#include "base/thresholds.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/limit.h"

#define TIMEOUT_MS 5000
#define LEASE_MS SGI_THRESHOLD(redis_lease_ms)
#define LEASE_LEAST_MS 100
#define TIME_MOST_MS ((int64_t)24 * 3600 * 1000)

typedef struct opening {
    sgi_redis_store *store;
    char *message;
    size_t size;
} opening;

__attribute__((format(printf, 3, 4))) static segue_status
fail(opening *o, segue_status status, const char *format, ...)
{
    if (!o->message || !o->size)
        return status;
    int n = snprintf(o->message, o->size, "redis %s: ", o->store->url.shown);
    if (n < 0 || (size_t)n >= o->size)
        return status;
    va_list args;
    va_start(args, format);
    sgi_text_vformat(o->message + n, o->size - (size_t)n, format, args);
    va_end(args);
    return status;
}

/* ---- opening ---- */

static segue_status ask(opening *o, redisReply **reply)
{
    segue_status status = sgi_redis_execute(o->store, 1, reply);
    if (status && status != SEGUE_E_NOMEM)
        fail(o, status, "%s", o->store->link.fault);
    return status;
}

static segue_status become_owner(opening *o)
{
    sgi_redis_store *store = o->store;
    redisReply *reply;
    uint8_t chance[4];
    char text[12];
    if (sgi_crypto_random(NULL, chance, sizeof chance))
        return fail(o, SEGUE_E_STORE, "the system gives no random bytes");
    snprintf(text, sizeof text, "%02x%02x%02x%02x", chance[0], chance[1], chance[2],
             chance[3]);
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin_script(store, SGI_REDIS_OPEN, 3);
    sgi_redis_arg_text(&store->commands, text);
    sgi_redis_arg_text(&store->commands, SGI_REDIS_FORMAT_TEXT);
    sgi_redis_arg_text(&store->commands, store->lease);
    segue_status status = ask(o, &reply);
    if (status)
        return status;
    if (sgi_redis_is_text(reply))
        status = fail(o, SEGUE_E_STORE_CORRUPT,
                      "the data with the prefix \"%s\" were written by a newer version "
                      "of Segue (format %.20s, this version reads up to %d)",
                      store->url.prefix, reply->str, SGI_REDIS_FORMAT);
    else if (!sgi_redis_is_array(reply, 2) || !sgi_redis_is_text(reply->element[0]) ||
             reply->element[0]->len >= sizeof store->me)
        status = fail(o, SEGUE_E_STORE_CORRUPT, "Redis sent an unexpected answer");
    if (!status) {
        memcpy(store->me, reply->element[0]->str, reply->element[0]->len + 1);
        atomic_store(&store->format.number, (int)reply->element[1]->integer);
    }
    freeReplyObject(reply);
    return status;
}

/* Connects to the Redis server. While the server loads its data, the function tries again
 * until the time limit. After any other failure it does not try again. */
static segue_status connect_server(opening *o)
{
    sgi_redis_store *store = o->store;
    int64_t deadline = sgi_time_add(sgi_redis_monotonic_ms(), store->timeout_ms);
    for (;;) {
        segue_status status = sgi_redis_connect(store, &store->link, deadline);
        if (!status)
            return SEGUE_OK;
        if (strncmp(store->link.fault, "LOADING", 7) != 0 ||
            sgi_redis_monotonic_ms() >= deadline)
            return fail(o, status, "%s", store->link.fault);
        usleep(20000);
    }
}

/* ---- making and freeing ---- */

static void say_good_bye(sgi_redis_store *store)
{
    if (!sgi_redis_link_is_up(&store->link) || !*store->me)
        return;
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin_write_script(store, SGI_REDIS_BYE, 0);
    if (store->commands.failed ||
        !sgi_redis_link_send(&store->link, store->commands.p, store->commands.len))
        return;
    int64_t limit = store->timeout_ms < 1000 ? store->timeout_ms : 1000;
    redisReply *reply =
        sgi_redis_link_reply(&store->link, sgi_redis_monotonic_ms() + limit);
    if (reply)
        freeReplyObject(reply);
}

static void free_store(void *self)
{
    sgi_redis_store *store = self;
    sgi_redis_watch_stop(store);
    say_good_bye(store);
    sgi_redis_link_close(&store->link);
    sgi_buf_free(&store->loading);
    sgi_buf_free(&store->commands);
    sgi_buf_free(&store->beat_commands);
    sgi_store_feed_free(&store->feed);
    pthread_cond_destroy(&store->has_tried);
    sgi_mem mem = store->mem;
    explicit_bzero(&store->url, sizeof store->url);
    sgi_free(&mem, store, sizeof *store);
}

static int32_t records(void *self)
{
    sgi_redis_store *store = self;
    return sgi_store_format_records(&store->format, SGI_REDIS_FORMAT_OF_RECORDS_2);
}

static void stats(void *self, segue_store_stats *out)
{
    sgi_redis_store *store = self;
    pthread_mutex_lock(&store->feed.lock);
    out->operations = store->operations;
    pthread_mutex_unlock(&store->feed.lock);
    out->bytes = -1;
    out->evicted = store->evicted;
    out->purged = store->purged;
}

static segue_status take_options(opening *o, const segue_store_options *options)
{
    sgi_redis_store *store = o->store;
    int64_t timeout = options ? options->timeout_ms : 0;
    int64_t lease = options ? options->lease_ms : 0;
    char why[SGI_RANGE_TOLD];
    store->timeout_ms = timeout ? timeout : TIMEOUT_MS;
    store->lease_ms = lease ? lease : LEASE_MS;
    store->max_operations = options ? options->max_principal_operations : 0;
    store->max_bytes = options ? options->max_principal_bytes : 0;
    const sgi_range numbers[] = {
        {"timeout_ms", store->timeout_ms, 0, TIME_MOST_MS},
        {"lease_ms", store->lease_ms, LEASE_LEAST_MS, TIME_MOST_MS},
        {"max_principal_operations", store->max_operations, 0, INT64_MAX},
        {"max_principal_bytes", store->max_bytes, 0, INT64_MAX},
    };
    if (!sgi_ranges_check(numbers, sizeof numbers / sizeof *numbers, why, sizeof why))
        return fail(o, SEGUE_E_INVALID, "%s", why);
    snprintf(store->lease, sizeof store->lease, "%lld", (long long)store->lease_ms);
    snprintf(store->keys, sizeof store->keys, "{%s}:", store->url.prefix);
    return SEGUE_OK;
}

/* Initialises every member, so that free_store may be called after any later failure. */
static void init(sgi_redis_store *store, const sgi_mem *mem)
{
    store->mem = *mem;
    store->stop_fd = -1;
    store->operations = -1;
    sgi_store_feed_init(&store->feed, &store->mem);
    sgi_buf_init(&store->loading, &store->mem);
    sgi_buf_init(&store->commands, &store->mem);
    sgi_buf_init(&store->beat_commands, &store->mem);
    pthread_cond_init(&store->has_tried, NULL);
}

static segue_status start(opening *o, const segue_store_options *options)
{
    sgi_redis_store *store = o->store;
    segue_status status = take_options(o, options);
    if (status)
        return status;
    sgi_redis_scripts_add(&store->loading);
    /* Reserves memory for the largest command of the thread: a FOLLOW of
     * SGI_REDIS_FOLLOW_STEP operations, with 25 bytes for each operation. */
    sgi_buf_reserve(&store->beat_commands, 1024 + SGI_REDIS_FOLLOW_STEP * 32);
    sgi_buf_reserve(&store->commands, 4096);
    if (store->loading.failed || store->beat_commands.failed || store->commands.failed)
        return SEGUE_E_NOMEM;
    sgi_redis_link_init(&store->link, &store->url,
                        (sgi_str){store->loading.p, store->loading.len}, -1);
    status = connect_server(o);
    if (!status)
        status = become_owner(o);
    if (!status && !sgi_redis_watch_start(store))
        status = fail(o, SEGUE_E_STORE, "the system cannot start a thread");
    if (!status && *store->refused)
        status = fail(o, SEGUE_E_STORE, "SUBSCRIBE: %s", store->refused);
    return status;
}

segue_status sgi_store_redis_new(const char *url, const segue_store_options *options,
                                 segue_store **out, char *message, size_t size)
{
    static const segue_store_vtable vtable = {.struct_size = sizeof vtable,
                                              .blocking = 1,
                                              .leased = 1,
                                              .commit = sgi_redis_commit,
                                              .find = sgi_redis_find,
                                              .read = sgi_redis_read,
                                              .claim = sgi_redis_claim,
                                              .purge = sgi_redis_purge,
                                              .free = free_store,
                                              .list = sgi_redis_list,
                                              .scan = sgi_redis_scan,
                                              .set_wake = sgi_redis_set_wake_callback,
                                              .follow = sgi_redis_follow,
                                              .post = sgi_redis_post_command,
                                              .news = sgi_redis_read_changes,
                                              .stats = stats,
                                              .records = records};
    const sgi_mem *mem =
        options && options->allocator ? options->allocator : &sgi_mem_libc;
    const char *reason;
    if (message && size)
        *message = 0;
    sgi_redis_store *store = sgi_zalloc(mem, sizeof *store);
    if (!store)
        return SEGUE_E_NOMEM;
    init(store, mem);
    opening o = {store, message, size};
    segue_status status = sgi_redis_url_parse(&store->url, url ? url : "", &reason);
    if (!status)
        status = start(&o, options);
    else if (message && size)
        snprintf(message, size, "redis: %s", reason);
    if (!status)
        status = sgi_store_new(&vtable, store, mem, out);
    if (status)
        free_store(store);
    return status;
}
