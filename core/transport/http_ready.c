#include "transport/http_ready.h"

#include "base/thresholds.h"
#include "transport/http_conn.h"

/* A new connection looks for room at this many others. When all of them are busy, it gets
 * none: if more connections than the list can hold take turns, those in it stay ready. */
#define LOOKS 2

void sgi_http_ready_init(sgi_http_ready_list *list)
{
    TAILQ_INIT(&list->conns);
    list->count = 0;
}

static sgi_http_ready_list *list_of(const sgi_http_conn *conn)
{
    return &conn->listener->ready;
}

static void insert(sgi_http_ready_list *list, sgi_http_conn *conn)
{
    conn->ready = (sgi_http_ready){.is_in = true};
    TAILQ_INSERT_HEAD(&list->conns, conn, ready.link);
    list->count++;
}

void sgi_http_ready_forget(sgi_http_conn *conn)
{
    sgi_http_ready_list *list = list_of(conn);
    if (!conn->ready.is_in)
        return;
    TAILQ_REMOVE(&list->conns, conn, ready.link);
    list->count--;
    conn->ready.is_in = false;
}

static void free_buffers(sgi_http_conn *conn)
{
    sgi_http1_free(&conn->parser);
    sgi_serve_free_spare_conn(conn->spare);
    conn->spare = NULL;
}

/* A connection whose request is running is only taken from the list. It comes back when
 * it waits for its next request. */
static void take_out(sgi_http_conn *conn, const sgi_http_conn *waiting)
{
    sgi_http_ready_forget(conn);
    if (conn == waiting || (conn->stage == SGI_HTTP_READING && !conn->parsing &&
                            !sgi_http1_has_begun(&conn->parser)))
        free_buffers(conn);
}

/* Returns a connection that made no request lately, or NULL when all that were looked at
 * did. */
static sgi_http_conn *choose(sgi_http_ready_list *list)
{
    for (int looks = 0; looks < LOOKS; looks++) {
        sgi_http_conn *conn = TAILQ_LAST(&list->conns, sgi_http_ready_conns);
        if (!conn->ready.used)
            return conn;
        sgi_http_ready_forget(conn);
        insert(list, conn);
    }
    return NULL;
}

void sgi_http_ready_add(sgi_http_conn *conn)
{
    sgi_http_ready_list *list = list_of(conn);
    insert(list, conn);
    if (list->count > SGI_THRESHOLD(ready_conns)) {
        sgi_http_conn *idle = choose(list);
        take_out(idle ? idle : conn, conn);
    }
}
