/* The listeners of a store handle. A map has each operation that at least one listener
 * follows. A `follow` connects one listener with one operation. When another listener
 * or process writes to the operation, the `follow` is marked. The report "this operation
 * grew" is therefore only a flag: it needs no memory, even after many commits. Only
 * forwarded commands are queued, and their number is limited (commands.c).
 *
 *     commit --> follow.grew --> listener->grown --> sgi_listeners_deliver
 *     post ----> commands -----> listener->received --> sgi_listeners_deliver
 *
 * A listener is due when there is news for it. The listener's callback `wake` is then
 * called once, and is called again only after the listener has asked for its news. `wake`
 * runs without the lock of this file. Because a lock of the store or of its vtable can be
 * held, `wake` must only signal. sgi_listeners_remove waits until no call of `wake` runs
 * (`waking` counts the running calls).
 *
 * Lock order: the mutex of the store, then the lock of this file.
 * sgi_listeners_deliver calls fn under the lock of this file. */
#include "store/listeners.h"

#include "base/crypto.h"

typedef struct operation {
    sgi_map_node node;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    bool ended; /* true = the operation ended while a listener followed it */
    TAILQ_HEAD(follow_list, follow) follows;
} operation;

typedef struct follow {
    TAILQ_ENTRY(follow) of_operation;
    TAILQ_ENTRY(follow) of_listener;
    TAILQ_ENTRY(follow) grown_link;
    operation *op;
    sgi_store_listener *listener;
    bool grew;
} follow;

struct sgi_store_listener {
    TAILQ_ENTRY(sgi_store_listener) link;
    segue_store *store;
    void (*wake)(void *user);
    void *user;
    struct follow_list follows;
    struct follow_list grown;
    /* position in the list of commands up to which the listener has received commands */
    uint64_t received;
    bool orphans;
    bool missed;
    bool doubt;
    bool due;
    bool woken;
    int waking;
};

/* ---- making and freeing ---- */

segue_status sgi_listeners_init(sgi_listeners *listeners, const sgi_mem *mem, bool lends)
{
    listeners->mem = *mem;
    listeners->lends = lends;
    if (pthread_mutex_init(&listeners->lock, NULL))
        return SEGUE_E_NOMEM;
    if (pthread_cond_init(&listeners->quiet, NULL)) {
        pthread_mutex_destroy(&listeners->lock);
        return SEGUE_E_NOMEM;
    }
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = sgi_crypto_random};
    sgi_env env = {&listeners->mem, &hooks};
    sgi_map_init(&listeners->followed, &env);
    sgi_store_commands_init(&listeners->commands, &listeners->mem);
    TAILQ_INIT(&listeners->all);
    return SEGUE_OK;
}

void sgi_listeners_free(sgi_listeners *listeners)
{
    sgi_store_commands_free(&listeners->commands);
    sgi_map_free(&listeners->followed);
    pthread_cond_destroy(&listeners->quiet);
    pthread_mutex_destroy(&listeners->lock);
}

segue_status sgi_listeners_add(sgi_listeners *listeners, segue_store *store,
                               void (*wake)(void *user), void *user,
                               sgi_store_listener **out)
{
    sgi_store_listener *listener = sgi_zalloc(&listeners->mem, sizeof *listener);
    if (!listener)
        return SEGUE_E_NOMEM;
    listener->store = store;
    listener->wake = wake;
    listener->user = user;
    TAILQ_INIT(&listener->follows);
    TAILQ_INIT(&listener->grown);
    pthread_mutex_lock(&listeners->lock);
    TAILQ_INSERT_TAIL(&listeners->all, listener, link);
    pthread_mutex_unlock(&listeners->lock);
    *out = listener;
    return SEGUE_OK;
}

segue_store *sgi_listeners_store(const sgi_store_listener *listener)
{
    return listener->store;
}

/* ---- following ---- */

static operation *find_operation(const sgi_listeners *listeners, const uint8_t *id)
{
    sgi_str key = {(const char *)id, SEGUE_STORE_ID_SIZE};
    if (!listeners->followed.count)
        return NULL;
    sgi_map_node *node = sgi_map_find(&listeners->followed, key);
    return node ? SGI_OWNER(node, operation, node) : NULL;
}

static operation *add_operation(sgi_listeners *listeners, const uint8_t *id)
{
    operation *op = sgi_zalloc(&listeners->mem, sizeof *op);
    if (!op)
        return NULL;
    memcpy(op->id, id, sizeof op->id);
    TAILQ_INIT(&op->follows);
    sgi_map_put(&listeners->followed, &op->node,
                (sgi_str){(const char *)op->id, sizeof op->id});
    return op;
}

/* Removes the operation from the map if no listener follows it any more. Returns false
 * when a listener still follows it. */
static bool drop_if_unfollowed(sgi_listeners *listeners, operation *op)
{
    if (!TAILQ_EMPTY(&op->follows))
        return false;
    sgi_map_remove(&listeners->followed, &op->node);
    sgi_free(&listeners->mem, op, sizeof *op);
    return true;
}

static follow *find_follow(operation *op, const sgi_store_listener *listener)
{
    follow *f = NULL;
    if (op)
        TAILQ_FOREACH(f, &op->follows, of_operation)
            if (f->listener == listener)
                break;
    return f;
}

static bool drop_follow(sgi_listeners *listeners, follow *f)
{
    operation *op = f->op;
    TAILQ_REMOVE(&op->follows, f, of_operation);
    TAILQ_REMOVE(&f->listener->follows, f, of_listener);
    if (f->grew)
        TAILQ_REMOVE(&f->listener->grown, f, grown_link);
    sgi_free(&listeners->mem, f, sizeof *f);
    return drop_if_unfollowed(listeners, op);
}

static segue_status add_follow(sgi_listeners *listeners, sgi_store_listener *listener,
                               const uint8_t *id, bool *changed)
{
    operation *op = find_operation(listeners, id);
    bool first = !op;
    if (first && !(op = add_operation(listeners, id)))
        return SEGUE_E_NOMEM;
    follow *f = sgi_zalloc(&listeners->mem, sizeof *f);
    if (!f) {
        drop_if_unfollowed(listeners, op);
        return SEGUE_E_NOMEM;
    }
    f->op = op;
    f->listener = listener;
    TAILQ_INSERT_TAIL(&op->follows, f, of_operation);
    TAILQ_INSERT_TAIL(&listener->follows, f, of_listener);
    *changed = first;
    return SEGUE_OK;
}

segue_status sgi_listeners_follow(sgi_listeners *listeners, sgi_store_listener *listener,
                                  const uint8_t *id, bool on, bool *changed)
{
    segue_status status = SEGUE_OK;
    *changed = false;
    pthread_mutex_lock(&listeners->lock);
    follow *f = find_follow(find_operation(listeners, id), listener);
    if (on && !f)
        status = add_follow(listeners, listener, id, changed);
    else if (!on && f)
        *changed = drop_follow(listeners, f);
    pthread_mutex_unlock(&listeners->lock);
    return status;
}

bool sgi_listeners_find_followed(sgi_listeners *listeners,
                                 const sgi_store_listener *listener,
                                 uint8_t id[SEGUE_STORE_ID_SIZE])
{
    pthread_mutex_lock(&listeners->lock);
    const follow *f = TAILQ_FIRST(&listener->follows);
    if (f)
        memcpy(id, f->op->id, SEGUE_STORE_ID_SIZE);
    pthread_mutex_unlock(&listeners->lock);
    return f != NULL;
}

/* ---- wake-up calls ---- */

static sgi_store_listener *first_due(const sgi_listeners *listeners)
{
    sgi_store_listener *listener;
    TAILQ_FOREACH(listener, &listeners->all, link)
        if (listener->due && !listener->woken)
            break;
    return listener;
}

static void wake_due(sgi_listeners *listeners)
{
    sgi_store_listener *listener;
    while ((listener = first_due(listeners))) {
        listener->woken = true;
        listener->waking++;
        pthread_mutex_unlock(&listeners->lock);
        listener->wake(listener->user);
        pthread_mutex_lock(&listeners->lock);
        if (!--listener->waking)
            pthread_cond_broadcast(&listeners->quiet);
    }
}

void sgi_listeners_wake(sgi_listeners *listeners)
{
    pthread_mutex_lock(&listeners->lock);
    wake_due(listeners);
    pthread_mutex_unlock(&listeners->lock);
}

void sgi_listeners_remove(sgi_listeners *listeners, sgi_store_listener *listener)
{
    follow *f;
    pthread_mutex_lock(&listeners->lock);
    TAILQ_REMOVE(&listeners->all, listener, link);
    while (listener->waking)
        pthread_cond_wait(&listeners->quiet, &listeners->lock);
    while ((f = TAILQ_FIRST(&listener->follows)))
        drop_follow(listeners, f);
    pthread_mutex_unlock(&listeners->lock);
    sgi_free(&listeners->mem, listener, sizeof *listener);
}

/* ---- marking listeners that have news ---- */

static void mark_follow(follow *f)
{
    f->listener->due = true;
    if (f->grew)
        return;
    f->grew = true;
    TAILQ_INSERT_TAIL(&f->listener->grown, f, grown_link);
}

static void mark_operation(operation *op, const sgi_store_listener *by)
{
    follow *f;
    if (op)
        TAILQ_FOREACH(f, &op->follows, of_operation)
            if (f->listener != by)
                mark_follow(f);
}

static void mark_orphans(sgi_listeners *listeners, const sgi_store_listener *by)
{
    sgi_store_listener *listener;
    TAILQ_FOREACH(listener, &listeners->all, link)
        if (listener != by)
            listener->orphans = listener->due = true;
}

static void mark_missed(sgi_listeners *listeners)
{
    sgi_store_listener *listener;
    TAILQ_FOREACH(listener, &listeners->all, link)
        listener->missed = listener->due = true;
}

static void mark_doubt(sgi_listeners *listeners)
{
    sgi_store_listener *listener;
    TAILQ_FOREACH(listener, &listeners->all, link)
        listener->doubt = listener->due = true;
}

static void mark_all(sgi_listeners *listeners)
{
    sgi_store_listener *listener;
    TAILQ_FOREACH(listener, &listeners->all, link)
        listener->due = true;
}

void sgi_listeners_wake_all(void *user)
{
    sgi_listeners *listeners = user;
    pthread_mutex_lock(&listeners->lock);
    mark_all(listeners);
    wake_due(listeners);
    pthread_mutex_unlock(&listeners->lock);
}

static void note_write(sgi_listeners *listeners, const sgi_store_listener *by,
                       const segue_store_write *write)
{
    operation *op;
    switch (write->kind) {
    case SEGUE_STORE_APPEND:
        mark_operation(find_operation(listeners, write->id), by);
        break;
    case SEGUE_STORE_END:
    case SEGUE_STORE_DELETE:
        if ((op = find_operation(listeners, write->id)))
            op->ended = true;
        mark_operation(op, by);
        sgi_store_commands_remove(&listeners->commands, write->id, UINT64_MAX);
        break;
    case SEGUE_STORE_RELEASE:
        mark_orphans(listeners, by);
        break;
    case SEGUE_STORE_TAKEN:
        sgi_store_commands_remove(&listeners->commands, write->id, write->entry.seq);
        break;
    default:
        break;
    }
}

void sgi_listeners_report_writes(sgi_listeners *listeners, const sgi_store_listener *by,
                                 const segue_store_write *writes, size_t count)
{
    pthread_mutex_lock(&listeners->lock);
    for (size_t i = 0; i < count; i++)
        note_write(listeners, by, &writes[i]);
    wake_due(listeners);
    pthread_mutex_unlock(&listeners->lock);
}

/* Returns the position in the list of commands up to which every listener has received
 * the commands. */
static uint64_t received_by_all(const sgi_listeners *listeners)
{
    const sgi_store_listener *listener;
    uint64_t received = UINT64_MAX;
    TAILQ_FOREACH(listener, &listeners->all, link)
        if (listener->received < received)
            received = listener->received;
    return received;
}

segue_status sgi_listeners_post_command(sgi_listeners *listeners, const uint8_t *id,
                                        const char *data, size_t len)
{
    segue_store_news news = {.kind = SEGUE_STORE_LETTER, .data = data, .data_len = len};
    memcpy(news.id, id, sizeof news.id);
    pthread_mutex_lock(&listeners->lock);
    const operation *op = find_operation(listeners, id);
    segue_status status = op && op->ended
                              ? SEGUE_E_TERMINAL
                              : sgi_store_commands_post(&listeners->commands, &news,
                                                        received_by_all(listeners));
    if (!status)
        mark_all(listeners);
    wake_due(listeners);
    pthread_mutex_unlock(&listeners->lock);
    return status;
}

void sgi_listeners_report_claim(sgi_listeners *listeners, const uint8_t *id)
{
    pthread_mutex_lock(&listeners->lock);
    if (sgi_store_commands_redeliver(&listeners->commands, id))
        mark_all(listeners);
    pthread_mutex_unlock(&listeners->lock);
}

int32_t sgi_listeners_take_change(void *user, const segue_store_news *news)
{
    sgi_listeners *listeners = user;
    int32_t stop = 0;
    pthread_mutex_lock(&listeners->lock);
    switch (news->kind) {
    case SEGUE_STORE_GREW:
        mark_operation(find_operation(listeners, news->id), NULL);
        break;
    case SEGUE_STORE_LETTER:
        if (!sgi_store_commands_has_room(&listeners->commands) ||
            sgi_store_commands_add(&listeners->commands, news))
            /* there is no room or no memory for the command; the store will deliver the
             * command again */
            stop = 1;
        else
            mark_all(listeners);
        break;
    case SEGUE_STORE_ORPHANS:
        mark_orphans(listeners, NULL);
        break;
    case SEGUE_STORE_DOUBT:
        mark_doubt(listeners);
        break;
    case SEGUE_STORE_MISSED:
    default: /* a kind that only a newer store knows is handled like SEGUE_STORE_MISSED */
        mark_missed(listeners);
        break;
    }
    pthread_mutex_unlock(&listeners->lock);
    return stop;
}

/* ---- delivering news ---- */

void sgi_listeners_rearm(sgi_listeners *listeners, sgi_store_listener *listener)
{
    pthread_mutex_lock(&listeners->lock);
    listener->due = listener->woken = false;
    pthread_mutex_unlock(&listeners->lock);
}

/* Reports the operations that grew. Returns true when fn has stopped. Growth is reported
 * before the forwarded commands, so a listener that gets a command already knows every
 * entry that was written before the command. */
static bool hand_growth(sgi_store_listener *listener, segue_store_news_fn fn, void *user)
{
    follow *f;
    while ((f = TAILQ_FIRST(&listener->grown))) {
        segue_store_news news = {.kind = SEGUE_STORE_GREW};
        memcpy(news.id, f->op->id, sizeof news.id);
        if (fn(user, &news))
            return true;
        f->grew = false;
        TAILQ_REMOVE(&listener->grown, f, grown_link);
    }
    return false;
}

static bool hand_flag(bool *flag, int32_t kind, segue_store_news_fn fn, void *user)
{
    segue_store_news news = {.kind = kind};
    if (*flag && fn(user, &news))
        return true;
    *flag = false;
    return false;
}

static bool hand_commands(sgi_listeners *listeners, sgi_store_listener *listener,
                          segue_store_news_fn fn, void *user)
{
    const sgi_store_command *command;
    while (
        (command = sgi_store_commands_next(&listeners->commands, listener->received))) {
        if (fn(user, &command->news))
            return true;
        listener->received = command->place;
    }
    return false;
}

bool sgi_listeners_deliver(sgi_listeners *listeners, sgi_store_listener *listener,
                           segue_store_news_fn fn, void *user)
{
    pthread_mutex_lock(&listeners->lock);
    bool stopped = hand_flag(&listener->doubt, SEGUE_STORE_DOUBT, fn, user) ||
                   hand_flag(&listener->missed, SEGUE_STORE_MISSED, fn, user) ||
                   hand_growth(listener, fn, user) ||
                   hand_commands(listeners, listener, fn, user) ||
                   hand_flag(&listener->orphans, SEGUE_STORE_ORPHANS, fn, user);
    if (listeners->lends)
        sgi_store_commands_trim(&listeners->commands, received_by_all(listeners));
    pthread_mutex_unlock(&listeners->lock);
    return stopped;
}
