/* The thread of a Redis store. The thread has two connections of its own:
 *
 *     beat  runs a script every third of a lease: prolongs this instance's lease, and
 *           searches for operations whose owners are gone
 *     ear   SUBSCRIBE: receives that a followed operation grew, that a forwarded
 *           command arrived, or that an operation was released
 *
 * A lost connection is opened again after longer and longer pauses. When `ear` is
 * connected again, the thread follows all followed operations again and reports `missed`.
 * Commands and logs are in the store, so a lost message loses no data.
 *
 * When the lease of this instance has lapsed, other owners may have claimed its
 * operations. The thread then reports `doubt`: the server finds out by a commit which
 * operations it still owns. The thread reports it when the lease ends, although the store
 * cannot be reached, and again when the store is back. Every script renews a lapsed
 * lease, so the scripts record the lapse and the next beat reads the record. When Redis
 * was unreachable, the leases of all other owners have lapsed, too. They get the time of
 * one lease to reconnect before this thread reports orphans (operations without an
 * owner).
 *
 * This code allocates nothing, so that the number of allocations of a program does not
 * depend on this thread. Only hiredis allocates. */
#include "store/redis_store.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/backoff.h"

/* number of messages after which the listeners are woken, even if more messages arrive */
#define HEAR_MOST 256

static const sgi_backoff PACE = {.first_ms = 20, .most_ms = 1000};

typedef struct watch {
    sgi_redis_store *store;
    int64_t beat_at;
    int64_t ear_at;
    /* the end of this instance's lease; clock of sgi_redis_monotonic_ms; 0 = the end was
     * reported */
    int64_t alive_until;
    /* time of the last lapse that was reported; clock of the Redis server */
    int64_t lapsed_at;
    int64_t quiet_until; /* no orphans (operations whose owner is gone) are reported
                            before this time */
    int64_t heard_at;
    bool format_is_due; /* the next beat gives the data the newest format */
    int32_t beat_failures;
    int32_t ear_failures;
    bool was_deaf;
    uint64_t round;
} watch;

static int64_t limit_of(const sgi_redis_store *store)
{
    int64_t third = store->lease_ms / 3;
    return sgi_redis_monotonic_ms() +
           (store->timeout_ms < third ? store->timeout_ms : third);
}

/* Begins the call of a script that changes something. The call number is 0, because every
 * script of the thread may be applied repeatedly. */
static void begin(sgi_redis_store *store, sgi_redis_script script, size_t count)
{
    sgi_buf_reset(&store->beat_commands, SIZE_MAX);
    sgi_redis_begin_script_on(store, &store->beat, &store->beat_commands, script,
                              count + 3);
    sgi_redis_arg_text(&store->beat_commands, store->me);
    sgi_redis_arg_text(&store->beat_commands, "0");
    sgi_redis_arg_text(&store->beat_commands, store->lease);
}

static redisReply *ask(sgi_redis_store *store)
{
    sgi_redis_link *link = &store->beat;
    if (!sgi_redis_link_send(link, store->beat_commands.p, store->beat_commands.len))
        return NULL;
    redisReply *reply = sgi_redis_link_reply(link, limit_of(store));
    if (reply && reply->type == REDIS_REPLY_ERROR) {
        snprintf(link->fault, sizeof link->fault, "%s", reply->str);
        freeReplyObject(reply);
        /* Redis may not know the script; the next connection loads all scripts */
        sgi_redis_link_close(link);
        return NULL;
    }
    return reply;
}

/* Reports that messages about changes may have been lost. lapsed: true = other owners
 * may have claimed operations of this instance. */
static void note_all(sgi_redis_store *store, bool lapsed)
{
    sgi_store_feed *feed = &store->feed;
    pthread_mutex_lock(&feed->lock);
    feed->doubt = feed->doubt || lapsed;
    feed->missed = true;
    feed->mail_all = true;
    pthread_mutex_unlock(&feed->lock);
    sgi_store_feed_wake(feed);
}

/* ---- beat: the lease ---- */

/* Reports, once for each lapse, that the lease is over and Redis cannot be reached. The
 * server then asks for the changes, and the failure tells it that it is cut off. */
static void note_lapse(watch *w)
{
    if (w->alive_until && sgi_redis_monotonic_ms() > w->alive_until) {
        w->alive_until = 0;
        sgi_store_feed_set_flag(&w->store->feed, &w->store->feed.doubt);
        sgi_store_feed_wake(&w->store->feed);
    }
}

/* Reads the part of the answer to a beat that is about the format of the data. */
static void note_format(watch *w, const redisReply *reply, int64_t now_ms)
{
    sgi_store_format *format = &w->store->format;
    atomic_store(&format->number, (int)reply->element[3]->integer);
    w->format_is_due =
        reply->element[3]->integer < SGI_REDIS_FORMAT &&
        sgi_store_format_is_due(format, reply->element[4]->integer != 0, now_ms);
}

static bool beat_once(watch *w)
{
    sgi_redis_store *store = w->store;
    sgi_store_feed *feed = &store->feed;
    int64_t began = sgi_redis_monotonic_ms();
    if (!sgi_redis_link_is_up(&store->beat) &&
        sgi_redis_connect(store, &store->beat, limit_of(store)) != SEGUE_OK)
        return false;
    begin(store, SGI_REDIS_BEAT, 3);
    sgi_redis_arg(&store->beat_commands, store->beat.peer.history + SGI_REDIS_RUN,
                  SGI_REDIS_RUN);
    sgi_redis_arg_text(&store->beat_commands, SGI_REDIS_FORMAT_TEXT);
    sgi_redis_arg_text(&store->beat_commands, w->format_is_due ? "1" : "0");
    redisReply *reply = ask(store);
    if (!reply)
        return false;
    bool ok = sgi_redis_is_array(reply, 5);
    if (sgi_redis_is_array(reply, 1) && reply->element[0]->integer < 0) {
        freeReplyObject(reply);
        /* the server now has another line of replicated data; the next connection checks
         * whether data were lost */
        sgi_redis_link_close(&store->beat);
        return false;
    }
    int64_t lapsed_at = ok ? reply->element[0]->integer : w->lapsed_at;
    bool lapsed = lapsed_at && lapsed_at != w->lapsed_at;
    bool orphans = ok && reply->element[1]->integer;
    if (lapsed || began > w->alive_until)
        w->quiet_until = began + store->lease_ms;
    pthread_mutex_lock(&store->feed.lock);
    if (ok)
        note_format(w, reply, began);
    store->operations = ok ? reply->element[2]->integer : -1;
    feed->orphans = feed->orphans || (orphans && began >= w->quiet_until);
    orphans = feed->orphans;
    pthread_mutex_unlock(&store->feed.lock);
    freeReplyObject(reply);
    w->alive_until = began + store->lease_ms;
    w->lapsed_at = lapsed_at;
    if (lapsed)
        note_all(store, true);
    else if (orphans)
        sgi_store_feed_wake(feed);
    return ok;
}

static void beat(watch *w)
{
    int64_t third = w->store->lease_ms / 3;
    if (beat_once(w))
        w->beat_failures = 0;
    else
        w->beat_failures++;
    if (w->beat_failures)
        note_lapse(w);
    int64_t wait = sgi_backoff_ms(&PACE, w->beat_failures);
    w->beat_at = sgi_redis_monotonic_ms() + (!w->beat_failures ? third
                                             : wait < third    ? wait + 1
                                                               : third);
    if (sgi_redis_link_is_up(&w->store->ear)) {
        if (sgi_redis_monotonic_ms() - w->heard_at > w->store->lease_ms)
            /* the server has not even replied to a PING */
            sgi_redis_link_close(&w->store->ear);
        else if (sgi_redis_link_send(&w->store->ear, "*1\r\n$4\r\nPING\r\n", 14))
            sgi_redis_link_flush(&w->store->ear, limit_of(w->store));
    }
}

/* ---- ear: the subscription ---- */

static bool follow_all(watch *w)
{
    sgi_redis_store *store = w->store;
    uint8_t ids[SGI_REDIS_FOLLOW_STEP][SEGUE_STORE_ID_SIZE];
    size_t count;
    w->round++;
    while ((count = sgi_store_feed_next_followed(&store->feed, w->round, ids,
                                                 SGI_REDIS_FOLLOW_STEP))) {
        begin(store, SGI_REDIS_FOLLOW, 1 + count);
        sgi_redis_arg_text(&store->beat_commands, "1");
        for (size_t i = 0; i < count; i++)
            sgi_redis_arg(&store->beat_commands, ids[i], SEGUE_STORE_ID_SIZE);
        redisReply *reply = ask(store);
        if (!reply)
            return false;
        freeReplyObject(reply);
    }
    return true;
}

/* Subscribes to the channel of all instances and to the channel of this instance. Redis
 * confirms both subscriptions before it sends any message. Returns false on failure;
 * before the first success, store->refused then has Redis's reason. */
static bool subscribe(watch *w)
{
    sgi_redis_store *store = w->store;
    sgi_buf *commands = &store->beat_commands;
    size_t keys = strlen(store->keys), me = strlen(store->me);
    int64_t deadline = limit_of(store);
    sgi_buf_reset(commands, SIZE_MAX);
    sgi_redis_command_begin(commands, 3);
    sgi_redis_arg_text(commands, "SUBSCRIBE");
    sgi_redis_arg_key(store, commands, "all", NULL);
    sgi_redis_arg_begin(commands, keys + 5 + me);
    sgi_buf_add(commands, store->keys, keys);
    sgi_buf_add_lit(commands, "news:");
    sgi_buf_add(commands, store->me, me);
    sgi_redis_arg_end(commands);
    if (!sgi_redis_link_send(&store->ear, commands->p, commands->len))
        return false;
    for (int i = 0; i < 2; i++) {
        redisReply *reply = sgi_redis_link_reply(&store->ear, deadline);
        if (!reply)
            return false;
        bool ok = reply->type == REDIS_REPLY_ARRAY;
        if (!ok && !store->tried)
            snprintf(store->refused, sizeof store->refused, "%s", reply->str);
        freeReplyObject(reply);
        if (!ok)
            return false;
    }
    return true;
}

static void open_ear(watch *w)
{
    sgi_redis_store *store = w->store;
    bool ok = sgi_redis_link_open(&store->ear, limit_of(store)) == SEGUE_OK &&
              subscribe(w) && follow_all(w);
    if (ok) {
        w->ear_failures = 0;
        w->heard_at = sgi_redis_monotonic_ms();
        /* changes may have been missed, unless this is the first try to subscribe */
        if (w->was_deaf)
            note_all(store, false);
        w->was_deaf = true;
    } else {
        sgi_redis_link_close(&store->ear);
        w->ear_failures++;
        w->was_deaf = true;
        w->ear_at = sgi_redis_monotonic_ms() + sgi_backoff_ms(&PACE, w->ear_failures) + 1;
    }
}

/* Records the changes that one message reports. Orphans (operations whose owner is
 * gone) are recorded only after quiet_until; a later beat finds them, too. */
static void note(const watch *w, const char *p, size_t len)
{
    sgi_store_feed *feed = &w->store->feed;
    const char *me = w->store->me;
    const uint8_t *ids = (const uint8_t *)p + 1;
    size_t count = (len - 1) / SEGUE_STORE_ID_SIZE;
    if (*p == 'G')
        sgi_store_feed_add_ids(feed, &feed->grown, ids, count, &feed->missed);
    if (*p == 'L' && count)
        sgi_store_feed_add_id(feed, &feed->mail, ids, &feed->mail_all);
    if (*p == 'O' && w->heard_at >= w->quiet_until &&
        (len - 1 != strlen(me) || memcmp(p + 1, me, len - 1)))
        sgi_store_feed_set_flag(feed, &feed->orphans);
}

/* Handles one reply on `ear`. Returns true when the reply is a message that reports
 * changes. */
static bool hear(watch *w, const redisReply *reply)
{
    w->heard_at = sgi_redis_monotonic_ms();
    if (!sgi_redis_is_array(reply, 3) || !sgi_redis_is_text(reply->element[0]) ||
        strcmp(reply->element[0]->str, "message") != 0 ||
        !sgi_redis_is_text(reply->element[2]) || !reply->element[2]->len)
        return false; /* the reply is not a message; it can be the reply to a PING */
    note(w, reply->element[2]->str, reply->element[2]->len);
    return true;
}

static bool is_closing(const sgi_redis_store *store)
{
    struct pollfd fd = {.fd = store->stop_fd, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* Handles all messages that have arrived, then wakes the listeners once. Messages can
 * arrive without end. Therefore, after every HEAR_MOST messages, the function wakes the
 * listeners, prolongs the lease if this is due, and checks whether the store closes. */
static void listen_to(watch *w)
{
    bool any = false;
    redisReply *reply;
    for (int left = HEAR_MOST; sgi_redis_link_poll(&w->store->ear, &reply) && reply;) {
        any = hear(w, reply) || any;
        freeReplyObject(reply);
        bool late = w->heard_at >= w->beat_at;
        if (--left && !late)
            continue;
        left = HEAR_MOST;
        if (any)
            sgi_store_feed_wake(&w->store->feed);
        any = false;
        if (is_closing(w->store))
            return;
        if (late)
            beat(w);
    }
    if (any)
        sgi_store_feed_wake(&w->store->feed);
    if (!sgi_redis_link_is_up(&w->store->ear))
        w->ear_at = sgi_redis_monotonic_ms();
}

/* ---- the thread ---- */

/* Waits for a message, or until the thread has to renew the lease or to connect.
 * Returns false when the store closes. */
static bool await(watch *w)
{
    sgi_redis_store *store = w->store;
    bool has_ear = sgi_redis_link_is_up(&store->ear);
    int64_t until = !has_ear && w->ear_at < w->beat_at ? w->ear_at : w->beat_at;
    int64_t left = until - sgi_redis_monotonic_ms();
    struct pollfd fds[] = {
        {.fd = store->stop_fd, .events = POLLIN},
        {.fd = has_ear ? store->ear.context->fd : -1, .events = POLLIN}};
    poll(fds, 2, left > 60000 ? 60000 : left > 0 ? (int)left : 0);
    return !fds[0].revents;
}

static void say_tried(sgi_redis_store *store)
{
    pthread_mutex_lock(&store->feed.lock);
    store->tried = true;
    pthread_cond_signal(&store->has_tried);
    pthread_mutex_unlock(&store->feed.lock);
}

static void *run(void *user)
{
    watch w = {.store = user};
    w.beat_at = w.ear_at = sgi_redis_monotonic_ms();
    w.alive_until = w.beat_at + w.store->lease_ms;
    beat(&w);
    open_ear(&w);
    say_tried(w.store);
    do {
        int64_t now = sgi_redis_monotonic_ms();
        if (now >= w.beat_at)
            beat(&w);
        if (sgi_redis_link_is_up(&w.store->ear))
            listen_to(&w);
        else if (now >= w.ear_at && sgi_redis_link_is_up(&w.store->beat))
            open_ear(&w);
        else if (now >= w.ear_at)
            w.ear_at = w.beat_at;
    } while (await(&w));
    return NULL;
}

bool sgi_redis_watch_start(sgi_redis_store *store)
{
    sigset_t all, old;
    store->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->stop_fd < 0)
        return false;
    sgi_str scripts = {store->loading.p, store->loading.len};
    sgi_redis_link_init(&store->beat, &store->url, scripts, store->stop_fd);
    sgi_redis_link_init(&store->ear, &store->url, (sgi_str){NULL, 0}, store->stop_fd);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    store->has_thread = pthread_create(&store->thread, NULL, run, store) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    /* Opening the store waits for the thread's first try to subscribe. After a successful
     * try, no later message is missed. */
    pthread_mutex_lock(&store->feed.lock);
    while (store->has_thread && !store->tried)
        pthread_cond_wait(&store->has_tried, &store->feed.lock);
    pthread_mutex_unlock(&store->feed.lock);
    return store->has_thread;
}

void sgi_redis_watch_stop(sgi_redis_store *store)
{
    uint64_t one = 1;
    if (store->has_thread) {
        while (write(store->stop_fd, &one, sizeof one) < 0)
            ;
        pthread_join(store->thread, NULL);
        sgi_redis_link_close(&store->beat);
        sgi_redis_link_close(&store->ear);
    }
    if (store->stop_fd >= 0)
        close(store->stop_fd);
}
