/* The thread of a Redis store. It has two connections of its own:
 *
 *     beat   a script every third of a lease: prolongs ours, and looks whether owners
 *            have gone whose operations somebody should claim
 *     ear    SUBSCRIBE: what this instance follows has grown, a letter came, something
 *            was released
 *
 * Both are made again when they are lost, after ever longer pauses. When the ear is back
 * all that is followed is followed anew and what may have been missed is said to have
 * been: letters and logs are in the store, so nothing is lost with a message.
 *
 * When our own lease has lapsed the others may have claimed what was ours; commits find
 * that out, here it is only a reason to look at everything again. Those whose leases
 * lapsed with ours, because the server was out of reach, get one lease to come back
 * before this instance speaks of orphans.
 *
 * Nothing is allocated here, so that allocations of a program stay as they are counted;
 * hiredis does, by itself. */
#include "store/redis_store.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/backoff.h"

#define HEAR_MOST 256 /* messages that come one after the other, until we ring */

static const sgi_backoff PACE = {.first_ms = 20, .most_ms = 1000};

typedef struct watch {
    sgi_redis_store *store;
    int64_t beat_at;
    int64_t ear_at;
    int64_t alive_until; /* our lease, by our clock */
    int64_t quiet_until; /* no word of orphans before */
    int64_t heard_at;
    int32_t beat_failures;
    int32_t ear_failures;
    bool was_deaf;
    uint64_t round;
} watch;

static int64_t limit_of(const sgi_redis_store *store)
{
    int64_t third = store->lease_ms / 3;
    return sgi_redis_now() + (store->timeout_ms < third ? store->timeout_ms : third);
}

/* Calls a script that changes something, without a number: all here can be repeated. */
static void begin(sgi_redis_store *store, sgi_redis_script script, size_t count)
{
    sgi_buf_reset(&store->beat_commands, SIZE_MAX);
    sgi_redis_call_on(store, &store->beat, &store->beat_commands, script, count + 3);
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
        sgi_redis_link_close(link); /* the next one loads the scripts */
        return NULL;
    }
    return reply;
}

static void note_all(sgi_redis_store *store)
{
    pthread_mutex_lock(&store->lock);
    store->missed = true;
    store->mail_all = true;
    pthread_mutex_unlock(&store->lock);
    sgi_redis_ring(store);
}

/* ---- the beat ---- */

static bool beat_once(watch *w)
{
    sgi_redis_store *store = w->store;
    int64_t began = sgi_redis_now();
    if (!sgi_redis_link_is_up(&store->beat) &&
        sgi_redis_connect(store, &store->beat, limit_of(store)) != SEGUE_OK)
        return false;
    begin(store, SGI_REDIS_BEAT, 1);
    sgi_redis_arg(&store->beat_commands, store->beat.peer.history + SGI_REDIS_RUN,
                  SGI_REDIS_RUN);
    redisReply *reply = ask(store);
    if (!reply)
        return false;
    bool ok = sgi_redis_is_array(reply, 3);
    if (ok && reply->element[0]->integer < 0) {
        freeReplyObject(reply);
        sgi_redis_link_close(&store->beat); /* the next one looks again */
        return false;
    }
    bool lapsed = ok && reply->element[0]->integer;
    bool orphans = ok && reply->element[1]->integer;
    if (lapsed || began > w->alive_until)
        w->quiet_until = began + store->lease_ms;
    pthread_mutex_lock(&store->lock);
    store->operations = ok ? reply->element[2]->integer : -1;
    store->orphans = store->orphans || (orphans && began >= w->quiet_until);
    orphans = store->orphans;
    pthread_mutex_unlock(&store->lock);
    freeReplyObject(reply);
    w->alive_until = began + store->lease_ms;
    if (lapsed)
        note_all(store);
    else if (orphans)
        sgi_redis_ring(store);
    return ok;
}

static void beat(watch *w)
{
    int64_t third = w->store->lease_ms / 3;
    if (beat_once(w))
        w->beat_failures = 0;
    else
        w->beat_failures++;
    int64_t wait = sgi_backoff_ms(&PACE, w->beat_failures);
    w->beat_at = sgi_redis_now() + (!w->beat_failures ? third
                                    : wait < third    ? wait + 1
                                                      : third);
    if (sgi_redis_link_is_up(&w->store->ear)) {
        if (sgi_redis_now() - w->heard_at > w->store->lease_ms)
            sgi_redis_link_close(&w->store->ear); /* not even a pong */
        else if (sgi_redis_link_send(&w->store->ear, "*1\r\n$4\r\nPING\r\n", 14))
            sgi_redis_link_flush(&w->store->ear, limit_of(w->store));
    }
}

/* ---- the ear ---- */

/* Up to a step of what is followed and was not in this round; adds it to the command. */
static size_t next_followed(watch *w, uint8_t ids[][SEGUE_STORE_ID_SIZE])
{
    sgi_redis_store *store = w->store;
    size_t count = 0;
    sgi_redis_mark *mark;
    pthread_mutex_lock(&store->lock);
    while (count < SGI_REDIS_FOLLOW_STEP && (mark = TAILQ_FIRST(&store->mark_list)) &&
           mark->round != w->round) {
        mark->round = w->round;
        TAILQ_REMOVE(&store->mark_list, mark, link);
        TAILQ_INSERT_TAIL(&store->mark_list, mark, link);
        if (mark->followed)
            memcpy(ids[count++], mark->id, SEGUE_STORE_ID_SIZE);
    }
    pthread_mutex_unlock(&store->lock);
    return count;
}

static bool follow_all(watch *w)
{
    sgi_redis_store *store = w->store;
    uint8_t ids[SGI_REDIS_FOLLOW_STEP][SEGUE_STORE_ID_SIZE];
    size_t count;
    w->round++;
    while ((count = next_followed(w, ids))) {
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

/* Confirmations come first, then whatever there is. */
static bool subscribe(watch *w)
{
    sgi_redis_store *store = w->store;
    sgi_buf *commands = &store->beat_commands;
    size_t keys = strlen(store->keys), me = strlen(store->me);
    int64_t deadline = limit_of(store);
    sgi_buf_reset(commands, SIZE_MAX);
    sgi_redis_begin(commands, 3);
    sgi_redis_arg_text(commands, "SUBSCRIBE");
    sgi_redis_key(store, commands, "all", NULL);
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
        w->heard_at = sgi_redis_now();
        if (w->was_deaf) /* at first there is nothing to miss */
            note_all(store);
        w->was_deaf = true;
    } else {
        sgi_redis_link_close(&store->ear);
        w->ear_failures++;
        w->was_deaf = true;
        w->ear_at = sgi_redis_now() + sgi_backoff_ms(&PACE, w->ear_failures) + 1;
    }
}

/* Under the lock. Of orphans the beat tells as well, when they may be spoken of again. */
static void note(const watch *w, const char *p, size_t len)
{
    sgi_redis_store *store = w->store;
    const uint8_t *ids = (const uint8_t *)p + 1;
    size_t count = (len - 1) / SEGUE_STORE_ID_SIZE;
    for (size_t i = 0; i < count && *p == 'G'; i++)
        if (!sgi_redis_ids_add(&store->grown, ids + i * SEGUE_STORE_ID_SIZE)) {
            store->missed = true;
            store->grown.count = 0;
        }
    if (*p == 'L' && count && !sgi_redis_ids_add(&store->mail, ids)) {
        store->mail_all = true;
        store->mail.count = 0;
    }
    if (*p == 'O' && w->heard_at >= w->quiet_until &&
        (len - 1 != strlen(store->me) || memcmp(p + 1, store->me, len - 1)))
        store->orphans = true;
}

/* Whether it says something that is to be told. */
static bool hear(watch *w, const redisReply *reply)
{
    sgi_redis_store *store = w->store;
    w->heard_at = sgi_redis_now();
    if (!sgi_redis_is_array(reply, 3) || !sgi_redis_is_text(reply->element[0]) ||
        strcmp(reply->element[0]->str, "message") != 0 ||
        !sgi_redis_is_text(reply->element[2]) || !reply->element[2]->len)
        return false; /* a pong */
    pthread_mutex_lock(&store->lock);
    note(w, reply->element[2]->str, reply->element[2]->len);
    pthread_mutex_unlock(&store->lock);
    return true;
}

static bool is_closing(const sgi_redis_store *store)
{
    struct pollfd fd = {.fd = store->wake, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* Takes all that has come, and rings once. There may be no end to it: who listens is told
 * meanwhile, the lease is kept, and the store can close. */
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
            sgi_redis_ring(w->store);
        any = false;
        if (is_closing(w->store))
            return;
        if (late)
            beat(w);
    }
    if (any)
        sgi_redis_ring(w->store);
    if (!sgi_redis_link_is_up(&w->store->ear))
        w->ear_at = sgi_redis_now();
}

/* ---- the thread ---- */

/* Waits for the ear, the clock or the end; false at the end. */
static bool await(watch *w)
{
    sgi_redis_store *store = w->store;
    bool has_ear = sgi_redis_link_is_up(&store->ear);
    int64_t until = !has_ear && w->ear_at < w->beat_at ? w->ear_at : w->beat_at;
    int64_t left = until - sgi_redis_now();
    struct pollfd fds[] = {
        {.fd = store->wake, .events = POLLIN},
        {.fd = has_ear ? store->ear.context->fd : -1, .events = POLLIN}};
    poll(fds, 2, left > 60000 ? 60000 : left > 0 ? (int)left : 0);
    return !fds[0].revents;
}

static void say_tried(sgi_redis_store *store)
{
    pthread_mutex_lock(&store->lock);
    store->tried = true;
    pthread_cond_signal(&store->has_tried);
    pthread_mutex_unlock(&store->lock);
}

static void *run(void *user)
{
    watch w = {.store = user};
    w.beat_at = w.ear_at = sgi_redis_now();
    w.alive_until = w.beat_at + w.store->lease_ms;
    beat(&w);
    open_ear(&w);
    say_tried(w.store);
    do {
        int64_t now = sgi_redis_now();
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
    store->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->wake < 0)
        return false;
    sgi_str scripts = {store->loading.p, store->loading.len};
    sgi_redis_link_init(&store->beat, &store->url, scripts, store->wake);
    sgi_redis_link_init(&store->ear, &store->url, (sgi_str){NULL, 0}, store->wake);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    store->has_thread = pthread_create(&store->thread, NULL, run, store) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    /* So that nothing that comes after the opening goes unheard, as a rule. */
    pthread_mutex_lock(&store->lock);
    while (store->has_thread && !store->tried)
        pthread_cond_wait(&store->has_tried, &store->lock);
    pthread_mutex_unlock(&store->lock);
    return store->has_thread;
}

void sgi_redis_watch_stop(sgi_redis_store *store)
{
    uint64_t one = 1;
    if (store->has_thread) {
        while (write(store->wake, &one, sizeof one) < 0)
            ;
        pthread_join(store->thread, NULL);
        sgi_redis_link_close(&store->beat);
        sgi_redis_link_close(&store->ear);
    }
    if (store->wake >= 0)
        close(store->wake);
}
