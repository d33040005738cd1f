/* Each new connection checks whether the database server may have lost data since the
 * last check of this instance.
 *
 *     open -> arrive() -> ready
 *
 * The table `life` is unlogged: PostgreSQL empties it after a crash, and it is empty on a
 * promoted standby and in a restored backup. A restored dump has a new table `life`,
 * whose object number differs from the number in `history`. A connection that finds no
 * token in the present table puts a new token into it. The connection also counts a break
 * when commits may be missing: when the timeline of the server or the table `life` is
 * another one (a promotion, a restored backup), or when some instance commits without
 * waiting for the disk (synchronous_commit off). A regular restart loses nothing and
 * keeps the token.
 *
 * Each operation has the number of breaks at which its owner last knew that its log was
 * complete. A living owner notices lost entries with its next commit, because the entry
 * numbers are then not consecutive. To make the owner check soon, this instance reports
 * SEGUE_STORE_DOUBT when the life has changed. When an owner died before it could check,
 * a claim reports its operations as SEGUE_STORE_TORN.
 *
 * The end of an operation can be lost, too: each instance remembers the operations
 * that ended lately, and releases those that are open again. A claim can also be lost.
 * The data then show that the first owner was silent while other owners were not,
 * unless more than half of a lease is missing. Such an owner is recorded as away, and
 * cannot confirm that its logs are complete. */
#include "store/postgres_store.h"

#define RECALL_STEP 64

void sgi_pg_note_server_token(sgi_pg_store *store, const char *life, size_t len,
                              int64_t breaks)
{
    bool other = false;
    if (len >= sizeof store->life)
        len = sizeof store->life - 1;
    pthread_mutex_lock(&store->feed.lock);
    if (*store->life)
        other = strlen(store->life) != len || memcmp(store->life, life, len) != 0 ||
                breaks != store->breaks;
    store->feed.doubt = store->feed.doubt || other;
    store->feed.retell = store->feed.retell || other;
    memcpy(store->life, life, len);
    store->life[len] = 0;
    store->breaks = breaks;
    pthread_mutex_unlock(&store->feed.lock);
    if (other)
        sgi_store_feed_wake(&store->feed);
}

segue_status sgi_pg_note_if_data_was_lost(sgi_pg_store *store, sgi_pg_link *link,
                                          int64_t deadline)
{
    sgi_pg_call own;
    char text[SGI_PG_SCHEMA_MAX + 64];
    segue_status status = SEGUE_OK;
    sgi_text_format(text, sizeof text, "SELECT breaks, life FROM \"%s\".arrive()",
                    store->url.schema);
    own.sql = (sgi_buf){.p = text};
    own.count = 0;
    PGresult *result = sgi_pg_link_execute(link, &own, deadline);
    if (!result)
        return SEGUE_E_STORE;
    if (sgi_pq.PQresultStatus(result) == PGRES_TUPLES_OK &&
        sgi_pq.PQntuples(result) == 1) {
        sgi_pg_note_server_token(store, sgi_pq.PQgetvalue(result, 0, 1),
                                 sgi_pg_len(result, 0, 1),
                                 sgi_pg_get_int64(result, 0, 0));
    } else {
        sgi_pg_keep_fault(link, result);
        sgi_pg_link_close(link);
        status = SEGUE_E_STORE;
    }
    sgi_pq.PQclear(result);
    return status;
}

segue_status sgi_pg_connect(sgi_pg_store *store, sgi_pg_link *link, int64_t deadline)
{
    segue_status status = sgi_pg_link_open(link, deadline);
    return status ? status : sgi_pg_note_if_data_was_lost(store, link, deadline);
}

void sgi_pg_remember_ended_op(sgi_pg_store *store, const uint8_t *id)
{
    memcpy(store->ends[store->end_count++ % SGI_PG_ENDS], id, SEGUE_STORE_ID_SIZE);
}

segue_status sgi_pg_release_ended_ops(sgi_pg_store *store)
{
    segue_store_write writes[RECALL_STEP];
    size_t all = store->end_count < SGI_PG_ENDS ? (size_t)store->end_count : SGI_PG_ENDS;
    for (size_t at = 0; at < all; at += RECALL_STEP) {
        size_t count = all - at < RECALL_STEP ? all - at : RECALL_STEP;
        memset(writes, 0, sizeof writes);
        for (size_t i = 0; i < count; i++) {
            writes[i].kind = SEGUE_STORE_RELEASE;
            memcpy(writes[i].id, store->ends[at + i], SEGUE_STORE_ID_SIZE);
        }
        segue_status status = sgi_pg_commit(store, writes, count);
        if (status)
            return status;
    }
    if (all) /* the released operations can be claimed, so orphans are reported */
        sgi_store_feed_set_flag(&store->feed, &store->feed.orphans);
    return SEGUE_OK;
}
