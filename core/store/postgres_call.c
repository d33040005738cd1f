/* Calls on the connection that the functions of the vtable use. A call is repeated until
 * it succeeds or the time limit is over.
 *
 *    send -> result -> done
 *         \-> connection lost, or a temporary error -> pause -> connect -> again
 *
 * A call that changes something has a number. Each try sends the same bytes with the same
 * number, and the database server recognises a number that was already applied
 * (`begin_call` in postgres_functions.c). Therefore it is always safe to repeat a call.
 * When the time limit is over, the outcome of the last try is unknown, and the returned
 * status says that the store failed. */
#include "store/postgres_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/backoff.h"

static const sgi_backoff PACE = {.first_ms = 5, .most_ms = 500};

void sgi_pg_begin_call(sgi_pg_store *store, const char *sql)
{
    sgi_pg_call_begin(&store->call, sql, store->url.schema);
}

void sgi_pg_begin_write_call(sgi_pg_store *store, const char *sql)
{
    sgi_pg_begin_call(store, sql);
    sgi_pg_arg_id(&store->call, store->me);
    sgi_pg_arg_int64(&store->call, (int64_t)++store->calls);
}

/* ---- errors ---- */

typedef enum deed {
    GIVE_UP,   /* the error is permanent */
    TRY_AGAIN, /* the call had no effect, and the cause of the error can pass soon */
    RECONNECT, /* the call had no effect, and can succeed on a new connection */
} deed;

typedef struct fault {
    const char *state; /* the first characters of the error's SQLSTATE */
    deed deed;
    segue_status status;
} fault;

/* How errors of PostgreSQL are handled. Each of these errors undoes its transaction, so
 * the call had no effect. The call is repeated after a fault that can pass soon, such as
 * a faulty disk, a server that stops or starts, or a standby. The call is not repeated
 * when the disk is full, because only a purge of operations makes room. */
static const fault FAULTS[] = {
    {"08", RECONNECT, SEGUE_E_STORE}, /* connection exceptions */
    /* the server is a standby and refuses writes */
    {"25006", RECONNECT, SEGUE_E_STORE},
    /* the server is stopping or starting, or it has ended the session */
    {"57P", RECONNECT, SEGUE_E_STORE},
    {"40", TRY_AGAIN, SEGUE_E_STORE},    /* deadlock, serialization */
    {"55P03", TRY_AGAIN, SEGUE_E_STORE}, /* lock not available */
    /* the statement was cancelled, by a timeout or by a user */
    {"57014", TRY_AGAIN, SEGUE_E_STORE},
    {"53100", GIVE_UP, SEGUE_E_STORE_FULL}, /* disk full */
    {"53300", RECONNECT, SEGUE_E_STORE},    /* too many connections */
    {"53", TRY_AGAIN, SEGUE_E_STORE},       /* other resources */
    {"58", TRY_AGAIN, SEGUE_E_STORE},       /* input and output */
    {"54000", TRY_AGAIN, SEGUE_E_STORE},    /* the queue of notifications is full */
    /* the call exceeds another limit of PostgreSQL */
    {"54", GIVE_UP, SEGUE_E_TOO_LARGE},
    {"23505", GIVE_UP, SEGUE_E_EXISTS},
    {"XX001", GIVE_UP, SEGUE_E_STORE_CORRUPT}, /* damaged data */
    {"XX002", GIVE_UP, SEGUE_E_STORE_CORRUPT}, /* damaged index */
    {"42P01", GIVE_UP, SEGUE_E_STORE_CORRUPT}, /* a table is missing */
    {"42883", GIVE_UP, SEGUE_E_STORE_CORRUPT}, /* a function is missing */
    {"", GIVE_UP, SEGUE_E_STORE},
};

static fault fault_of(const PGresult *result)
{
    const char *state = sgi_pq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    size_t i = 0;
    if (!state) /* the error comes from libpq itself, for example for lack of memory */
        return (fault){"", RECONNECT, SEGUE_E_STORE};
    if (!strncmp(state, "SG", 2))
        return (fault){"", GIVE_UP, (segue_status)-atoi(state + 2)};
    while (strncmp(state, FAULTS[i].state, strlen(FAULTS[i].state)) != 0)
        i++;
    return FAULTS[i];
}

segue_status sgi_pg_status_of(const PGresult *result)
{
    return fault_of(result).status;
}

void sgi_pg_keep_fault(sgi_pg_link *link, const PGresult *result)
{
    const char *text = sgi_pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    sgi_text_format(link->fault, sizeof link->fault, "%s",
                    text ? text : "PostgreSQL sent an unexpected answer");
}

static size_t number_in(const PGresult *result)
{
    const char *text = sgi_pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    int number = text ? atoi(text) : 0;
    return number > 0 ? (size_t)number - 1 : 0;
}

/* ---- running ---- */

typedef enum outcome {
    ANSWERED,
    REFUSED, /* a permanent error */
    AGAIN
} outcome;

static outcome try_once(sgi_pg_store *store, PGresult **result, size_t *at,
                        int64_t deadline, segue_status *status)
{
    sgi_pg_link *link = &store->link;
    *status = SEGUE_E_STORE;
    if (!sgi_pg_link_is_up(link) && sgi_pg_connect(store, link, deadline) != SEGUE_OK)
        return AGAIN;
    *result = sgi_pg_link_execute(link, &store->call, deadline);
    if (!*result)
        return AGAIN;
    if (sgi_pq.PQresultStatus(*result) == PGRES_TUPLES_OK)
        return ANSWERED;
    fault f = fault_of(*result);
    *status = f.status;
    sgi_pg_keep_fault(link, *result);
    if (at)
        *at = number_in(*result);
    sgi_pq.PQclear(*result);
    if (f.deed == RECONNECT)
        sgi_pg_link_close(link);
    return f.deed == GIVE_UP ? REFUSED : AGAIN;
}

static void pause_for(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    if (ms > 0)
        nanosleep(&time, NULL);
}

segue_status sgi_pg_execute(sgi_pg_store *store, PGresult **result, size_t *at)
{
    int64_t deadline = sgi_pg_now() + store->timeout_ms;
    if (sgi_pg_call_failed(&store->call))
        return SEGUE_E_NOMEM;
    for (int32_t failures = 0;; failures++) {
        segue_status status;
        int64_t left = deadline - sgi_pg_now();
        int64_t wait = sgi_backoff_ms(&PACE, failures);
        if (failures && left <= 0)
            return SEGUE_E_STORE;
        pause_for(wait < left ? wait : left > 0 ? left : 0);
        outcome how = try_once(store, result, at, deadline, &status);
        if (how == ANSWERED)
            return SEGUE_OK;
        if (how == REFUSED)
            return status;
    }
}

segue_status sgi_pg_execute_without_result(sgi_pg_store *store)
{
    PGresult *result;
    segue_status status = sgi_pg_execute(store, &result, NULL);
    if (!status)
        sgi_pq.PQclear(result);
    return status;
}
