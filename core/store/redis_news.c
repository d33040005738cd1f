/* What others did, on its way from the server to whoever asks.
 *
 *     watch thread --grown, mail, orphans, missed--> (lock) --news()--> fn
 *
 * The thread only notes what it hears, in lists of fixed size, and rings; a list that is
 * full becomes "some were missed", which is news as well. Letters stay in Redis until
 * they are taken; what is noted is for which operation one came. `told` in an operation's
 * mark is how far they have been handed over since it is ours. What is noted while news
 * are told waits for the next time, for which the thread rings: others want the store,
 * too.
 *
 * A mark exists while its operation is followed or letters of it were told and not taken.
 * Only calls of the vtable make, change and free marks, one at a time; the thread reads
 * which are followed, under the lock. */
#include "store/redis_store.h"

#include "base/crypto.h"

/* ---- marks ---- */

sgi_redis_mark *sgi_redis_mark_of(sgi_redis_store *store, const uint8_t *id)
{
    sgi_map_node *node =
        sgi_map_find(&store->marks, (sgi_str){(const char *)id, SEGUE_STORE_ID_SIZE});
    return node ? SGI_OWNER(node, sgi_redis_mark, node) : NULL;
}

/* The mark, made when there is none; NULL when out of memory. */
static sgi_redis_mark *make_mark(sgi_redis_store *store, const uint8_t *id)
{
    sgi_redis_mark *mark = sgi_redis_mark_of(store, id);
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

/* Under the lock. */
static void free_mark(sgi_redis_store *store, sgi_redis_mark *mark)
{
    sgi_map_remove(&store->marks, &mark->node);
    TAILQ_REMOVE(&store->mark_list, mark, link);
    sgi_release(&store->mem, mark, sizeof *mark);
}

static void drop_idle(sgi_redis_store *store, sgi_redis_mark *mark)
{
    if (mark->followed || mark->told)
        return;
    pthread_mutex_lock(&store->lock);
    free_mark(store, mark);
    pthread_mutex_unlock(&store->lock);
}

static void set_followed(sgi_redis_store *store, sgi_redis_mark *mark, bool on)
{
    pthread_mutex_lock(&store->lock);
    mark->followed = on;
    pthread_mutex_unlock(&store->lock);
}

void sgi_redis_letters_gone(sgi_redis_store *store, const uint8_t *id, uint64_t seq)
{
    sgi_redis_mark *mark = sgi_redis_mark_of(store, id);
    if (mark && mark->told <= seq) {
        mark->told = 0;
        drop_idle(store, mark);
    }
}

void sgi_redis_marks_free(sgi_redis_store *store)
{
    sgi_redis_mark *mark, *next;
    SGI_TAILQ_EACH(mark, &store->mark_list, link, next)
        sgi_release(&store->mem, mark, sizeof *mark);
    sgi_map_free(&store->marks);
}

/* ---- lists ---- */

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

/* ---- the bell ---- */

void sgi_redis_ring(sgi_redis_store *store)
{
    pthread_mutex_lock(&store->bell_lock);
    if (store->ring)
        store->ring(store->ring_user);
    pthread_mutex_unlock(&store->bell_lock);
}

void sgi_redis_set_bell(void *self, void (*ring)(void *user), void *user)
{
    sgi_redis_store *store = self;
    pthread_mutex_lock(&store->bell_lock);
    store->ring = ring;
    store->ring_user = user;
    pthread_mutex_unlock(&store->bell_lock);
}

/* ---- following, posting ---- */

static segue_status say_follow(sgi_redis_store *store, const uint8_t *id, bool on)
{
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_change(store, SGI_REDIS_FOLLOW, 2);
    sgi_redis_arg_text(&store->commands, on ? "1" : "0");
    sgi_redis_arg(&store->commands, id, SEGUE_STORE_ID_SIZE);
    return sgi_redis_ask_status(store);
}

/* Spares the others work, and no more: who leaves all that it followed does not wait for
 * a server that is away, time limit after time limit. When the operation grows it is said
 * again. */
static void say_left(sgi_redis_store *store, const uint8_t *id)
{
    if (sgi_redis_link_is_up(&store->link) && say_follow(store, id, false) != SEGUE_OK)
        sgi_redis_link_close(&store->link);
}

segue_status sgi_redis_follow(void *self, const uint8_t *id, int32_t on)
{
    sgi_redis_store *store = self;
    segue_status status = SEGUE_OK;
    sgi_redis_mark *mark = on ? make_mark(store, id) : sgi_redis_mark_of(store, id);
    if (!mark)
        return on ? SEGUE_E_NOMEM : SEGUE_OK;
    /* Before the server knows: should the thread follow all anew just now, this one is
     * among them. */
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
    sgi_redis_change(store, SGI_REDIS_POST, 3);
    sgi_redis_arg(&store->commands, id, SEGUE_STORE_ID_SIZE);
    sgi_redis_arg(&store->commands, data, len);
    sgi_redis_arg_int(&store->commands, SGI_REDIS_LETTERS_MAX);
    segue_status status = sgi_redis_ask_status(store);
    if (status <= 0)
        return status;
    put_back(store, &store->mail, id, &store->mail_all); /* it is ours: no detour */
    sgi_redis_ring(store);
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

/* What happens to no operation in particular. */
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
    segue_status status = sgi_redis_recall_ends(store);
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
        const sgi_redis_mark *mark = sgi_redis_mark_of(store, news.id);
        if (!mark || !mark->followed)
            say_left(store, news.id);
        else if (!tell(t, &news))
            put_back(store, &store->grown, news.id, &store->missed);
    }
}

/* reply: the last number, and those that wait. */
static segue_status tell_each(telling *t, const uint8_t *id, const redisReply *reply)
{
    if (!sgi_redis_is_array(reply, 2) || reply->element[0]->type != REDIS_REPLY_INTEGER ||
        !sgi_redis_is_array(reply->element[1], 0))
        return SEGUE_E_STORE_CORRUPT;
    const redisReply *letters = reply->element[1];
    uint64_t last = (uint64_t)reply->element[0]->integer;
    if (!letters->elements || letters->elements > last)
        return SEGUE_OK;
    sgi_redis_mark *mark = make_mark(t->store, id); /* before the first is told */
    if (!mark)
        return SEGUE_E_NOMEM;
    for (size_t i = 0; i < letters->elements && !t->stopped; i++) {
        const redisReply *letter = letters->element[i];
        segue_store_news news = {.kind = SEGUE_STORE_LETTER,
                                 .number = last - letters->elements + 1 + i,
                                 .data = letter->str,
                                 .data_len = letter->len};
        memcpy(news.id, id, sizeof news.id);
        if (news.number > mark->told && sgi_redis_is_text(letter) && tell(t, &news))
            mark->told = news.number;
    }
    drop_idle(t->store, mark);
    return SEGUE_OK;
}

static void forget_told(sgi_redis_store *store)
{
    sgi_redis_mark *mark, *next;
    pthread_mutex_lock(&store->lock);
    SGI_TAILQ_EACH(mark, &store->mark_list, link, next) {
        mark->told = 0;
        if (!mark->followed)
            free_mark(store, mark);
    }
    pthread_mutex_unlock(&store->lock);
}

static segue_status tell_letters_of(telling *t, const uint8_t *id)
{
    sgi_redis_store *store = t->store;
    redisReply *reply;
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_call(store, SGI_REDIS_LETTERS, 2);
    sgi_redis_arg_text(&store->commands, store->me);
    sgi_redis_arg(&store->commands, id, SEGUE_STORE_ID_SIZE);
    segue_status status = sgi_redis_ask(store, 1, &reply);
    if (status)
        return status;
    if (reply->type == REDIS_REPLY_INTEGER) /* it is not ours */
        sgi_redis_letters_gone(store, id, UINT64_MAX);
    else
        status = tell_each(t, id, reply);
    freeReplyObject(reply);
    return status;
}

static segue_status tell_letters(telling *t)
{
    sgi_redis_store *store = t->store;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    segue_status status = SEGUE_OK;
    size_t left = count_of(store, &store->mail);
    for (; left && !status && !t->stopped && take_first(store, &store->mail, id);
         left--) {
        status = tell_letters_of(t, id);
        if (status || t->stopped)
            put_back(store, &store->mail, id, &store->mail_all);
    }
    return status;
}

/* Letters may wait for any operation of ours. */
static segue_status tell_all_letters(telling *t)
{
    sgi_redis_store *store = t->store;
    redisReply *reply;
    if (t->stopped || !take_flag(store, &store->mail_all))
        return SEGUE_OK;
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin(&store->commands, 2);
    sgi_redis_arg_text(&store->commands, "SMEMBERS");
    sgi_redis_arg_begin(&store->commands, strlen(store->keys) + 5 + strlen(store->me));
    sgi_buf_add(&store->commands, store->keys, strlen(store->keys));
    sgi_buf_add_lit(&store->commands, "mail:");
    sgi_buf_add(&store->commands, store->me, strlen(store->me));
    sgi_redis_arg_end(&store->commands);
    segue_status status = sgi_redis_ask(store, 1, &reply);
    if (!status) {
        for (size_t i = 0; i < reply->elements && !status && !t->stopped; i++)
            if (reply->element[i]->len == SEGUE_STORE_ID_SIZE)
                status = tell_letters_of(t, (const uint8_t *)reply->element[i]->str);
        freeReplyObject(reply);
    }
    if (status || t->stopped)
        sgi_redis_set_flag(store, &store->mail_all);
    return status;
}

segue_status sgi_redis_news(void *self, segue_store_news_fn fn, void *user,
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
        status = tell_all_letters(&t);
    if (!status)
        status = tell_letters(&t);
    /* The thread keeps the lease and rings. What failed is tried again by the clock. */
    *within_ms = t.stopped ? 0 : status ? 1000 : -1;
    return status;
}
