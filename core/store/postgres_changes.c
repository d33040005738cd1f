/* Passes news (changes of other instances) from PostgreSQL to the listeners of the
 * store (see feed.h). The thread in postgres_watch.c receives the news by LISTEN. */
#include "store/postgres_store.h"

void sgi_pg_set_wake(void *self, void (*wake)(void *user), void *user)
{
    sgi_pg_store *store = self;
    sgi_store_feed_set_wake_callback(&store->feed, wake, user);
}

/* ---- following, posting ---- */

static segue_status say_follow(sgi_pg_store *store, const uint8_t *id, bool on)
{
    PGresult *result;
    sgi_pg_begin_call(store, "SELECT @.follow($1, $2, $3)");
    sgi_pg_arg_id(&store->call, store->me);
    sgi_buf *ids = sgi_pg_array_begin(&store->call, SGI_PG_IDS);
    sgi_pg_add_bytes(ids, id, SEGUE_STORE_ID_SIZE);
    sgi_pg_array_end(ids, 1);
    sgi_pg_arg_bool(&store->call, on);
    segue_status status = sgi_pg_execute(store, &result, NULL);
    if (status)
        return status;
    bool found = sgi_pg_get_int64(result, 0, 0) > 0;
    sgi_pq.PQclear(result);
    return found || !on ? SEGUE_OK : SEGUE_E_NOT_FOUND;
}

/* Tells the database server that this instance no longer follows the operation, so that
 * the server sends no needless messages. A failed call is not repeated at once: a
 * listener that closes would otherwise wait for an unreachable server once per operation.
 * If the server still reports that the operation grows, the call is sent again. */
static void say_left(void *self, const uint8_t *id)
{
    sgi_pg_store *store = self;
    if (sgi_pg_link_is_up(&store->link) && say_follow(store, id, false) != SEGUE_OK)
        sgi_pg_link_close(&store->link);
}

segue_status sgi_pg_follow(void *self, const uint8_t *id, int32_t on)
{
    sgi_pg_store *store = self;
    sgi_store_feed *feed = &store->feed;
    segue_status status = SEGUE_OK;
    sgi_store_feed_op *op =
        on ? sgi_store_feed_find_or_add_op(feed, id) : sgi_store_feed_find_op(feed, id);
    if (!op)
        return on ? SEGUE_E_NOMEM : SEGUE_OK;
    /* The mark `followed` is set before the call. Meanwhile the thread may follow all
     * operations again on a new connection, and must then include this operation. */
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

segue_status sgi_pg_post_command(void *self, const uint8_t *id, const char *data,
                                 size_t len)
{
    sgi_pg_store *store = self;
    PGresult *result;
    sgi_pg_begin_write_call(store, "SELECT @.post($1, $2, $3, $4, $5)");
    sgi_pg_arg_id(&store->call, id);
    sgi_pg_arg_bytes(&store->call, data, len);
    sgi_pg_arg_int32(&store->call, SGI_PG_COMMANDS_MAX);
    segue_status status = sgi_pg_execute(store, &result, NULL);
    if (status)
        return status;
    bool mine = sgi_pg_get_bool(result, 0, 0);
    sgi_pq.PQclear(result);
    /* this instance owns the operation itself, so the server sends no message about the
     * command */
    if (mine) {
        sgi_store_feed_add_id(&store->feed, &store->feed.mail, id, &store->feed.mail_all);
        sgi_store_feed_wake(&store->feed);
    }
    return SEGUE_OK;
}

/* ---- news ---- */

static segue_status tell_doubt(sgi_pg_store *store, sgi_store_feed_delivery *t)
{
    sgi_store_feed *feed = &store->feed;
    segue_store_news news = {.kind = SEGUE_STORE_DOUBT, .data = ""};
    if (!sgi_store_feed_take_flag(feed, &feed->doubt))
        return SEGUE_OK;
    segue_status status = sgi_pg_release_ended_ops(store);
    if (status || !sgi_store_feed_deliver(t, &news))
        sgi_store_feed_set_flag(feed, &feed->doubt);
    return status;
}

/* Delivers the forwarded commands of an operation. Each row of the result is a command.
 * The result of an operation without waiting commands is one row of NULLs. */
static void tell_each(sgi_store_feed_delivery *t, sgi_store_feed_op *op,
                      const PGresult *result)
{
    for (int row = 0; row < sgi_pq.PQntuples(result) && !t->stopped; row++) {
        if (sgi_pq.PQgetisnull(result, row, 0))
            continue;
        segue_store_news news = {.kind = SEGUE_STORE_LETTER,
                                 .number = (uint64_t)sgi_pg_get_int64(result, row, 0),
                                 .data = sgi_pq.PQgetvalue(result, row, 1),
                                 .data_len = sgi_pg_len(result, row, 1)};
        memcpy(news.id, op->id, sizeof news.id);
        if (sgi_store_feed_deliver(t, &news))
            op->delivered = news.number;
    }
}

static segue_status pass_commands_of(sgi_pg_store *store, sgi_store_feed_delivery *t,
                                     const uint8_t *id)
{
    PGresult *result;
    /* The feed's record of the operation is made before the first command is delivered,
     * because making the record can fail. */
    sgi_store_feed_op *op = sgi_store_feed_find_or_add_op(&store->feed, id);
    if (!op)
        return SEGUE_E_NOMEM;
    sgi_pg_begin_call(store, "SELECT l.number, l.data FROM @.operation o"
                             " LEFT JOIN @.letter l ON l.op = o.op AND l.number > $3"
                             " WHERE o.id = $2 AND o.owner = $1 AND NOT o.ended"
                             " ORDER BY l.number");
    sgi_pg_arg_id(&store->call, store->me);
    sgi_pg_arg_id(&store->call, id);
    sgi_pg_arg_int64(&store->call, (int64_t)op->delivered);
    segue_status status = sgi_pg_execute(store, &result, NULL);
    if (!status && !sgi_pq.PQntuples(result))
        /* the result has no row, so this instance no longer owns the operation */
        op->delivered = 0;
    if (!status) {
        tell_each(t, op, result);
        sgi_pq.PQclear(result);
    }
    sgi_store_feed_drop_idle_op(&store->feed, op);
    return status;
}

static segue_status pass_commands(sgi_pg_store *store, sgi_store_feed_delivery *t)
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
static segue_status pass_all_commands(sgi_pg_store *store, sgi_store_feed_delivery *t)
{
    sgi_store_feed *feed = &store->feed;
    PGresult *result;
    if (t->stopped || !sgi_store_feed_take_flag(feed, &feed->mail_all))
        return SEGUE_OK;
    sgi_pg_begin_call(store, "SELECT DISTINCT o.id FROM @.operation o"
                             " JOIN @.letter l ON l.op = o.op"
                             " WHERE o.owner = $1 AND NOT o.ended");
    sgi_pg_arg_id(&store->call, store->me);
    segue_status status = sgi_pg_execute(store, &result, NULL);
    if (!status) {
        for (int row = 0; row < sgi_pq.PQntuples(result) && !status && !t->stopped; row++)
            status = pass_commands_of(store, t,
                                      (const uint8_t *)sgi_pq.PQgetvalue(result, row, 0));
        sgi_pq.PQclear(result);
    }
    if (status || t->stopped)
        sgi_store_feed_set_flag(feed, &feed->mail_all);
    return status;
}

segue_status sgi_pg_read_changes(void *self, segue_store_news_fn fn, void *user,
                                 int64_t *within_ms)
{
    sgi_pg_store *store = self;
    sgi_store_feed *feed = &store->feed;
    sgi_store_feed_delivery t = {.feed = feed, .fn = fn, .user = user};
    if (atomic_exchange(&store->format_is_due, false))
        sgi_pg_take_newest_format(store);
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
    /* -1 = no further call is needed, because the thread calls the wake-up callback when
     * there are more changes to deliver. After an error the caller asks again in 1 s. */
    *within_ms = t.stopped ? 0 : status ? 1000 : -1;
    return status;
}
