/* The store in a PostgreSQL database that several servers of this library share: opening,
 * closing and the vtable. postgres_schema.c describes the tables; postgres_store.h lists
 * the other files.
 *
 * Each instance is an owner with a random name. An owner counts as alive until its lease
 * ends by the clock of the database server; the instance's thread renews the lease. Each
 * commit locks the rows of its operations and checks that this instance owns them.
 * Therefore no clock decides whether an instance may write.
 *
 *    open:  connect -> check the format -> become an owner -> start the thread
 *    close: end the thread -> give up the lease, so others claim at once -> disconnect
 *
 * The settings of the database server decide which commits survive when it stops. With
 * synchronous_commit = on (PostgreSQL's default) no commit is lost. With off, a crash of
 * the server can lose the last commits. A standby that was promoted can lack the last
 * commits unless it was synchronous. */
#include "store/postgres_store.h"

#include "base/thresholds.h"

#include <stdio.h>

#include "base/crypto.h"
#include "base/limit.h"

#define TIMEOUT_MS 5000
#define LEASE_MS SGI_THRESHOLD(postgres_lease_ms)
#define LEASE_LEAST_MS 100
#define TIME_MOST_MS ((int64_t)24 * 3600 * 1000)

typedef struct opening {
    sgi_pg_store *store;
    char *message;
    size_t size;
} opening;

/* Writes the error message, with the address of the database server if the store is
 * connected. Returns `status`. */
static segue_status fail(opening *o, segue_status status, const char *why)
{
    const PGconn *conn = o->store->link.conn;
    if (!o->message || !o->size)
        return status;
    if (conn && sgi_pq.PQstatus(conn) == CONNECTION_OK)
        sgi_text_format(o->message, o->size, "postgres %s, database %s: %s",
                        sgi_pq.PQhost(conn), sgi_pq.PQdb(conn), why);
    else
        sgi_text_format(o->message, o->size, "postgres: %s", why);
    return status;
}

/* ---- opening ---- */

static segue_status fail_link(opening *o, segue_status status)
{
    return status == SEGUE_E_NOMEM ? status : fail(o, status, o->store->link.fault);
}

/* Connects to the database server, checks the format and finds out whether data were
 * lost. Until the time limit, connecting is repeated, because a server that is starting,
 * or that has no free connection, can soon accept a connection. */
static segue_status connect_server(opening *o)
{
    sgi_pg_store *store = o->store;
    int64_t deadline = sgi_pg_now() + store->timeout_ms;
    segue_status status = sgi_pg_link_open(&store->link, deadline);
    if (!status)
        status = sgi_pg_prepare_tables(store, deadline);
    if (!status)
        status = sgi_pg_note_if_data_was_lost(store, &store->link, deadline);
    return status ? fail_link(o, status) : SEGUE_OK;
}

static segue_status become_owner(opening *o)
{
    sgi_pg_store *store = o->store;
    static const uint8_t begin[] = SGI_PG_OWNER_MARK;
    const size_t at = sizeof begin - 1;
    memcpy(store->me, begin, at);
    store->me[at] = SGI_PG_FORMAT >> 8;
    store->me[at + 1] = SGI_PG_FORMAT & 0xff;
    if (sgi_crypto_random(NULL, store->me + at + 2, sizeof store->me - at - 2))
        return fail(o, SEGUE_E_STORE, "the system gives no random bytes");
    sgi_pg_begin_call(store, "SELECT @.enter($1, $2, $3)");
    sgi_pg_arg_id(&store->call, store->me);
    sgi_pg_arg_int64(&store->call, store->lease_ms);
    sgi_pg_arg_text(&store->call, store->sync);
    segue_status status = sgi_pg_execute_without_result(store);
    return status ? fail_link(o, status) : SEGUE_OK;
}

/* ---- making and freeing ---- */

static void say_good_bye(sgi_pg_store *store)
{
    int64_t limit = store->timeout_ms < 1000 ? store->timeout_ms : 1000;
    if (!sgi_pg_link_is_up(&store->link))
        return;
    sgi_pg_begin_call(store, "SELECT @.leave($1)");
    sgi_pg_arg_id(&store->call, store->me);
    if (!sgi_pg_call_failed(&store->call))
        sgi_pq.PQclear(
            sgi_pg_link_execute(&store->link, &store->call, sgi_pg_now() + limit));
}

static void free_store(void *self)
{
    sgi_pg_store *store = self;
    sgi_pg_watch_stop(store);
    say_good_bye(store);
    sgi_pg_link_close(&store->link);
    sgi_pg_call_free(&store->call);
    sgi_pg_call_free(&store->ear_call);
    sgi_store_feed_free(&store->feed);
    pthread_cond_destroy(&store->has_tried);
    sgi_mem mem = store->mem;
    explicit_bzero(&store->url, sizeof store->url);
    sgi_free(&mem, store, sizeof *store);
}

static int32_t records(void *self)
{
    sgi_pg_store *store = self;
    return sgi_store_format_records(&store->format, SGI_PG_FORMAT_OF_RECORDS_2);
}

static void stats(void *self, segue_store_stats *out)
{
    sgi_pg_store *store = self;
    pthread_mutex_lock(&store->feed.lock);
    out->operations = store->operations;
    pthread_mutex_unlock(&store->feed.lock);
    out->bytes = -1;
    out->evicted = store->evicted;
    out->purged = store->purged;
}

static segue_status take_options(opening *o, const segue_store_options *options)
{
    sgi_pg_store *store = o->store;
    int64_t timeout = options ? options->timeout_ms : 0;
    int64_t lease = options ? options->lease_ms : 0;
    char why[SGI_RANGE_TOLD];
    store->timeout_ms = timeout ? timeout : TIMEOUT_MS;
    store->lease_ms = lease ? lease : LEASE_MS;
    store->max_operations = options ? options->max_principal_operations : 0;
    store->max_bytes = options ? options->max_principal_bytes : 0;
    store->sync = store->url.sync;
    const sgi_range numbers[] = {
        {"timeout_ms", store->timeout_ms, 0, TIME_MOST_MS},
        {"lease_ms", store->lease_ms, LEASE_LEAST_MS, TIME_MOST_MS},
        {"max_principal_operations", store->max_operations, 0, INT64_MAX},
        {"max_principal_bytes", store->max_bytes, 0, INT64_MAX},
    };
    if (!sgi_ranges_check(numbers, sizeof numbers / sizeof *numbers, why, sizeof why))
        return fail(o, SEGUE_E_INVALID, why);
    if (!options || options->durability != SEGUE_DURABILITY_FULL)
        return SEGUE_OK;
    if (!strcmp(store->sync, "off"))
        return fail(o, SEGUE_E_INVALID,
                    "durability full and synchronous_commit=off contradict each other");
    if (!*store->sync)
        store->sync = "on";
    return SEGUE_OK;
}

/* Initialises every member, so that free_store may be called after any later failure. */
static void init(sgi_pg_store *store, const sgi_mem *mem)
{
    store->mem = *mem;
    store->stop_fd = -1;
    store->operations = -1;
    store->refused_as = SEGUE_E_STORE;
    sgi_store_feed_init(&store->feed, &store->mem);
    sgi_pg_call_init(&store->call, &store->mem);
    sgi_pg_call_init(&store->ear_call, &store->mem);
    sgi_pg_link_init(&store->link, store->url.server, -1);
    pthread_cond_init(&store->has_tried, NULL);
}

/* Reserves memory for the calls of the thread and for the calls of a claim. The largest
 * call contains the ids of SGI_PG_FOLLOW_STEP operations. */
static bool reserve(sgi_pg_store *store)
{
    bool ok = true;
    sgi_pg_call *calls[] = {&store->call, &store->ear_call};
    for (size_t i = 0; i < 2; i++) {
        ok = ok && sgi_buf_reserve(&calls[i]->sql, 512);
        for (int arg = 0; arg < 4; arg++)
            ok =
                ok && sgi_buf_reserve(&calls[i]->args[arg], 64 + SGI_PG_FOLLOW_STEP * 24);
    }
    return ok;
}

static segue_status start(opening *o, const segue_store_options *options)
{
    sgi_pg_store *store = o->store;
    segue_status status = take_options(o, options);
    if (status)
        return status;
    if (!reserve(store))
        return SEGUE_E_NOMEM;
    if (!sgi_pq_load(store->link.fault, sizeof store->link.fault))
        return fail(o, SEGUE_E_UNSUPPORTED, store->link.fault);
    status = connect_server(o);
    if (!status)
        status = become_owner(o);
    if (!status && !sgi_pg_watch_start(store))
        status = fail(o, SEGUE_E_STORE, "the system cannot start a thread");
    if (!status && *store->refused)
        status = fail(o, store->refused_as, store->refused);
    return status;
}

segue_status sgi_store_postgres_new(const char *url, const segue_store_options *options,
                                    segue_store **out, char *message, size_t size)
{
    static const segue_store_vtable vtable = {.struct_size = sizeof vtable,
                                              .blocking = 1,
                                              .leased = 1,
                                              .commit = sgi_pg_commit,
                                              .find = sgi_pg_find,
                                              .read = sgi_pg_read,
                                              .claim = sgi_pg_claim,
                                              .purge = sgi_pg_purge,
                                              .free = free_store,
                                              .list = sgi_pg_list,
                                              .scan = sgi_pg_scan,
                                              .set_wake = sgi_pg_set_wake,
                                              .follow = sgi_pg_follow,
                                              .post = sgi_pg_post_command,
                                              .news = sgi_pg_read_changes,
                                              .stats = stats,
                                              .records = records};
    const sgi_mem *mem =
        options && options->allocator ? options->allocator : &sgi_mem_libc;
    const char *reason;
    if (message && size)
        *message = 0;
    sgi_pg_store *store = sgi_zalloc(mem, sizeof *store);
    if (!store)
        return SEGUE_E_NOMEM;
    init(store, mem);
    opening o = {store, message, size};
    segue_status status = sgi_pg_url_parse(&store->url, url ? url : "", &reason);
    status = status ? fail(&o, status, reason) : start(&o, options);
    if (!status)
        status = sgi_store_new(&vtable, store, mem, out);
    if (status)
        free_store(store);
    return status;
}
