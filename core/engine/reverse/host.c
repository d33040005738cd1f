/* The host of a client's session: a server of the application that answers requests of
 * the MCP server at the other end. Over a byte stream the host is a source of the
 * session's conversation: the host is asked for messages when there is room, so a slow
 * reader slows down the host's streams. Over HTTP each message of the host is a separate
 * exchange (client/exchange_start.h). The number of exchanges at a time is limited, and
 * further messages wait in the host's conversation. Messages over HTTP have no order, so
 * each request gets one response, and the peer pulls further segments. The functions that
 * the host calls only note that there is work. The work is done from the ready queue, or
 * when the transport asks for bytes. */
#include "engine/reverse/reverse.h"

#include "engine/client/server_questions.h"
#include "engine/server/dialects.h"
#include "engine/client/hosting.h"
#include "engine/dialect/tasks_2025/follow_2025.h"
#include "engine/response_modes.h"
#include "engine/server/serving.h"

#define KEEP_ROOM ((size_t)64 * 1024)

typedef struct hosting {
    sgi_question_host base; /* must be the first member */
    sgi_outer_conn outer_conn;
    segue_session *session; /* the session to which the host belongs */
    /* the host's conversation, a counted reference; NULL = the conversation has ended */
    sgi_conn *conn;
    sgi_peer *peer; /* the MCP server at the other end, which is a client of the host */
    /* over a byte stream: the host's output as a source of the session's conversation */
    sgi_output_source source;
    sgi_ready_object ready;
    /* Lines that were taken from the output of `conn`. Over HTTP, the lines from position
     * `at` on are not sent yet. */
    sgi_buf room;
    size_t at;
    /* the handshake of the session waits until the host (the server that answers the MCP
     * server's requests) can receive messages; the host cannot receive messages before
     * its recovery has ended */
    bool waited_for;
    bool open;
} hosting;

static hosting *carried_by(const sgi_outer_conn *outer_conn)
{
    return SGI_OWNER(outer_conn, hosting, outer_conn);
}

static hosting *of(const sgi_question_host *base)
{
    return SGI_OWNER(base, hosting, base);
}

static bool hosting_is_ready(sgi_question_host *base);
static void hosting_open(sgi_question_host *base);
static void hosting_cut(sgi_question_host *base, const char *why);
static void hosting_end(sgi_question_host *base);
static void hosting_go(sgi_question_host *base);

/* ---- notes of what has to be done ---- */

static void note(hosting *h)
{
    sgi_ready_queue_add(h->session->engine, &h->ready);
}

static void output(sgi_outer_conn *outer_conn)
{
    hosting *h = carried_by(outer_conn);
    if (h->session->conn->exchanging)
        note(h);
    else
        sgi_output_source_queue(h->session->conn, &h->source);
}

static void input(sgi_outer_conn *outer_conn)
{
    hosting *h = carried_by(outer_conn);
    if (h->waited_for)
        note(h);
    sgi_conn_resume_input(h->session->conn);
}

static void ends(sgi_outer_conn *outer_conn)
{
    note(carried_by(outer_conn));
}

/* ---- output ---- */

static bool fill(sgi_output_source *source, size_t room)
{
    hosting *h = SGI_OWNER(source, hosting, source);
    sgi_conn *outer = h->session->conn;
    /* `room` is not used, because the output of `conn` has a limit of about the same
     * size */
    (void)room;
    if (!h->conn)
        return false;
    sgi_buf_reset(&h->room, KEEP_ROOM);
    sgi_conn_take_output(h->conn, &h->room);
    sgi_buf_add_str(&outer->out, sgi_buf_str(&h->room));
    if (outer->out.failed)
        /* A message was lost because memory ran out. The session ends, because the peer
         * would wait for this message forever. */
        sgi_conn_close(outer);
    /* `conn` calls the function `output` again when it has more output */
    return false;
}

static bool next_line(hosting *h, sgi_str *line)
{
    if (h->at == h->room.len) {
        sgi_buf_reset(&h->room, KEEP_ROOM);
        h->at = 0;
        sgi_conn_take_output(h->conn, &h->room);
    }
    if (h->at == h->room.len)
        return false;
    const char *from = h->room.p + h->at;
    const char *end = memchr(from, '\n', h->room.len - h->at);
    line->p = from;
    line->n = (size_t)(end - from);
    return true;
}

static void post_lines(hosting *h)
{
    segue_session *session = h->session;
    sgi_str line;
    while (session->answers.under_way < SGI_TELLING_MAX && next_line(h, &line)) {
        sgi_conn *conn = sgi_session_begin_message(session);
        h->at += line.n + 1;
        if (!conn)
            /* out of memory: the line is lost, and the peer must send its request
             * again */
            continue;
        sgi_buf_add_str(&conn->out, line);
        if (conn->out.failed)
            sgi_buf_truncate(&conn->out, 0);
        sgi_session_send_message(session, conn);
    }
}

/* ---- doing what was noted ---- */

static void detach(hosting *h)
{
    sgi_conn *conn = h->conn;
    if (!conn)
        return;
    h->conn = NULL;
    h->peer = NULL;
    h->open = false;
    sgi_output_source_remove(h->session->conn, &h->source);
    sgi_conn_detach(conn);
    sgi_conn_unref(conn);
}

/* Ends the conversation between the host (the application's server in this session) and
 * the MCP server at the other end, because the host asked for the end. The host asks when
 * it has closed, has not accepted the MCP server as its client, or had no memory for an
 * answer. */
static void end_as_wanted(hosting *h)
{
    segue_session *session = h->session;
    if (!h->peer->reading || h->peer->server->stage >= SGI_SERVER_CLOSED) {
        detach(h);
    } else if (!session->conn->exchanging) {
        sgi_conn_close(session->conn);
    } else {
        hosting_cut(&h->base, "out of memory");
        hosting_open(&h->base);
    }
}

static int32_t work(sgi_ready_object *ready, int32_t budget)
{
    hosting *h = SGI_OWNER(ready, hosting, ready);
    segue_session *session = h->session;
    (void)budget;
    sgi_session_ref(session);
    if (h->conn && sgi_conn_is_closing(h->conn))
        end_as_wanted(h);
    if (h->waited_for && hosting_is_ready(&h->base)) {
        h->waited_for = false;
        if (session->conn->up && !sgi_session_is_closed(session))
            sgi_handshake_begin(session);
    }
    hosting_go(&h->base);
    sgi_session_unref(session);
    return 0;
}

static void hosting_go(sgi_question_host *base)
{
    hosting *h = of(base);
    if (h->conn && h->open && h->session->conn->exchanging &&
        sgi_session_is_open(h->session))
        post_lines(h);
}

/* ---- making and freeing ---- */

static segue_status hosting_join(segue_session *session, segue_server *host)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    hosting *h = sgi_zalloc(mem, sizeof *h);
    if (!h)
        return SEGUE_E_NOMEM;
    segue_status status = sgi_server_accept(host, NULL, &h->conn);
    if (status != SEGUE_OK) {
        sgi_free(mem, h, sizeof *h);
        return status;
    }
    sgi_conn_ref(h->conn);
    h->base.table = &sgi_reverse_hosting;
    h->session = session;
    h->peer = h->conn->self;
    h->outer_conn = (sgi_outer_conn){session->conn, output, input, ends};
    h->source.fill = fill;
    h->ready.run = work;
    sgi_buf_init(&h->room, mem);
    h->peer->is_host = true;
    /* with the option no_tasks, the host gives the MCP server no tasks */
    h->peer->stranger = session->options.no_tasks != 0;
    h->conn->unordered = session->conn->exchanging;
    sgi_conn_set_outer(h->conn, &h->outer_conn);
    sgi_conn_start(h->conn);
    session->hosting = &h->base;
    return SEGUE_OK;
}

static void hosting_free(sgi_question_host *base)
{
    hosting *h = of(base);
    segue_session *session = h->session;
    hosting_end(base);
    sgi_buf_free(&h->room);
    session->hosting = NULL;
    sgi_free(sgi_engine_mem(session->engine), h, sizeof *h);
}

static bool hosting_is_ready(sgi_question_host *base)
{
    hosting *h = of(base);
    if (!h->conn || sgi_conn_wants_input(h->conn))
        return true;
    h->waited_for = true;
    return false;
}

/* Begins the host's conversation. The response modes of SEP-1905 apply to both
 * directions: a side understands each mode that the side has declared. */
static void hosting_open(sgi_question_host *base)
{
    hosting *h = of(base);
    const segue_session *session = h->session;
    if (!h->conn || !sgi_facts(session->version)->has_tasks_both_ways)
        return;
    sgi_handshake *told = h->peer->handshake;
    sgi_json capabilities = sgi_json_get(sgi_buf_str(&session->peer), "capabilities");
    h->conn->unordered = session->conn->exchanging;
    sgi_conn_start(h->conn);
    told->version = session->version;
    told->initialized = true;
    told->modes = sgi_2025_modes_of_capabilities(capabilities);
    h->open = true;
}

static void hosting_cut(sgi_question_host *base, const char *why)
{
    hosting *h = of(base);
    if (!h->open)
        return;
    h->open = false;
    sgi_output_source_remove(h->session->conn, &h->source);
    if (h->conn)
        sgi_conn_on_lost(h->conn, why);
    sgi_buf_reset(&h->room, KEEP_ROOM);
    h->at = 0;
}

static void hosting_end(sgi_question_host *base)
{
    hosting *h = of(base);
    sgi_ready_queue_remove(h->session->engine, &h->ready);
    detach(h);
}

/* ---- input ---- */

static bool is_for_host(const hosting *h, const sgi_message *msg)
{
    const segue_session *session = h->session;
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_method_text(msg->method, room);
    if (!method.n)
        return false;
    if (msg->kind == SGI_MESSAGE_NOTIFICATION)
        return sgi_str_eq(method, SGI_STR("notifications/cancelled"));
    if (sgi_str_begins(method, SGI_STR("tasks/")))
        return !session->options.no_tasks;
    return sgi_question_find_method(h->peer->server, method) &&
           !sgi_server_question_is_undeclared(session, msg);
}

static bool hosting_takes(sgi_question_host *base, const sgi_message *msg)
{
    hosting *h = of(base);
    if (!h->open || !is_for_host(h, msg))
        return false;
    sgi_conn *conn = h->conn;
    sgi_conn_ref(conn);
    sgi_peer_hear(h->peer, msg);
    sgi_conn_unref(conn);
    return true;
}

static bool hosting_wants_input(const sgi_question_host *base)
{
    const hosting *h = of(base);
    return !h->open || sgi_conn_wants_input(h->conn);
}

/* ---- capabilities ---- */

static sgi_item *question(const segue_server *host, const sgi_call_kind *kind)
{
    return sgi_item_find((segue_server *)host, SEGUE_ITEM_QUESTION,
                         sgi_str_of(kind->method));
}

static bool is_task(const segue_server *host, const sgi_call_kind *kind)
{
    const sgi_item *item = question(host, kind);
    return item && item->options.task != SEGUE_TASK_NEVER &&
           sgi_srv_makes_tasks(host, SGI_VERSION_HANDSHAKE);
}

static void write_tasks(sgi_jw *w, const segue_server *host)
{
    bool samples = is_task(host, &sgi_call_sampling);
    bool elicits = is_task(host, &sgi_call_elicitation);
    if (!samples && !elicits)
        return;
    if (host->lists && host->options.principal)
        sgi_jw_member_raw(w, "list", SGI_STR("{}"));
    sgi_jw_member_raw(w, "cancel", SGI_STR("{}"));
    sgi_jw_key(w, "requests");
    sgi_jw_open(w, '{');
    if (samples)
        sgi_jw_member_raw(w, "sampling", SGI_STR("{\"createMessage\":{}}"));
    if (elicits)
        sgi_jw_member_raw(w, "elicitation", SGI_STR("{\"create\":{}}"));
    sgi_jw_close(w, '}');
}

static void write_questions(sgi_jw *w, const segue_server *host, sgi_json given)
{
    if (question(host, &sgi_call_sampling) && !sgi_json_get(given, "sampling").n)
        sgi_jw_member_raw(w, "sampling", SGI_STR("{}"));
    if (question(host, &sgi_call_elicitation) && !sgi_json_get(given, "elicitation").n)
        sgi_jw_member_raw(w, "elicitation", SGI_STR("{}"));
}

const sgi_question_host_ops sgi_reverse_hosting = {.join = hosting_join,
                                                   .free = hosting_free,
                                                   .is_ready = hosting_is_ready,
                                                   .open = hosting_open,
                                                   .cut = hosting_cut,
                                                   .end = hosting_end,
                                                   .takes = hosting_takes,
                                                   .wants_input = hosting_wants_input,
                                                   .go = hosting_go,
                                                   .write_tasks = write_tasks,
                                                   .write_questions = write_questions};
