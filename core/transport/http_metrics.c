/* The answer to a request for the metrics of a listener's servers (metrics_path). Metrics
 * say what a server does and how often, so only a caller that the server knows may read
 * them, or one on this machine. A proxy on this machine stands for callers anywhere. */
#include "transport/http_conn.h"

/* True when a proxy says that it passed the request on. */
static bool came_through_proxy(const sgi_http1_head *head)
{
    static const sgi_str names[] = {SGI_STR_INIT("forwarded"),
                                    SGI_STR_INIT("x-forwarded-for"),
                                    SGI_STR_INIT("x-real-ip"), SGI_STR_INIT("via")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sgi_http1_find_header(head, names[i], NULL).p)
            return true;
    return false;
}

bool sgi_http_is_from_here(sgi_http_conn *conn)
{
    sgi_http_conn_look_at_peer(conn);
    return conn->is_local && !came_through_proxy(&conn->parser.head);
}

bool sgi_http_may_look(sgi_http_conn *conn)
{
    return sgi_http_is_from_here(conn) || conn->named || conn->is_known;
}

/* Lists the servers of the listener, each with its first path. The caller frees the list,
 * which has room for *room sources. Returns NULL when out of memory. */
static sgi_metrics_source *list_sources(const segue_listener *listener, size_t *room,
                                        size_t *count)
{
    const sgi_http_endpoint *endpoint;
    *room = *count = 0;
    STAILQ_FOREACH(endpoint, &listener->endpoints, link)
        ++*room;
    sgi_metrics_source *sources = sgi_alloc(listener->room.mem, *room * sizeof *sources);
    STAILQ_FOREACH(endpoint, &listener->endpoints, link) {
        bool is_new = sources && !endpoint->is_removed;
        for (size_t i = 0; i < *count && is_new; i++)
            is_new = sources[i].server != endpoint->server;
        if (is_new)
            sources[(*count)++] = (sgi_metrics_source){endpoint->server, endpoint->path};
    }
    return sources;
}

static bool write_metrics(const segue_listener *listener, sgi_buf *text)
{
    size_t room, count;
    sgi_metrics_source *sources = list_sources(listener, &room, &count);
    if (count)
        sgi_serve_write_metrics(sources, count, sgi_runtime_resident_bytes(), text);
    sgi_free(listener->room.mem, sources, room * sizeof *sources);
    return sources && !text->failed;
}

void sgi_http_answer_metrics(sgi_http_conn *conn)
{
    sgi_buf text;
    sgi_http_answer_head head = {.status = 200, .type = SGI_HTTP_METRICS_TEXT};
    sgi_http_answer_head refusal = {.status = 403, .type = SGI_HTTP_TEXT};
    if (!sgi_http_may_look(conn)) {
        sgi_http_send_answer(conn, &refusal,
                             SGI_STR("The metrics are for callers on this machine, and "
                                     "for callers that the server knows\n"));
        return;
    }
    sgi_buf_init(&text, conn->listener->room.mem);
    if (write_metrics(conn->listener, &text))
        sgi_http_send_answer(conn, &head, sgi_buf_str(&text));
    else
        sgi_http_send_problem(conn, 503, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    sgi_buf_free(&text);
}
