/* One connection to PostgreSQL, through libpq without blocking. poll waits for the
 * socket, with a time limit. A second descriptor ends the wait when the store closes.
 *
 *    down --open--> up --error, time limit or close--> down
 *
 * After a time limit the connection is closed, because the statement can still be
 * running. The caller decides whether to send the statement again (postgres_call.c). */
#include "store/postgres_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "store/postgres_schema.h"

#define VERSION_LEAST 130000

int64_t sgi_pg_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sgi_pg_link_init(sgi_pg_link *link, const char *url, int stop_fd)
{
    *link = (sgi_pg_link){.url = url, .stop_fd = stop_fd};
}

void sgi_pg_link_close(sgi_pg_link *link)
{
    if (link->conn)
        sgi_pq.PQfinish(link->conn);
    link->conn = NULL;
}

/* Stores a text of libpq in link->fault, as one line. With several hosts or addresses the
 * text has a line for each of them, and only one of the lines may say what is wrong.
 * Lines that begin with a tab are hints of libpq, and are left out. */
static void keep_fault(sgi_pg_link *link, const char *why)
{
    size_t used = 0, len;
    *link->fault = 0;
    for (const char *line = why; *line; line += len + (line[len] == '\n')) {
        len = strcspn(line, "\n");
        if (len && *line != '\t') {
            sgi_text_format(link->fault + used, sizeof link->fault - used, "%s%.*s",
                            used ? "; " : "", (int)len, line);
            used = strlen(link->fault);
        }
    }
}

/* Stores the text in link->fault, and closes the connection. Returns false. */
static bool lose(sgi_pg_link *link, const char *why)
{
    keep_fault(link, why);
    sgi_pg_link_close(link);
    return false;
}

static bool lose_connection(sgi_pg_link *link)
{
    const char *why = sgi_pq.PQerrorMessage(link->conn);
    return lose(link, *why ? why : "the connection is lost");
}

/* Waits until the socket is ready. Returns false, after closing the connection, at the
 * deadline or when the store closes. */
static bool await(sgi_pg_link *link, short events, int64_t deadline)
{
    for (;;) {
        int64_t left = deadline - sgi_pg_now();
        struct pollfd fds[] = {{.fd = sgi_pq.PQsocket(link->conn), .events = events},
                               {.fd = link->stop_fd, .events = POLLIN}};
        if (left < 0)
            left = 0;
        int ready = poll(fds, 2, left > 60000 ? 60000 : (int)left);
        if (ready > 0 && fds[1].revents)
            return lose(link, "the store was closed");
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return lose(link, strerror(errno));
        if (!ready && sgi_pg_now() >= deadline)
            return lose(link, "no answer in time");
    }
}

/* ---- connecting ---- */

/* Does nothing. Without this function libpq would print notices to standard error. */
static void ignore_notice(void *user, const PGresult *notice)
{
    (void)user;
    (void)notice;
}

static bool connect_in_time(sgi_pg_link *link, int64_t deadline)
{
    PostgresPollingStatusType wanted = PGRES_POLLING_WRITING;
    if (sgi_pq.PQstatus(link->conn) == CONNECTION_BAD)
        return lose_connection(link);
    while (wanted != PGRES_POLLING_OK) {
        if (!await(link, wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline))
            return false;
        wanted = sgi_pq.PQconnectPoll(link->conn);
        if (wanted == PGRES_POLLING_FAILED)
            return lose_connection(link);
    }
    return sgi_pq.PQsetnonblocking(link->conn, 1) ? lose_connection(link) : true;
}

segue_status sgi_pg_link_open(sgi_pg_link *link, int64_t deadline)
{
    /* dbname (the URL) is last but one: a keyword after dbname would override the URL's
     * value */
    static const char *const keywords[] = {"target_session_attrs",
                                           "fallback_application_name", "dbname", NULL};
    const char *const values[] = {"read-write", "segue", link->url, NULL};
    sgi_pg_link_close(link);
    link->conn = sgi_pq.PQconnectStartParams(keywords, values, 1);
    if (!link->conn)
        return SEGUE_E_NOMEM;
    sgi_pq.PQsetNoticeReceiver(link->conn, ignore_notice, NULL);
    if (!connect_in_time(link, deadline))
        return SEGUE_E_STORE;
    if (sgi_pq.PQserverVersion(link->conn) >= VERSION_LEAST)
        return SEGUE_OK;
    lose(link, "PostgreSQL 13 or newer is needed");
    return SEGUE_E_UNSUPPORTED;
}

/* ---- statements ---- */

static bool flush(sgi_pg_link *link, int64_t deadline)
{
    int more;
    while ((more = sgi_pq.PQflush(link->conn)) > 0)
        if (!await(link, POLLIN | POLLOUT, deadline))
            return false;
        else if (!sgi_pq.PQconsumeInput(link->conn))
            return lose_connection(link);
    return more ? lose_connection(link) : true;
}

/* Waits for the end of the statement. Returns its last result, or its first error.
 * Returns NULL when the connection was lost. */
static PGresult *collect(sgi_pg_link *link, int64_t deadline)
{
    PGresult *last = NULL, *result;
    bool up = flush(link, deadline);
    while (up) {
        while (up && sgi_pq.PQisBusy(link->conn)) {
            up = await(link, POLLIN, deadline);
            if (up && !sgi_pq.PQconsumeInput(link->conn))
                up = lose_connection(link);
        }
        if (!up || !(result = sgi_pq.PQgetResult(link->conn)))
            break;
        if (last && sgi_pq.PQresultStatus(last) == PGRES_FATAL_ERROR) {
            sgi_pq.PQclear(result);
        } else {
            sgi_pq.PQclear(last);
            last = result;
        }
    }
    if (up && last && sgi_pq.PQstatus(link->conn) == CONNECTION_OK)
        return last;
    sgi_pq.PQclear(last);
    if (up)
        lose_connection(link);
    return NULL;
}

PGresult *sgi_pg_link_execute(sgi_pg_link *link, const sgi_pg_call *call,
                              int64_t deadline)
{
    const char *values[SGI_PG_ARGS_MAX];
    int lengths[SGI_PG_ARGS_MAX], formats[SGI_PG_ARGS_MAX];
    for (int i = 0; i < call->count; i++) {
        const sgi_buf *arg = &call->args[i];
        values[i] = call->nulls[i] ? NULL : arg->len ? arg->p : "";
        lengths[i] = (int)arg->len;
        formats[i] = 1;
    }
    if (sgi_pq.PQsendQueryParams(link->conn, call->sql.p, call->count, call->types,
                                 values, lengths, formats, 1))
        return collect(link, deadline);
    lose_connection(link);
    return NULL;
}

PGresult *sgi_pg_link_run(sgi_pg_link *link, const char *sql, int64_t deadline)
{
    if (sgi_pq.PQsendQuery(link->conn, sql))
        return collect(link, deadline);
    lose_connection(link);
    return NULL;
}

bool sgi_pg_link_poll(sgi_pg_link *link, PGnotify **notify)
{
    *notify = sgi_pq.PQnotifies(link->conn);
    if (*notify)
        return true;
    if (!sgi_pq.PQconsumeInput(link->conn))
        return lose_connection(link);
    *notify = sgi_pq.PQnotifies(link->conn);
    return true;
}
