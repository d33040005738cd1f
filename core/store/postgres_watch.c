/* The thread of a PostgreSQL store. The thread has a connection of its own, on which it
 * does two things:
 *   listens  on a channel of this instance ("G" and ids of followed operations that grew,
 *            "L" and the id of an operation that got a command) and on one of all
 *            instances ("O" and the sender: there may be operations to claim)
 *   beats    every third of a lease: prolongs this instance's lease, and searches for
 *            operations whose owners are gone
 *
 * A lost connection is opened again after longer and longer pauses. The thread then
 * follows all followed operations again and reports `missed`. Commands and logs are in
 * the store, so a lost message loses no data. PostgreSQL loses no message while the
 * connection lasts, and each beat shows whether the connection still lasts.
 *
 * LISTEN belongs to a session, so it does not work through a pooler that gives each
 * transaction another session (pgbouncer, pool_mode transaction). On its first connection
 * the thread therefore sends itself a message, over the connection that runs the calls.
 * Only then does the message show that LISTEN works: a pooler passes on a message that a
 * transaction of the same connection has sent, and loses all others. If the message does
 * not come, opening the store fails, and the error says what to do.
 *
 * When the lease of this instance has lapsed, other owners may have claimed its
 * operations. The thread then reports `doubt`: the server finds out by a commit which
 * operations it still owns. The thread reports it when the lease ends, although the store
 * cannot be reached, and again when the store is back. When the database server was
 * unreachable, the leases of all other owners have lapsed, too. They get the time of one
 * lease to reconnect before this thread reports orphans.
 *
 * This code allocates nothing, so that the number of allocations of a program does not
 * depend on this thread. Only libpq allocates. */
#include "store/postgres_store.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/percent.h"

/* number of messages after which the listeners are woken, even if more messages arrive */
#define HEAR_MOST 256
#define PROBE_MS 2000

static const char DEAF[] =
    "LISTEN does not work on this connection, which seems to lead through a pooler in "
    "transaction mode: give the URL of the PostgreSQL server itself as the option "
    "listen, "
    "or use a pool in session mode";
static const char DEAF_LISTEN[] =
    "the connection of the option listen gets no changes: it has to lead to the same "
    "database as the URL, and not through a pooler in transaction mode";

static const sgi_backoff PACE = {.first_ms = 20, .most_ms = 1000};

typedef struct watch {
    sgi_pg_store *store;
    /* time of the next beat, which connects if needed and renews the lease; clock of
     * sgi_pg_now */
    int64_t beat_at;
    /* the end of this instance's lease; clock of sgi_pg_now; 0 = the end was reported */
    int64_t alive_until;
    int64_t quiet_until; /* no orphans (operations whose owner is gone) are reported
                            before this time */
    int32_t failures;
    bool was_deaf;
    bool probed; /* true = the message that the thread sent to itself has arrived */
    uint64_t round;
    char channel[SGI_PG_CHANNEL];
    char all[SGI_PG_CHANNEL];
    char name[2 * SEGUE_STORE_ID_SIZE + 1]; /* the name of this instance, in hex */
} watch;

/* Returns the deadline of a call that begins now. While the store opens, the thread has
 * the time limit that every call of the store has. Later it has a third of a lease, so
 * that it does not miss the next beat. */
static int64_t limit_of(const sgi_pg_store *store)
{
    int64_t third = store->lease_ms / 3;
    bool short_limit = store->tried && third < store->timeout_ms;
    return sgi_pg_now() + (short_limit ? third : store->timeout_ms);
}

static void begin(sgi_pg_store *store, const char *sql)
{
    sgi_pg_call_begin(&store->ear_call, sql, store->url.schema);
    sgi_pg_arg_id(&store->ear_call, store->me);
}

/* Runs store->ear_call. Returns NULL on any error; the connection was then closed. */
static PGresult *ask(sgi_pg_store *store)
{
    sgi_pg_link *link = &store->ear;
    PGresult *result = sgi_pg_link_execute(link, &store->ear_call, limit_of(store));
    if (!result || sgi_pq.PQresultStatus(result) == PGRES_TUPLES_OK)
        return result;
    sgi_pg_keep_fault(link, result);
    sgi_pq.PQclear(result);
    sgi_pg_link_close(link);
    return NULL;
}

/* Reports that messages about changes may have been lost. lapsed: true = other owners
 * may have claimed operations of this instance. */
static void note_all(sgi_pg_store *store, bool lapsed)
{
    pthread_mutex_lock(&store->feed.lock);
    store->feed.doubt = store->feed.doubt || lapsed;
    store->feed.missed = true;
    store->feed.mail_all = true;
    pthread_mutex_unlock(&store->feed.lock);
    sgi_store_feed_wake(&store->feed);
}

/* ---- beat: the lease ---- */

/* Reports, once for each lapse, that the lease is over and PostgreSQL cannot be reached.
 * The server then asks for the changes, and the failure tells it that it is cut off. */
static void note_lapse(watch *w)
{
    if (w->alive_until && sgi_pg_now() > w->alive_until) {
        w->alive_until = 0;
        sgi_store_feed_set_flag(&w->store->feed, &w->store->feed.doubt);
        sgi_store_feed_wake(&w->store->feed);
    }
}

/* Looks whether the schema has a newer format, and whether the newest one is due. The
 * look is part of the beats until the schema has the newest format. */
static bool look_at_format(sgi_pg_store *store, int64_t now_ms)
{
    sgi_store_format *format = &store->format;
    if (atomic_load(&format->number) >= SGI_PG_FORMAT)
        return true;
    begin(store, sgi_pg_look_sql);
    PGresult *result = ask(store);
    if (!result)
        return false;
    int64_t number = sgi_pg_get_int64(result, 0, 0);
    bool older = sgi_pg_get_bool(result, 0, 1);
    sgi_pq.PQclear(result);
    atomic_store(&format->number, (int)number);
    if (number < SGI_PG_FORMAT && sgi_store_format_is_due(format, older, now_ms)) {
        /* the attempt can fail, because a right lacks or a lock is taken */
        sgi_store_format_wait_again(format);
        atomic_store(&store->format_is_due, true);
        sgi_store_feed_wake(&store->feed);
    }
    return true;
}

static bool beat_once(watch *w)
{
    sgi_pg_store *store = w->store;
    sgi_store_feed *feed = &store->feed;
    int64_t began = sgi_pg_now();
    begin(store, "SELECT lapsed, orphans, operations, breaks, life FROM @.beat($1, $2)");
    sgi_pg_arg_int64(&store->ear_call, store->lease_ms);
    PGresult *result = ask(store);
    if (!result)
        return false;
    bool lapsed = sgi_pg_get_bool(result, 0, 0), orphans = sgi_pg_get_bool(result, 0, 1);
    if (lapsed || began > w->alive_until)
        w->quiet_until = began + store->lease_ms;
    sgi_pg_note_server_token(store, sgi_pq.PQgetvalue(result, 0, 4),
                             sgi_pg_len(result, 0, 4), sgi_pg_get_int64(result, 0, 3));
    pthread_mutex_lock(&feed->lock);
    store->operations = sgi_pg_get_int64(result, 0, 2);
    feed->orphans = feed->orphans || (orphans && began >= w->quiet_until);
    orphans = feed->orphans;
    pthread_mutex_unlock(&feed->lock);
    sgi_pq.PQclear(result);
    w->alive_until = began + store->lease_ms;
    if (lapsed)
        note_all(store, true);
    else if (orphans)
        sgi_store_feed_wake(feed);
    return look_at_format(store, began);
}

/* ---- messages ---- */

static bool read_id(const char *hex, uint8_t id[SEGUE_STORE_ID_SIZE])
{
    for (size_t i = 0; i < SEGUE_STORE_ID_SIZE; i++) {
        int high = sgi_hex_digit(hex[2 * i]),
            low = high < 0 ? -1 : sgi_hex_digit(hex[2 * i + 1]);
        if (low < 0)
            return false;
        id[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* Records the changes that one message reports. Orphans (operations whose owner is
 * gone) are recorded only after quiet_until; a later beat finds them, too. */
static void note(watch *w, const char *text)
{
    sgi_store_feed *feed = &w->store->feed;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    bool own = !strcmp(text + 1, w->name);
    for (const char *hex = text + 1; *text == 'G' && read_id(hex, id); hex += 32)
        sgi_store_feed_add_id(feed, &feed->grown, id, &feed->missed);
    if (*text == 'L' && read_id(text + 1, id))
        sgi_store_feed_add_id(feed, &feed->mail, id, &feed->mail_all);
    if (*text == 'O' && !own && sgi_pg_now() >= w->quiet_until)
        sgi_store_feed_set_flag(feed, &feed->orphans);
    w->probed = w->probed || (*text == 'P' && own);
}

/* Handles the messages that have arrived, and wakes the listeners once. Returns after
 * HEAR_MOST messages, because messages can arrive without end. Returns true when more
 * messages may be waiting. */
static bool listen_to(watch *w)
{
    PGnotify *notify;
    int left = HEAR_MOST;
    while (left && sgi_pg_link_poll(&w->store->ear, &notify) && notify) {
        note(w, notify->extra);
        sgi_pq.PQfreemem(notify);
        left--;
    }
    if (left < HEAR_MOST)
        sgi_store_feed_wake(&w->store->feed);
    if (!sgi_pg_link_is_up(&w->store->ear))
        w->beat_at = sgi_pg_now();
    return !left;
}

/* ---- connecting ---- */

static bool follow_all(watch *w)
{
    sgi_pg_store *store = w->store;
    uint8_t ids[SGI_PG_FOLLOW_STEP][SEGUE_STORE_ID_SIZE];
    size_t count;
    w->round++;
    while ((count = sgi_store_feed_next_followed(&store->feed, w->round, ids,
                                                 SGI_PG_FOLLOW_STEP))) {
        begin(store, "SELECT @.follow($1, $2, $3)");
        sgi_buf *array = sgi_pg_array_begin(&store->ear_call, SGI_PG_IDS);
        for (size_t i = 0; i < count; i++)
            sgi_pg_add_bytes(array, ids[i], SEGUE_STORE_ID_SIZE);
        sgi_pg_array_end(array, count);
        sgi_pg_arg_bool(&store->ear_call, true);
        PGresult *result = ask(store);
        if (!result)
            return false;
        sgi_pq.PQclear(result);
    }
    return true;
}

static bool run(watch *w, const char *sql)
{
    sgi_pg_link *link = &w->store->ear;
    PGresult *result = sgi_pg_link_run(link, sql, limit_of(w->store));
    if (!result)
        return false;
    bool ok = sgi_pq.PQresultStatus(result) != PGRES_FATAL_ERROR;
    if (!ok) {
        sgi_pg_keep_fault(link, result);
        sgi_pg_link_close(link);
    }
    sgi_pq.PQclear(result);
    return ok;
}

/* Waits for the message that the thread has sent to itself, which libpq may have received
 * already. Returns false when the message does not arrive, or when the store closes. */
static bool probe(watch *w)
{
    sgi_pg_store *store = w->store;
    int64_t until = sgi_pg_now() + PROBE_MS;
    for (int64_t left = PROBE_MS; left > 0; left = until - sgi_pg_now()) {
        listen_to(w);
        if (!sgi_pg_link_is_up(&store->ear) || w->probed)
            break;
        struct pollfd fds[] = {{.fd = sgi_pq.PQsocket(store->ear.conn), .events = POLLIN},
                               {.fd = store->stop_fd, .events = POLLIN}};
        if (poll(fds, 2, (int)left) > 0 && fds[1].revents)
            return false;
    }
    if (!sgi_pg_link_is_up(&store->ear))
        return false;
    if (w->probed)
        return true;
    sgi_text_format(store->ear.fault, sizeof store->ear.fault, "%s",
                    *store->url.listen ? DEAF_LISTEN : DEAF);
    store->refused_as = SEGUE_E_UNSUPPORTED;
    sgi_pg_link_close(&store->ear);
    return false;
}

/* Sends this thread a message over the connection that runs the calls. The thread may use
 * that connection, because opening the store waits for the thread. */
static bool send_probe(watch *w)
{
    sgi_pg_store *store = w->store;
    char text[sizeof w->name + 1];
    snprintf(text, sizeof text, "P%s", w->name);
    sgi_pg_begin_call(store, "SELECT pg_catalog.pg_notify($1, $2)::text");
    sgi_pg_arg_text(&store->call, w->channel);
    sgi_pg_arg_text(&store->call, text);
    if (sgi_pg_execute_without_result(store) == SEGUE_OK)
        return true;
    sgi_text_format(store->ear.fault, sizeof store->ear.fault, "%s", store->link.fault);
    return false;
}

static bool subscribe(watch *w)
{
    char sql[512];
    snprintf(sql, sizeof sql, "LISTEN \"%s\"; LISTEN \"segue:\"\"%s\"\"\"", w->channel,
             w->store->url.schema);
    if (!run(w, sql))
        return false;
    if (w->probed)
        return true;
    return send_probe(w) && probe(w);
}

static bool open_ear(watch *w)
{
    sgi_pg_store *store = w->store;
    if (sgi_pg_connect(store, &store->ear, limit_of(store)) != SEGUE_OK ||
        !subscribe(w) || !follow_all(w))
        return false;
    /* changes may have been missed, unless this is the first subscription */
    if (w->was_deaf)
        note_all(store, false);
    return true;
}

/* Connects if needed, renews the lease and looks for orphans (a beat), and sets the
 * time of the next beat. */
static void go_on(watch *w)
{
    sgi_pg_store *store = w->store;
    int64_t third = store->lease_ms / 3;
    bool ok = (sgi_pg_link_is_up(&store->ear) || open_ear(w)) && beat_once(w);
    w->failures = ok ? 0 : w->failures + 1;
    if (!ok)
        note_lapse(w);
    w->was_deaf = true;
    if (!ok)
        sgi_pg_link_close(&store->ear);
    int64_t wait = sgi_backoff_ms(&PACE, w->failures);
    w->beat_at = sgi_pg_now() + (ok || wait > third ? third : wait + 1);
}

/* ---- the thread ---- */

/* Waits for a message, or until the lease must be renewed (the next beat). Returns
 * false when the store closes. */
static bool await(watch *w, bool more)
{
    sgi_pg_store *store = w->store;
    int64_t left = more ? 0 : w->beat_at - sgi_pg_now();
    struct pollfd fds[] = {{.fd = store->stop_fd, .events = POLLIN},
                           {.fd = store->ear.conn ? sgi_pq.PQsocket(store->ear.conn) : -1,
                            .events = POLLIN}};
    poll(fds, 2, left > 60000 ? 60000 : left > 0 ? (int)left : 0);
    return !fds[0].revents;
}

static void say_tried(sgi_pg_store *store)
{
    if (!sgi_pg_link_is_up(&store->ear))
        snprintf(store->refused, sizeof store->refused, "%s", store->ear.fault);
    pthread_mutex_lock(&store->feed.lock);
    store->tried = true;
    pthread_cond_signal(&store->has_tried);
    pthread_mutex_unlock(&store->feed.lock);
}

static void name_channels(watch *w)
{
    for (size_t i = 0; i < SEGUE_STORE_ID_SIZE; i++)
        snprintf(w->name + 2 * i, 3, "%02x", w->store->me[i]);
    snprintf(w->channel, sizeof w->channel, "segue:%s", w->name);
}

static void *run_thread(void *user)
{
    watch w = {.store = user};
    bool more = false;
    w.alive_until = sgi_pg_now() + w.store->lease_ms;
    name_channels(&w);
    go_on(&w);
    say_tried(w.store);
    while (await(&w, more)) {
        more = sgi_pg_link_is_up(&w.store->ear) && listen_to(&w);
        if (sgi_pg_now() >= w.beat_at)
            go_on(&w);
    }
    return NULL;
}

bool sgi_pg_watch_start(sgi_pg_store *store)
{
    sigset_t all, old;
    store->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->stop_fd < 0)
        return false;
    sgi_pg_link_init(&store->ear,
                     *store->url.listen ? store->url.listen : store->url.server,
                     store->stop_fd);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    store->has_thread = pthread_create(&store->thread, NULL, run_thread, store) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    /* Opening the store waits for the thread's first subscription, so that no later
     * message is missed. */
    pthread_mutex_lock(&store->feed.lock);
    while (store->has_thread && !store->tried)
        pthread_cond_wait(&store->has_tried, &store->feed.lock);
    pthread_mutex_unlock(&store->feed.lock);
    return store->has_thread;
}

void sgi_pg_watch_stop(sgi_pg_store *store)
{
    uint64_t one = 1;
    if (store->has_thread) {
        while (write(store->stop_fd, &one, sizeof one) < 0)
            ;
        pthread_join(store->thread, NULL);
        sgi_pg_link_close(&store->ear);
    }
    if (store->stop_fd >= 0)
        close(store->stop_fd);
}
