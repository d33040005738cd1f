/* The task board of a listener (board_path): the parts of its page, and requests about
 * the stores of the listener's servers, or about the store of the option board_store. A
 * store may block, so the helper of the runtime answers such a request, and the
 * connection waits. When the connection ends first, the answer is dropped. */
#include "transport/http_conn.h"

#include "base/crypto.h"
#include "transport/bearer.h"
#include "wire/json_write.h"

/* A request that the helper answers. */
struct sgi_http_board_job {
    sgi_helper_job job;
    sgi_http_conn *conn; /* NULL = the connection does not wait any more */
    const sgi_mem *mem;
    bool is_done;
    sgi_board_request request;
};

typedef struct sgi_http_board_job board_job;

static void send_text(sgi_http_conn *conn, int32_t status, const char *problem)
{
    sgi_http_answer_head head = {
        .status = status, .type = SGI_HTTP_TEXT, .is_guarded = true};
    sgi_http_send_answer(conn, &head, sgi_str_of(problem));
}

void sgi_http_send_board_file(sgi_http_conn *conn)
{
    const sgi_board_item *item = conn->route.board;
    const char *path = conn->listener->options.board_path;
    sgi_http_answer_head head = {
        .status = 200, .media_type = item->type, .is_guarded = true};
    bool is_bare = strlen(path) == conn->parser.head.path.n && path[1];
    if (*item->name || !is_bare) {
        sgi_http_send_answer(conn, &head, item->text);
        return;
    }
    /* The page names its parts relative to its own path, which ends with a slash. */
    head.status = 308;
    head.media_type = NULL;
    head.folder = strrchr(path, '/') + 1;
    sgi_http_send_answer(conn, &head, (sgi_str){0});
}

/* ---- the stores ---- */

/* Returns the store of the number-th server; NULL = there is no such server. */
static segue_store *store_at(const segue_listener *listener, size_t number)
{
    const sgi_http_endpoint *endpoint;
    if (listener->options.board_store)
        return number ? NULL : listener->options.board_store;
    STAILQ_FOREACH(endpoint, &listener->endpoints, link)
        if (!endpoint->is_removed && !number--)
            return sgi_runtime_store(sgi_serve_committer(endpoint->server));
    return NULL;
}

static void add_about(const segue_listener *listener, sgi_buf *out)
{
    const segue_listen_options *o = &listener->options;
    const sgi_http_endpoint *endpoint;
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "version", sgi_str_of(SGI_VERSION));
    sgi_jw_key(&w, "readOnly");
    sgi_jw_bool(&w, o->board_read_only != 0);
    sgi_jw_key(&w, "redacted");
    sgi_jw_bool(&w, o->board_redact != 0);
    sgi_jw_key(&w, "sources");
    sgi_jw_open(&w, '[');
    if (o->board_store)
        sgi_jw_string(&w, SGI_STR(""));
    else
        STAILQ_FOREACH(endpoint, &listener->endpoints, link)
            if (!endpoint->is_removed)
                sgi_jw_string(&w, sgi_str_of(endpoint->path));
    sgi_jw_close(&w, ']');
    sgi_jw_close(&w, '}');
}

static void send_about(sgi_http_conn *conn)
{
    sgi_buf text;
    sgi_http_answer_head head = {
        .status = 200, .type = SGI_HTTP_JSON, .is_guarded = true};
    sgi_buf_init(&text, conn->listener->room.mem);
    add_about(conn->listener, &text);
    if (text.failed)
        send_text(conn, 503, "Out of memory\n");
    else
        sgi_http_send_answer(conn, &head, sgi_buf_str(&text));
    sgi_buf_free(&text);
}

/* ---- requests about a store ---- */

static board_job *job_of(sgi_helper_job *job)
{
    return SGI_OWNER(job, board_job, job);
}

static void free_job(board_job *job)
{
    sgi_board_request_free(&job->request);
    sgi_free(job->mem, job, sizeof *job);
}

static void run(sgi_helper_job *job)
{
    sgi_board_answer(&job_of(job)->request);
}

static void done(sgi_helper_job *helped)
{
    board_job *job = job_of(helped);
    job->is_done = true;
    if (job->conn)
        sgi_carrier_request_work(&job->conn->transport.carrier, SGI_WORK_OWN);
    else
        free_job(job);
}

void sgi_http_forget_board(sgi_http_conn *conn)
{
    board_job *job = conn->board;
    conn->board = NULL;
    if (job && job->is_done)
        free_job(job);
    else if (job)
        job->conn = NULL;
}

void sgi_http_deliver_board(sgi_http_conn *conn)
{
    board_job *job = conn->board;
    if (!job || !job->is_done)
        return;
    conn->board = NULL;
    sgi_http_answer_head head = {
        .status = job->request.status, .type = SGI_HTTP_JSON, .is_guarded = true};
    if (job->request.json.failed)
        send_text(conn, 503, "Out of memory\n");
    else
        sgi_http_send_answer(conn, &head, sgi_buf_str(&job->request.json));
    free_job(job);
}

static size_t source_of(sgi_str query)
{
    static const sgi_str name = SGI_STR_INIT("source=");
    size_t number = 0;
    if (!sgi_str_skip(&query, name))
        return 0;
    for (size_t i = 0; i < query.n && i < 6 && query.p[i] >= '0' && query.p[i] <= '9';
         i++)
        number = 10 * number + (size_t)(query.p[i] - '0');
    return number;
}

/* Returns false when the request cannot be queued. */
static bool queue(sgi_http_conn *conn, segue_store *store, bool is_personal)
{
    const segue_listener *listener = conn->listener;
    const sgi_mem *mem = listener->room.mem;
    board_job *job = sgi_zalloc(mem, sizeof *job);
    if (!job)
        return false;
    *job = (board_job){.job = {.run = run, .done = done}, .conn = conn, .mem = mem};
    bool is_queued =
        sgi_board_request_init(&job->request, mem, conn->route.board, store,
                               listener->board_cache, conn->parser.head.query,
                               sgi_buf_str(&conn->parser.body)) &&
        sgi_runtime_help(listener->carrier.runtime, &job->job);
    job->request.is_personal = is_personal;
    if (is_personal)
        memcpy(job->request.principal, sgi_serve_principal_digest(conn->who),
               sizeof job->request.principal);
    job->request.is_redacted = listener->options.board_redact != 0;
    if (is_queued)
        conn->board = job;
    else
        free_job(job);
    return is_queued;
}

/* ---- callers ---- */

typedef enum board_caller {
    CALLER_UNKNOWN,
    CALLER_LACKS_TOKEN,
    CALLER_SEES_OWN, /* the tasks of its principal */
    CALLER_SEES_ALL
} board_caller;

static bool has_token(const sgi_http_conn *conn, sgi_str wanted)
{
    const sgi_http1_head *head = &conn->parser.head;
    sgi_str given = {0};
    return sgi_bearer_read_token(sgi_http1_header(head, SGI_HTTP1_AUTHORIZATION),
                                 &given) &&
           given.n == wanted.n && sgi_crypto_equal(given.p, wanted.p, wanted.n);
}

static board_caller caller_of(sgi_http_conn *conn)
{
    const char *token = conn->listener->options.board_token;
    if (token)
        return has_token(conn, sgi_str_of(token)) ? CALLER_SEES_ALL : CALLER_LACKS_TOKEN;
    if (sgi_http_is_from_here(conn))
        return CALLER_SEES_ALL;
    return sgi_http_may_look(conn) && conn->who ? CALLER_SEES_OWN : CALLER_UNKNOWN;
}

void sgi_http_answer_board(sgi_http_conn *conn)
{
    const sgi_board_item *item = conn->route.board;
    const segue_listen_options *o = &conn->listener->options;
    segue_store *store = store_at(conn->listener, source_of(conn->parser.head.query));
    board_caller caller = caller_of(conn);
    conn->wait = SGI_HTTP_WAIT_NOTHING;
    if (caller == CALLER_LACKS_TOKEN)
        send_text(conn, 401, "The task board needs the token of its URL\n");
    else if (caller == CALLER_UNKNOWN)
        send_text(conn, 403,
                  "The task board is for callers on this machine, and for callers that "
                  "the server knows\n");
    else if (item->kind == SGI_BOARD_ABOUT)
        send_about(conn);
    else if (item->kind == SGI_BOARD_CHANGE && o->board_read_only)
        send_text(conn, 403, "This task board is read-only\n");
    else if (!store)
        send_text(conn, 404, "The listener has no such server\n");
    else if (!queue(conn, store, caller == CALLER_SEES_OWN))
        send_text(conn, 503, "The task board is busy, or out of memory\n");
}
