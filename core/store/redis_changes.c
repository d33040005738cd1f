/* Passes news (changes of other instances) from Redis to the listeners of the store
 * (see feed.h). The thread in redis_watch.c receives the news by SUBSCRIBE. */
#include "store/redis_store.h"

void sgi_redis_set_wake_callback(void *self, void (*wake)(void *user), void *user)
{
    sgi_redis_store *store = self;
    sgi_store_feed_set_wake_callback(&store->feed, wake, user);
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
 * would otherwise wait for an unreachable server once per operation. If Redis still
 * reports that the operation grows, the command is sent again. */
static void say_left(void *self, const uint8_t *id)
{
    sgi_redis_store *store = self;
    if (sgi_redis_link_is_up(&store->link) && say_follow(store, id, false) != SEGUE_OK)
        sgi_redis_link_close(&store->link);
}

segue_status sgi_redis_follow(void *self, const uint8_t *id, int32_t on)
{
    sgi_redis_store *store = self;
    sgi_store_feed *feed = &store->feed;
    segue_status status = SEGUE_OK;
    sgi_store_feed_op *op =
        on ? sgi_store_feed_find_or_add_op(feed, id) : sgi_store_feed_find_op(feed, id);
    if (!op)
        return on ? SEGUE_E_NOMEM : SEGUE_OK;
    /* The mark `followed` is set before the command is sent. Meanwhile the thread may
     * follow all operations again on a new connection, and must then include this
     * operation. */
    sgi_store_feed_set_followed(feed, op, on != 0);
    if (on)
        status = say_follow(store, id, true);
    else
        say_left(store, id);
    if (status)
        sgi_store_feed_set_followed(feed, op, false);
    sgi_store_feed_drop_idle_op(feed, op);
    return status;
}

segue_status sgi_redis_post_command(void *self, const uint8_t *id, const char *data,
                                    size_t len)
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
    sgi_store_feed_add_id(&store->feed, &store->feed.mail, id, &store->feed.mail_all);
    sgi_store_feed_wake(&store->feed);
    return SEGUE_OK;
}

/* ---- news ---- */

static segue_status tell_doubt(sgi_redis_store *store, sgi_store_feed_delivery *t)
{
    sgi_store_feed *feed = &store->feed;
    segue_store_news news = {.kind = SEGUE_STORE_DOUBT, .data = ""};
    if (!sgi_store_feed_take_flag(feed, &feed->doubt))
        return SEGUE_OK;
    segue_status status = sgi_redis_release_reopened_ops(store);
    if (status || !sgi_store_feed_deliver(t, &news))
        sgi_store_feed_set_flag(feed, &feed->doubt);
    return status;
}

/* Delivers the forwarded commands of an operation. reply: the number of the last command,
 * then the waiting commands. */
static segue_status tell_each(sgi_store_feed_delivery *t, const uint8_t *id,
                              const redisReply *reply)
{
    if (!sgi_redis_is_array(reply, 2) || reply->element[0]->type != REDIS_REPLY_INTEGER ||
        !sgi_redis_is_array(reply->element[1], 0))
        return SEGUE_E_STORE_CORRUPT;
    const redisReply *commands = reply->element[1];
    uint64_t last = (uint64_t)reply->element[0]->integer;
    if (!commands->elements || commands->elements > last)
        return SEGUE_OK;
    /* The feed's record of the operation is made before the first command is delivered,
     * because making the record can fail. */
    sgi_store_feed_op *op = sgi_store_feed_find_or_add_op(t->feed, id);
    if (!op)
        return SEGUE_E_NOMEM;
    for (size_t i = 0; i < commands->elements && !t->stopped; i++) {
        const redisReply *command = commands->element[i];
        segue_store_news news = {.kind = SEGUE_STORE_LETTER,
                                 .number = last - commands->elements + 1 + i,
                                 .data = command->str,
                                 .data_len = command->len};
        memcpy(news.id, id, sizeof news.id);
        if (news.number > op->delivered && sgi_redis_is_text(command) &&
            sgi_store_feed_deliver(t, &news))
            op->delivered = news.number;
    }
    sgi_store_feed_drop_idle_op(t->feed, op);
    return SEGUE_OK;
}

static segue_status pass_commands_of(sgi_redis_store *store, sgi_store_feed_delivery *t,
                                     const uint8_t *id)
{
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
        sgi_store_feed_note_taken_commands(&store->feed, id, UINT64_MAX);
    else
        status = tell_each(t, id, reply);
    freeReplyObject(reply);
    return status;
}

static segue_status pass_commands(sgi_redis_store *store, sgi_store_feed_delivery *t)
{
    sgi_store_feed *feed = &store->feed;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    segue_status status = SEGUE_OK;
    size_t left = sgi_store_feed_count_ids(feed, &feed->mail);
    while (left-- && !status && !t->stopped &&
           sgi_store_feed_take_id(feed, &feed->mail, id)) {
        status = pass_commands_of(store, t, id);
        if (status || t->stopped)
            sgi_store_feed_add_id(feed, &feed->mail, id, &feed->mail_all);
    }
    return status;
}

/* Delivers the waiting forwarded commands of all operations that this instance owns. */
static segue_status pass_all_commands(sgi_redis_store *store, sgi_store_feed_delivery *t)
{
    sgi_store_feed *feed = &store->feed;
    redisReply *reply;
    if (t->stopped || !sgi_store_feed_take_flag(feed, &feed->mail_all))
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
                status =
                    pass_commands_of(store, t, (const uint8_t *)reply->element[i]->str);
        freeReplyObject(reply);
    }
    if (status || t->stopped)
        sgi_store_feed_set_flag(feed, &feed->mail_all);
    return status;
}

segue_status sgi_redis_read_changes(void *self, segue_store_news_fn fn, void *user,
                                    int64_t *within_ms)
{
    sgi_redis_store *store = self;
    sgi_store_feed *feed = &store->feed;
    sgi_store_feed_delivery t = {.feed = feed, .fn = fn, .user = user};
    if (sgi_store_feed_take_flag(feed, &feed->retell))
        sgi_store_feed_forget_delivered(feed);
    segue_status status = tell_doubt(store, &t);
    sgi_store_feed_deliver_flag(&t, &feed->missed, SEGUE_STORE_MISSED);
    sgi_store_feed_deliver_flag(&t, &feed->orphans, SEGUE_STORE_ORPHANS);
    sgi_store_feed_deliver_grown(&t, say_left, store);
    if (!status)
        status = pass_all_commands(store, &t);
    if (!status)
        status = pass_commands(store, &t);
    /* -1 = no further call is needed, because the thread calls the wake-up callback
     * when there are more changes to deliver. After an error the caller asks again in
     * 1 s. */
    *within_ms = t.stopped ? 0 : status ? 1000 : -1;
    return status;
}
