/* Reports what other instances did in a SQLite store.
 *
 * SQLite sends no notifications, so this file polls. It reads SQLite's data version,
 * which takes 2 us because the version is in shared memory. The version changes when
 * another connection has committed. Only then does this file examine the followed logs,
 * with one search in each of two trees per log. It polls every NEWS_MS while an operation
 * is followed or another instance lives (a check of locks, one system call), otherwise
 * every IDLE_MS. Therefore a new instance is noticed after IDLE_MS at the latest.
 *
 * Forwarded commands are rows. The owner of an operation gets its commands in the order
 * of their numbers. last_command is the number of the last command that was examined,
 * whichever operation the command is for. After a claim, the operation's older commands
 * must be delivered, too: `retell` has such operations. When the callback refused news,
 * the next poll examines everything again (`look`).
 *
 * An owner that dies commits nothing, so the locks of the owners are checked every
 * ORPHANS_MS, and at once when the last other instance is gone. ORPHANS_MS is therefore
 * the longest wait before a take-over (IDLE_MS from an instance that nobody had noticed).
 * The locks are also checked after each change of the data version, because a release of
 * operations changes the version. */
#include "store/sqlite_store.h"

#include "base/thresholds.h"

#include "base/crypto.h"

#define NEWS_MS SGI_THRESHOLD(sqlite_news_ms)
#define IDLE_MS SGI_THRESHOLD(sqlite_idle_ms)
#define ORPHANS_MS SGI_THRESHOLD(sqlite_orphans_ms)
#define COMMANDS_EACH 64

void sgi_sqlite_watch_init(sgi_sqlite_store *store)
{
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = sgi_crypto_random};
    sgi_env env = {&store->mem, &hooks};
    sgi_map_init(&store->watch.followed, &env);
    TAILQ_INIT(&store->watch.follows);
    store->watch.look = true;
}

static void drop_follow(sgi_sqlite_store *store, sgi_sqlite_followed_op *follow)
{
    sgi_map_remove(&store->watch.followed, &follow->node);
    TAILQ_REMOVE(&store->watch.follows, follow, link);
    sgi_free(&store->mem, follow, sizeof *follow);
}

void sgi_sqlite_watch_free(sgi_sqlite_store *store)
{
    sgi_sqlite_followed_op *follow;
    while ((follow = TAILQ_FIRST(&store->watch.follows)))
        drop_follow(store, follow);
    sgi_map_free(&store->watch.followed);
    sgi_sqlite_op_list_free(store, &store->watch.retell);
}

void sgi_sqlite_set_wake_callback(void *self, void (*wake)(void *user), void *user)
{
    sgi_sqlite_store *store = self;
    store->watch.wake = wake;
    store->watch.wake_user = user;
}

static void wake(sgi_sqlite_store *store)
{
    store->watch.look = true;
    if (store->watch.wake)
        store->watch.wake(store->watch.wake_user);
}

/* ---- following ---- */

/* Reads the state of a followed operation: whether the operation was deleted, whether it
 * has ended, its owner, and the key of its newest log row. Returns SQLite's code. */
static int look_at(sgi_sqlite_store *store, sgi_sqlite_followed_op *follow)
{
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_STATE];
    sqlite3_bind_int64(statement, 1, follow->op);
    sqlite3_bind_int64(statement, 2, sgi_sqlite_key(follow->op, 1));
    sqlite3_bind_int64(statement, 3, sgi_sqlite_key(follow->op, SGI_SQLITE_SEQ_MAX));
    int code = sgi_sqlite_step(store, statement);
    follow->gone = code == SQLITE_DONE;
    if (code == SQLITE_ROW) {
        follow->ended = sqlite3_column_int(statement, 0) != 0;
        follow->owner = sqlite3_column_int64(statement, 1);
        follow->last_key = sqlite3_column_int64(statement, 2);
    }
    sqlite3_reset(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static segue_status number_of(sgi_sqlite_store *store, const uint8_t *id, int64_t *op,
                              int64_t *owner, bool *ended)
{
    sqlite3_stmt *lookup = store->statements[SGI_SQLITE_LOOKUP];
    sgi_sqlite_bind_bytes(lookup, 1, id, SEGUE_STORE_ID_SIZE);
    int code = sgi_sqlite_step(store, lookup);
    if (code == SQLITE_ROW) {
        *op = sqlite3_column_int64(lookup, 0);
        *owner = sqlite3_column_int64(lookup, 1);
        *ended = sqlite3_column_int(lookup, 2) != 0;
    }
    sqlite3_reset(lookup);
    return code == SQLITE_DONE ? SEGUE_E_NOT_FOUND : sgi_sqlite_status_of(store, code);
}

static segue_status add_follow(sgi_sqlite_store *store, const uint8_t *id)
{
    sgi_sqlite_followed_op found = {.op = 0};
    segue_status status = number_of(store, id, &found.op, &found.owner, &found.ended);
    if (status)
        return status;
    int code = look_at(store, &found);
    if (code)
        return sgi_sqlite_status_of(store, code);
    if (found.gone)
        return SEGUE_E_NOT_FOUND;
    sgi_sqlite_followed_op *follow = sgi_alloc(&store->mem, sizeof *follow);
    if (!follow)
        return SEGUE_E_NOMEM;
    *follow = found;
    memcpy(follow->id, id, sizeof follow->id);
    sgi_map_put(&store->watch.followed, &follow->node,
                (sgi_str){(const char *)follow->id, sizeof follow->id});
    TAILQ_INSERT_TAIL(&store->watch.follows, follow, link);
    return SEGUE_OK;
}

segue_status sgi_sqlite_follow_log(void *self, const uint8_t *id, int32_t on)
{
    sgi_sqlite_store *store = self;
    sgi_str key = {(const char *)id, SEGUE_STORE_ID_SIZE};
    sgi_map_node *node = sgi_map_find(&store->watch.followed, key);
    if (on)
        return node ? SEGUE_OK : add_follow(store, id);
    if (node)
        drop_follow(store, SGI_OWNER(node, sgi_sqlite_followed_op, node));
    return SEGUE_OK;
}

/* True when another instance wrote to the operation between the states `before` and
 * `now`. While this instance owned the operation, only this instance wrote to it. */
static bool has_grown(const sgi_sqlite_store *store, const sgi_sqlite_followed_op *before,
                      const sgi_sqlite_followed_op *now)
{
    if (before->claimed || now->gone)
        return !before->gone;
    return now->owner != store->file.owner &&
           (now->last_key != before->last_key || now->ended != before->ended);
}

static segue_status tell_growth(sgi_sqlite_store *store, segue_store_news_fn fn,
                                void *user)
{
    sgi_sqlite_followed_op *follow;
    TAILQ_FOREACH(follow, &store->watch.follows, link) {
        sgi_sqlite_followed_op now = *follow;
        int code = look_at(store, &now);
        if (code)
            return sgi_sqlite_status_of(store, code);
        segue_store_news news = {.kind = SEGUE_STORE_GREW};
        memcpy(news.id, follow->id, sizeof news.id);
        if (has_grown(store, follow, &now) && fn(user, &news)) {
            store->watch.look = true;
            return SEGUE_OK;
        }
        follow->last_key = now.last_key;
        follow->owner = now.owner;
        follow->ended = now.ended;
        follow->gone = now.gone;
        follow->claimed = false;
    }
    return SEGUE_OK;
}

/* ---- forwarded commands ---- */

static segue_status post(sgi_sqlite_store *store, const uint8_t *id, const char *data,
                         size_t len, int64_t *owner)
{
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_POST];
    int64_t op, count = 0;
    bool ended;
    segue_status status = number_of(store, id, &op, owner, &ended);
    if (status)
        return status;
    if (ended)
        return SEGUE_E_TERMINAL;
    sqlite3_bind_int64(store->statements[SGI_SQLITE_COMMAND_COUNT], 1, op);
    int code = sgi_sqlite_query(store, SGI_SQLITE_COMMAND_COUNT, &count);
    if (code)
        return sgi_sqlite_status_of(store, code);
    if (count >= COMMANDS_EACH)
        return SEGUE_E_LIMIT;
    sqlite3_bind_int64(statement, 1, op);
    if (sgi_sqlite_bind_bytes(statement, 2, data, len))
        return SEGUE_E_TOO_LARGE;
    return sgi_sqlite_status_of(store, sgi_sqlite_run(store, SGI_SQLITE_POST));
}

segue_status sgi_sqlite_post_command(void *self, const uint8_t *id, const char *data,
                                     size_t len)
{
    sgi_sqlite_store *store = self;
    int64_t owner = 0;
    segue_status status = sgi_sqlite_begin_transaction(store);
    if (status)
        return status;
    status = sgi_sqlite_end_transaction(store, post(store, id, data, len, &owner));
    if (!status && owner == store->file.owner)
        wake(store);
    return status;
}

/* Delivers the forwarded commands that a bound statement finds, if this instance owns
 * their operations. *last receives the number of the last command that needs no further
 * delivery. *stopped becomes true when fn has refused a command. */
static segue_status pass_commands(sgi_sqlite_store *store, sgi_sqlite_statement which,
                                  segue_store_news_fn fn, void *user, int64_t *last,
                                  bool *stopped)
{
    sqlite3_stmt *statement = store->statements[which];
    segue_status status = SEGUE_OK;
    int code = SQLITE_DONE;
    while (!status && !*stopped &&
           (code = sgi_sqlite_step(store, statement)) == SQLITE_ROW) {
        segue_store_news news = {.kind = SEGUE_STORE_LETTER};
        int64_t number = sqlite3_column_int64(statement, 0);
        news.number = (uint64_t)number;
        if (sqlite3_column_int64(statement, 2) == store->file.owner) {
            if (!sgi_sqlite_copy_column(statement, 1, news.id, sizeof news.id) ||
                !sgi_sqlite_column_bytes(statement, 3, &news.data, &news.data_len))
                status = sgi_sqlite_unreadable_status(store);
            else
                *stopped = fn(user, &news) != 0;
        }
        if (!status && !*stopped)
            *last = number;
    }
    sqlite3_reset(statement);
    return status || *stopped ? status : sgi_sqlite_status_of(store, code);
}

static segue_status retell(sgi_sqlite_store *store, segue_store_news_fn fn, void *user,
                           bool *stopped)
{
    sgi_sqlite_watch *watch = &store->watch;
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_COMMANDS_OF];
    while (watch->retell.count) {
        sqlite3_bind_int64(statement, 1, watch->retell.ops[watch->retell.count - 1]);
        sqlite3_bind_int64(statement, 2, watch->redelivered);
        sqlite3_bind_int64(statement, 3, watch->last_command);
        segue_status status = pass_commands(store, SGI_SQLITE_COMMANDS_OF, fn, user,
                                            &watch->redelivered, stopped);
        if (status || *stopped)
            return status;
        watch->retell.count--;
        watch->redelivered = 0;
    }
    sgi_sqlite_op_list_free(store, &watch->retell);
    return SEGUE_OK;
}

static segue_status pass_all_commands(sgi_sqlite_store *store, segue_store_news_fn fn,
                                      void *user)
{
    bool stopped = false;
    segue_status status = retell(store, fn, user, &stopped);
    if (!status && !stopped) {
        sqlite3_bind_int64(store->statements[SGI_SQLITE_COMMANDS_BEHIND], 1,
                           store->watch.last_command);
        status = pass_commands(store, SGI_SQLITE_COMMANDS_BEHIND, fn, user,
                               &store->watch.last_command, &stopped);
    }
    if (stopped)
        store->watch.look = true;
    return status;
}

static int retell_if_any(sgi_sqlite_store *store, int64_t op)
{
    int64_t count = 0;
    sqlite3_bind_int64(store->statements[SGI_SQLITE_COMMAND_COUNT], 1, op);
    int code = sgi_sqlite_query(store, SGI_SQLITE_COMMAND_COUNT, &count);
    return code || !count || sgi_sqlite_op_list_add(store, &store->watch.retell, op)
               ? code
               : SQLITE_NOMEM;
}

segue_status sgi_sqlite_redeliver_commands(sgi_sqlite_store *store,
                                           const sgi_sqlite_op_list *claimed)
{
    sgi_sqlite_watch *watch = &store->watch;
    sgi_sqlite_followed_op *follow;
    int64_t any = 0;
    watch->orphans_reported = false;
    if (!claimed->count)
        return SEGUE_OK;
    TAILQ_FOREACH(follow, &watch->follows, link)
        follow->claimed = true;
    int code = sgi_sqlite_query(store, SGI_SQLITE_COMMANDS, &any);
    for (size_t i = 0; any && i < claimed->count && !code; i++)
        code = retell_if_any(store, claimed->ops[i]);
    watch->redelivered = 0;
    wake(store);
    return sgi_sqlite_status_of(store, code);
}

/* ---- orphans ---- */

static segue_status look_for_orphans(sgi_sqlite_store *store, bool *found)
{
    *found = false;
    for (int64_t before = -1; !*found;) {
        int64_t owner = -1;
        sqlite3_bind_int64(store->statements[SGI_SQLITE_OTHER_OWNER], 1, before);
        int code = sgi_sqlite_query(store, SGI_SQLITE_OTHER_OWNER, &owner);
        if (code || owner < 0)
            return sgi_sqlite_status_of(store, code);
        *found = !sgi_sqlite_owner_lives(&store->file, owner);
        before = owner;
    }
    return SEGUE_OK;
}

/* Reports orphans (operations whose owner is gone) once. Orphans are reported again only
 * after a claim, or after a search has found no orphans. Therefore an instance that
 * cannot run the orphans does not get the same report again and again. */
static segue_status tell_orphans(sgi_sqlite_store *store, segue_store_news_fn fn,
                                 void *user)
{
    const segue_store_news news = {.kind = SEGUE_STORE_ORPHANS};
    bool found;
    segue_status status = look_for_orphans(store, &found);
    if (status)
        return status;
    if (found && !store->watch.orphans_reported)
        found = !fn(user, &news);
    store->watch.orphans_reported = found;
    return SEGUE_OK;
}

/* ---- all kinds of news ---- */

segue_status sgi_sqlite_read_changes(void *self, segue_store_news_fn fn, void *user,
                                     int64_t *within_ms)
{
    sgi_sqlite_store *store = self;
    sgi_sqlite_watch *watch = &store->watch;
    int64_t now_ms = sgi_sqlite_now_ms(), version = 0;
    bool others = sgi_sqlite_others_live(&store->file);
    bool left_alone = watch->others && !others;
    watch->others = others;
    *within_ms = !TAILQ_EMPTY(&watch->follows) || others ? NEWS_MS : IDLE_MS;
    int code = sgi_sqlite_query(store, SGI_SQLITE_DATA_VERSION, &version);
    if (code)
        return sgi_sqlite_status_of(store, code);
    bool changed = version != watch->version || watch->look;
    segue_status status = SEGUE_OK;
    if (changed) {
        watch->version = version;
        watch->look = false;
        status = tell_growth(store, fn, user);
        if (!status)
            status = pass_all_commands(store, fn, user);
    }
    if (!status && (changed || left_alone || now_ms - watch->orphans_ms >= ORPHANS_MS)) {
        watch->orphans_ms = now_ms;
        sgi_sqlite_look_at_format(&store->file, now_ms);
        status = tell_orphans(store, fn, user);
    }
    if (status)
        watch->look = true;
    return status;
}
