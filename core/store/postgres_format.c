/* Brings the schema of a store to the present format.
 *
 *    look -> format that can be used -> done
 *         \-> newer -> refused
 *         \-> older or absent -> BEGIN -> lock -> look again -> migrations -> COMMIT
 *
 * The lock is an advisory lock of the transaction. When several servers start together,
 * one server migrates and the others wait. Each server checks the format a second time
 * after it has the lock. This second check reads the tables of PostgreSQL's catalog,
 * because to_regclass can use a cache that is older than the lock.
 *
 * A format that older servers cannot read is taken later, under the same lock and under
 * locks of the tables of owners: no older server then comes between the look and the
 * migration. */
#include "store/postgres_store.h"

#include <stdio.h>

#define SQL_MAX 512

/* Runs SQL text. *value (may be NULL) receives the first column of the first row as an
 * integer, or 0 when there is no such integer. */
static segue_status run(sgi_pg_store *store, const char *sql, int64_t deadline,
                        int64_t *value)
{
    sgi_pg_link *link = &store->link;
    PGresult *result = sgi_pg_link_run(link, sql, deadline);
    if (!result)
        return SEGUE_E_STORE;
    segue_status status = SEGUE_OK;
    if (sgi_pq.PQresultStatus(result) == PGRES_FATAL_ERROR) {
        status = sgi_pg_status_of(result);
        sgi_pg_keep_fault(link, result);
    } else if (value) {
        *value = 0;
        if (sgi_pq.PQntuples(result) &&
            sscanf(sgi_pq.PQgetvalue(result, 0, 0), "%ld", value) != 1)
            *value = 0;
    }
    sgi_pq.PQclear(result);
    return status;
}

static segue_status look(sgi_pg_store *store, int64_t deadline, int64_t *format)
{
    char sql[SQL_MAX];
    const char *schema = store->url.schema;
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = '%s' AND "
             "tablename = 'migration'",
             schema);
    *format = 0;
    segue_status status = run(store, sql, deadline, format);
    if (status || !*format)
        return status;
    snprintf(sql, sizeof sql, "SELECT max(number) FROM \"%s\".migration", schema);
    status = run(store, sql, deadline, format);
    if (status || *format <= SGI_PG_FORMAT)
        return status;
    snprintf(store->link.fault, sizeof store->link.fault,
             "schema \"%s\" was written by a newer version of Segue (format %lld, this "
             "version reads up to %d)",
             schema, (long long)*format, SGI_PG_FORMAT);
    return SEGUE_E_STORE_CORRUPT;
}

/* Creates the schema if it is missing. For an existing schema CREATE SCHEMA is not sent,
 * because this statement always needs a right that the user may not have. */
static segue_status make_schema(sgi_pg_store *store, int64_t deadline)
{
    char sql[SQL_MAX];
    int64_t found = 0;
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = '%s'",
             store->url.schema);
    segue_status status = run(store, sql, deadline, &found);
    if (status || found)
        return status;
    snprintf(sql, sizeof sql, "CREATE SCHEMA \"%s\"", store->url.schema);
    return run(store, sql, deadline, NULL);
}

static segue_status migrate_to(sgi_pg_store *store, int number, int64_t deadline)
{
    char last[SQL_MAX];
    sgi_buf sql;
    sgi_buf_init(&sql, &store->mem);
    sgi_pg_add_migration(&sql, number, store->url.schema);
    snprintf(last, sizeof last, "INSERT INTO @.migration (number) VALUES (%d)", number);
    sgi_pg_add_sql(&sql, last, store->url.schema);
    segue_status status =
        sgi_buf_terminate(&sql) ? run(store, sql.p, deadline, NULL) : SEGUE_E_NOMEM;
    sgi_buf_free(&sql);
    return status;
}

/* Takes the lock of migrations, and looks at the format again. */
static segue_status lock_format(sgi_pg_store *store, int64_t deadline, int64_t *format)
{
    char sql[SQL_MAX];
    snprintf(sql, sizeof sql,
             "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('segue:%s', 0))",
             store->url.schema);
    segue_status status = run(store, sql, deadline, NULL);
    return status ? status : look(store, deadline, format);
}

/* Brings a schema without tables to the newest format, and an older one to the newest
 * that older servers can ignore. *format receives the format. */
static segue_status migrate(sgi_pg_store *store, int64_t deadline, int64_t *format)
{
    segue_status status = lock_format(store, deadline, format);
    int64_t to = *format ? SGI_PG_FORMAT_AT_ONCE : SGI_PG_FORMAT;
    if (!status && !*format)
        status = make_schema(store, deadline);
    for (; !status && *format < to; ++*format)
        status = migrate_to(store, (int)*format + 1, deadline);
    if (!status)
        status = run(store, "COMMIT", deadline, NULL);
    /* closing the connection ends the transaction; link.fault keeps the first error */
    if (status)
        sgi_pg_link_close(&store->link);
    return status;
}

/* Refuses a database server whose isolation level is not read committed. With another
 * level, a statement that has waited for a lock would read old data. */
static segue_status check_isolation(sgi_pg_store *store, int64_t deadline)
{
    int64_t right = 0;
    segue_status status = run(store,
                              "SELECT (current_setting('transaction_isolation') = "
                              "'read committed')::int",
                              deadline, &right);
    if (status || right)
        return status;
    snprintf(
        store->link.fault, sizeof store->link.fault,
        "default_transaction_isolation has to be read committed: set it for the role, "
        "by ALTER ROLE");
    return SEGUE_E_UNSUPPORTED;
}

segue_status sgi_pg_prepare_tables(sgi_pg_store *store, int64_t deadline)
{
    int64_t format = 0;
    segue_status status = check_isolation(store, deadline);
    if (!status)
        status = look(store, deadline, &format);
    if (!status && format < SGI_PG_FORMAT_AT_ONCE)
        status = migrate(store, deadline, &format);
    atomic_store(&store->format.number, (int)format);
    return status;
}

/* ---- the format that older servers cannot read ---- */

/* Locks the tables of owners until the transaction ends, and finds out whether an older
 * server lives. */
static segue_status lock_owners(sgi_pg_store *store, int64_t deadline, bool *older)
{
    char sql[SQL_MAX];
    snprintf(sql, sizeof sql,
             "SET LOCAL lock_timeout = '1s'; "
             "LOCK TABLE \"%s\".lease, \"%s\".owner IN SHARE ROW EXCLUSIVE MODE",
             store->url.schema, store->url.schema);
    segue_status status = run(store, sql, deadline, NULL);
    if (status)
        return status;
    sgi_pg_begin_call(store, sgi_pg_look_sql);
    sgi_pg_arg_id(&store->call, store->me);
    if (sgi_pg_call_failed(&store->call))
        return SEGUE_E_NOMEM;
    PGresult *result = sgi_pg_link_execute(&store->link, &store->call, deadline);
    if (!result || sgi_pq.PQresultStatus(result) != PGRES_TUPLES_OK)
        status = SEGUE_E_STORE;
    else
        *older = sgi_pg_get_bool(result, 0, 1);
    sgi_pq.PQclear(result);
    return status;
}

void sgi_pg_take_newest_format(sgi_pg_store *store)
{
    int64_t deadline = sgi_pg_now() + store->timeout_ms, format = 0;
    bool older = false;
    if (!sgi_pg_link_is_up(&store->link))
        return;
    segue_status status = lock_format(store, deadline, &format);
    if (!status && format < SGI_PG_FORMAT)
        status = lock_owners(store, deadline, &older);
    for (; !status && !older && format < SGI_PG_FORMAT; format++)
        status = migrate_to(store, (int)format + 1, deadline);
    if (!status)
        status = run(store, older ? "ROLLBACK" : "COMMIT", deadline, NULL);
    if (status)
        sgi_pg_link_close(&store->link);
}
