/* Passes news from Redis to the listeners of the store.
 *
 *     watch thread --grown, mail, orphans, missed--> (lock) --news()--> fn
 *
 * The thread stores what it receives in lists of fixed size and calls the wake-up
 * callback. When a list is full, the flag `missed` or `mail_all` is set instead.
 * Forwarded commands stay in Redis until their owner takes them; the list `mail` has
 * only the ids of the operations for which commands arrived. An operation's mark
 * (sgi_redis_known_op) has in `delivered` the number of the last command that was
 * delivered since this instance owns the operation. News that the thread stores during
 * a call of news() is delivered by the next call, so that other users of the store get
 * their turn.
 *
 * A mark exists while its operation is followed, or while commands for the operation
 * were delivered and not taken. Only calls of the vtable create, change and free
 * marks, one call at a time. The thread reads under the lock which marks are followed. */
#include "store/redis_store.h"

#include "base/crypto.h"

/* ---- marks: what this instance knows of operations ---- */

sgi_redis_known_op *sgi_redis_known_op_of(sgi_redis_store *store, const uint8_t *id)
{
    sgi_map_node *node =
        sgi_map_find(&store->marks, (sgi_str){(const char *)id, SEGUE_STORE_ID_SIZE});
    return node ? SGI_OWNER(node, sgi_redis_known_op, node) : NULL;
}

/* Returns the operation's mark, and makes the mark if the operation has none. Returns
 * NULL when out of memory. */
static sgi_redis_known_op *make_mark(sgi_redis_store *store, const uint8_t *id)
{
    sgi_redis_known_op *mark = sgi_redis_known_op_of(store, id);
    if (mark)
        return mark;
    mark = sgi_zalloc(&store->mem, sizeof *mark);
    if (!mark)
        return NULL;
    memcpy(mark->id, id, sizeof mark->id);
    pthread_mutex_lock(&store->lock);
    sgi_map_put(&store->marks, &mark->node,
                (sgi_str){(const char *)mark->id, sizeof mark->id});
    TAILQ_INSERT_TAIL(&store->mark_list, mark, link);
    pthread_mutex_unlock(&store->lock);
    return mark;
}

/* Removes and frees the mark. The caller holds the lock. */
static void free_mark(sgi_redis_store *store, sgi_redis_known_op *mark)
{
    sgi_map_remove(&store->marks, &mark->node);
    TAILQ_REMOVE(&store->mark_list, mark, link);
    sgi_release(&store->mem, mark, sizeof *mark);
}

static void drop_idle(sgi_redis_store *store, sgi_redis_known_op *mark)
{
    if (mark->followed || mark->delivered)
        return;
    pthread_mutex_lock(&store->lock);
    free_mark(store, mark);
    pthread_mutex_unlock(&store->lock);
}

static void set_followed(sgi_redis_store *store, sgi_redis_known_op *mark, bool on)
{
    pthread_mutex_lock(&store->lock);
    mark->followed = on;
    pthread_mutex_unlock(&store->lock);
}

void sgi_redis_commands_taken(sgi_redis_store *store, const uint8_t *id, uint64_t seq)
{
    sgi_redis_known_op *mark = sgi_redis_known_op_of(store, id);
    if (mark && mark->delivered <= seq) {
        mark->delivered = 0;
        drop_idle(store, mark);
    }
}

void sgi_redis_known_ops_free(sgi_redis_store *store)
{
    sgi_redis_known_op *mark, *next;
    SGI_TAILQ_EACH(mark, &store->mark_list, link, next)
        sgi_release(&store->mem, mark, sizeof *mark);
    sgi_map_free(&store->marks);
}

/* ---- lists of news ---- */

bool sgi_redis_ids_add(sgi_redis_ids *list, const uint8_t *id)
{
    for (size_t i = 0; i < list->count; i++)
        if (!memcmp(list->ids[i], id, SEGUE_STORE_ID_SIZE))
            return true;
    if (list->count == SGI_REDIS_NEWS_MAX)
        return false;
    memcpy(list->ids[list->count++], id, SEGUE_STORE_ID_SIZE);
    return true;
}

static size_t count_of(sgi_redis_store *store, const sgi_redis_ids *list)
{
    pthread_mutex_lock(&store->lock);
    size_t count = list->count;
    pthread_mutex_unlock(&store->lock);
    return count;
}

static bool take_first(sgi_redis_store *store, sgi_redis_ids *list, uint8_t *id)
{
    pthread_mutex_lock(&store->lock);
    bool any = list->count > 0;
    if (any) {
        memcpy(id, list->ids[0], SEGUE_STORE_ID_SIZE);
        memmove(list->ids[0], list->ids[1], --list->count * SEGUE_STORE_ID_SIZE);
    }
    pthread_mutex_unlock(&store->lock);
    return any;
}

static void put_back(sgi_redis_store *store, sgi_redis_ids *list, const uint8_t *id,
                     bool *otherwise)
{
    pthread_mutex_lock(&store->lock);
    if (!sgi_redis_ids_add(list, id))
        *otherwise = true;
    pthread_mutex_unlock(&store->lock);
}

static bool take_flag(sgi_redis_store *store, bool *flag)
{
    pthread_mutex_lock(&store->lock);
    bool set = *flag;
    *flag = false;
    pthread_mutex_unlock(&store->lock);
    return set;
}

void sgi_redis_set_flag(sgi_redis_store *store, bool *flag)
{
    pthread_mutex_lock(&store->lock);
    *flag = true;
    pthread_mutex_unlock(&store->lock);
}

/* ---- the wake-up callback ---- */

void sgi_redis_wake(sgi_redis_store *store)
{
    pthread_mutex_lock(&store->wake_lock);
    if (store->wake)
        store->wake(store->wake_user);
    pthread_mutex_unlock(&store->wake_lock);
}

void sgi_redis_set_wake_callback(void *self, void (*wake)(void *user), void *user)
{
    sgi_redis_store *store = self;
    pthread_mutex_lock(&store->wake_lock);
    store->wake = wake;
    store->wake_user = user;
    pthread_mutex_unlock(&store->wake_lock);
}

/* ---- following, posting ---- */

static segue_status say_follow(sgi_redis_store *store, const uint8_t *id, bool on)
{
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin_write_script(store, SGI_REDIS_FOLLOW, 2);
    sgi_redis_arg_text(&store->commands, on ? "1" : "0");
    sgi_redis_arg(&store->commands, id, SEGUE_STORE_ID_SIZE);
    return sgi_redis_execute_for_status(store);
}

/* Tells Redis that this instance no longer follows the operation, so that Redis sends no
 * needless messages. A failed command is not repeated at once: a listener that closes
 * would otherwise wait for an unreachable server once per operation. If Redis still sends
 * news of the operation, the command is sent again. */
static void say_left(sgi_redis_store *store, const uint8_t *id)
{
    if (sgi_redis_link_is_up(&store->link) && say_follow(store, id, false) != SEGUE_OK)
        sgi_redis_link_close(&store->link);
}

segue_status sgi_redis_follow(void *self, const uint8_t *id, int32_t on)
{
    sgi_redis_store *store = self;
    segue_status status = SEGUE_OK;
    sgi_redis_known_op *mark =
        on ? make_mark(store, id) : sgi_redis_known_op_of(store, id);
    if (!mark)
        return on ? SEGUE_E_NOMEM : SEGUE_OK;
    /* The mark is set before the command is sent. Meanwhile the thread may follow all
     * marked operations again on a new connection, and must then include this
     * operation. */
    set_followed(store, mark, on != 0);
    if (on)
        status = say_follow(store, id, true);
    else
        say_left(store, id);
    if (status)
        set_followed(store, mark, false);
    drop_idle(store, mark);
    return status;
}

segue_status sgi_redis_post(void *self, const uint8_t *id, const char *data, size_t len)
{
    sgi_redis_store *store = self;
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin_write_script(store, SGI_REDIS_POST, 3);
    sgi_redis_arg(&store->commands, id, SEGUE_STORE_ID_SIZE);
    sgi_redis_arg(&store->commands, data, len);
    sgi_redis_arg_int(&store->commands, SGI_REDIS_COMMANDS_MAX);
    segue_status status = sgi_redis_execute_for_status(store);
    if (status <= 0)
        return status;
    /* this instance owns the operation itself, so Redis sends no message about the
     * command */
    put_back(store, &store->mail, id, &store->mail_all);
    sgi_redis_wake(store);
    return SEGUE_OK;
}

/* ---- news ---- */

typedef struct telling {
    sgi_redis_store *store;
    segue_store_news_fn fn;
    void *user;
    bool stopped;
} telling;

static bool tell(telling *t, const segue_store_news *news)
{
    t->stopped = t->fn(t->user, news) != 0;
    return !t->stopped;
}

/* If *flag is set, clears the flag and delivers news of this kind. Such news is not about
 * a certain operation. */
static void tell_flag(telling *t, bool *flag, int32_t kind)
{
    segue_store_news news = {.kind = kind, .data = ""};
    if (!t->stopped && take_flag(t->store, flag) && !tell(t, &news))
        sgi_redis_set_flag(t->store, flag);
}

static segue_status tell_doubt(telling *t)
{
    sgi_redis_store *store = t->store;
    segue_store_news news = {.kind = SEGUE_STORE_DOUBT, .data = ""};
    if (!take_flag(store, &store->doubt))
        return SEGUE_OK;
    segue_status status = sgi_redis_release_reopened_ops(store);
    if (status || !tell(t, &news))
        sgi_redis_set_flag(store, &store->doubt);
    return status;
}

static void tell_grown(telling *t)
{
    sgi_redis_store *store = t->store;
    segue_store_news news = {.kind = SEGUE_STORE_GREW, .data = ""};
    size_t left = count_of(store, &store->grown);
    for (; left && !t->stopped && take_first(store, &store->grown, news.id); left--) {
        const sgi_redis_known_op *mark = sgi_redis_known_op_of(store, news.id);
        if (!mark || !mark->followed)
            say_left(store, news.id);
        else if (!tell(t, &news))
            put_back(store, &store->grown, news.id, &store->missed);
    }
}

/* Delivers the forwarded commands of an operation. reply: the number of the last command,
 * then the waiting commands. */
static segue_status tell_each(telling *t, const uint8_t *id, const redisReply *reply)
{
    if (!sgi_redis_is_array(reply, 2) || reply->element[0]->type != REDIS_REPLY_INTEGER ||
        !sgi_redis_is_array(reply->element[1], 0))
        return SEGUE_E_STORE_CORRUPT;
    const redisReply *commands = reply->element[1];
    uint64_t last = (uint64_t)reply->element[0]->integer;
    if (!commands->elements || commands->elements > last)
        return SEGUE_OK;
    /* The mark is made before the first command is delivered, because making the mark can
     * fail. */
    sgi_redis_known_op *mark = make_mark(t->store, id);
    if (!mark)
        return SEGUE_E_NOMEM;
    for (size_t i = 0; i < commands->elements && !t->stopped; i++) {
        const redisReply *command = commands->element[i];
        segue_store_news news = {.kind = SEGUE_STORE_LETTER,
                                 .number = last - commands->elements + 1 + i,
                                 .data = command->str,
                                 .data_len = command->len};
        memcpy(news.id, id, sizeof news.id);
        if (news.number > mark->delivered && sgi_redis_is_text(command) && tell(t, &news))
            mark->delivered = news.number;
    }
    drop_idle(t->store, mark);
    return SEGUE_OK;
}

static void forget_told(sgi_redis_store *store)
{
    sgi_redis_known_op *mark, *next;
    pthread_mutex_lock(&store->lock);
    SGI_TAILQ_EACH(mark, &store->mark_list, link, next) {
        mark->delivered = 0;
        if (!mark->followed)
            free_mark(store, mark);
    }
    pthread_mutex_unlock(&store->lock);
}

static segue_status pass_commands_of(telling *t, const uint8_t *id)
{
    sgi_redis_store *store = t->store;
    redisReply *reply;
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin_script(store, SGI_REDIS_COMMANDS, 2);
    sgi_redis_arg_text(&store->commands, store->me);
    sgi_redis_arg(&store->commands, id, SEGUE_STORE_ID_SIZE);
    segue_status status = sgi_redis_execute(store, 1, &reply);
    if (status)
        return status;
    /* a number as reply means that this instance no longer owns the operation */
    if (reply->type == REDIS_REPLY_INTEGER)
        sgi_redis_commands_taken(store, id, UINT64_MAX);
    else
        status = tell_each(t, id, reply);
    freeReplyObject(reply);
    return status;
}

static segue_status pass_commands(telling *t)
{
    sgi_redis_store *store = t->store;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    segue_status status = SEGUE_OK;
    size_t left = count_of(store, &store->mail);
    for (; left && !status && !t->stopped && take_first(store, &store->mail, id);
         left--) {
        status = pass_commands_of(t, id);
        if (status || t->stopped)
            put_back(store, &store->mail, id, &store->mail_all);
    }
    return status;
}

/* Delivers the waiting forwarded commands of all operations that this instance owns. */
static segue_status pass_all_commands(telling *t)
{
    sgi_redis_store *store = t->store;
    redisReply *reply;
    if (t->stopped || !take_flag(store, &store->mail_all))
        return SEGUE_OK;
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_command_begin(&store->commands, 2);
    sgi_redis_arg_text(&store->commands, "SMEMBERS");
    sgi_redis_arg_begin(&store->commands, strlen(store->keys) + 5 + strlen(store->me));
    sgi_buf_add(&store->commands, store->keys, strlen(store->keys));
    sgi_buf_add_lit(&store->commands, "mail:");
    sgi_buf_add(&store->commands, store->me, strlen(store->me));
    sgi_redis_arg_end(&store->commands);
    segue_status status = sgi_redis_execute(store, 1, &reply);
    if (!status) {
        for (size_t i = 0; i < reply->elements && !status && !t->stopped; i++)
            if (reply->element[i]->len == SEGUE_STORE_ID_SIZE)
                status = pass_commands_of(t, (const uint8_t *)reply->element[i]->str);
        freeReplyObject(reply);
    }
    if (status || t->stopped)
        sgi_redis_set_flag(store, &store->mail_all);
    return status;
}

segue_status sgi_redis_read_changes(void *self, segue_store_news_fn fn, void *user,
                                    int64_t *within_ms)
{
    sgi_redis_store *store = self;
    telling t = {.store = store, .fn = fn, .user = user};
    if (take_flag(store, &store->retell))
        forget_told(store);
    segue_status status = tell_doubt(&t);
    tell_flag(&t, &store->missed, SEGUE_STORE_MISSED);
    tell_flag(&t, &store->orphans, SEGUE_STORE_ORPHANS);
    tell_grown(&t);
    if (!status)
        status = pass_all_commands(&t);
    if (!status)
        status = pass_commands(&t);
    /* -1 = no further call is needed, because the thread calls the wake-up callback
     * when there is more news. After an error the caller asks again in 1 s. */
    *within_ms = t.stopped ? 0 : status ? 1000 : -1;
    return status;
}
