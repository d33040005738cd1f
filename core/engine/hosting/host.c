/* Messages of the host go out in two ways. Over a byte stream they are a source of the
 * session's conversation: asked for when it has room, so that a slow server slows the
 * host's streams down. Over HTTP each is an exchange of its own (asking/ask_http.h), so
 * many at once; the others wait in the host's conversation. There they have no order
 * between them, so a request gets one response, and segments beyond it are pulled.
 *
 * Nothing is done from within the host's work: what there is to do is noted and done out
 * of the ready queue, or when the transport asks for bytes. */
#include "engine/hosting/host.h"

#include "engine/asking/asked.h"
#include "engine/asking/session.h"
#include "engine/dialect/dialect.h"
#include "engine/dialect/response_modes.h"
#include "engine/serving/peer.h"

#define KEEP_ROOM ((size_t)64 * 1024)

struct sgi_hosting {
    sgi_bearer bearer;
    segue_session *session; /* whose it is */
    sgi_conn *conn;         /* counted; NULL once it has ended */
    sgi_peer *peer;         /* of conn */
    sgi_source source;      /* a byte stream: of the session's conversation */
    sgi_ready ready;
    sgi_buf room; /* lines on their way; over HTTP those from `at` on wait */
    size_t at;
    bool waited_for; /* the session's handshake begins when the host is ready */
    bool open;
};

static sgi_hosting *of(const sgi_bearer *bearer)
{
    return SGI_OWNER(bearer, sgi_hosting, bearer);
}

/* ---- what is noted ---- */

static void note(sgi_hosting *h)
{
    sgi_ready_add(h->session->engine, &h->ready);
}

static void output(sgi_bearer *bearer)
{
    sgi_hosting *h = of(bearer);
    if (h->session->conn->exchanging)
        note(h);
    else
        sgi_source_ready(h->session->conn, &h->source);
}

static void input(sgi_bearer *bearer)
{
    sgi_hosting *h = of(bearer);
    if (h->waited_for)
        note(h);
    sgi_conn_resume_input(h->session->conn);
}

static void ends(sgi_bearer *bearer)
{
    note(of(bearer));
}

/* ---- output ---- */

static bool fill(sgi_source *source, size_t room)
{
    sgi_hosting *h = SGI_OWNER(source, sgi_hosting, source);
    sgi_conn *outer = h->session->conn;
    (void)room; /* it has a bound of its own, which is as large */
    if (!h->conn)
        return false;
    sgi_buf_reset(&h->room, KEEP_ROOM);
    sgi_conn_output(h->conn, &h->room);
    sgi_buf_add_str(&outer->out, sgi_buf_str(&h->room));
    if (outer->out.failed)
        sgi_conn_close(outer); /* who asked must not wait for an answer that is lost */
    return false;              /* told again when there is more */
}

static bool next_line(sgi_hosting *h, sgi_str *line)
{
    if (h->at == h->room.len) {
        sgi_buf_reset(&h->room, KEEP_ROOM);
        h->at = 0;
        sgi_conn_output(h->conn, &h->room);
    }
    if (h->at == h->room.len)
        return false;
    const char *from = h->room.p + h->at;
    const char *end = memchr(from, '\n', h->room.len - h->at);
    line->p = from;
    line->n = (size_t)(end - from);
    return true;
}

static void post_lines(sgi_hosting *h)
{
    segue_session *session = h->session;
    sgi_str line;
    while (session->telling < SGI_TELLING_MAX && next_line(h, &line)) {
        sgi_conn *conn = sgi_session_tell(session);
        h->at += line.n + 1;
        if (!conn)
            continue; /* it is lost, as messages are: who waits for it asks again */
        sgi_buf_add_str(&conn->out, line);
        if (conn->out.failed)
            sgi_buf_cut(&conn->out, 0);
        sgi_session_told(session, conn);
    }
}

/* ---- what is done ---- */

static void detach(sgi_hosting *h)
{
    sgi_conn *conn = h->conn;
    if (!conn)
        return;
    h->conn = NULL;
    h->peer = NULL;
    h->open = false;
    sgi_source_remove(h->session->conn, &h->source);
    sgi_conn_detach(conn);
    sgi_conn_unref(conn);
}

/* The host wants to end it: it has closed, or does not know this server; or an answer
 * found no memory, and who waits for it must hear of the end. */
static void end_as_wanted(sgi_hosting *h)
{
    segue_session *session = h->session;
    if (!h->peer->reading || h->peer->server->stage >= SGI_SERVER_CLOSED) {
        detach(h);
    } else if (!session->conn->exchanging) {
        sgi_conn_close(session->conn);
    } else {
        sgi_hosting_cut(session, "out of memory");
        sgi_hosting_open(session);
    }
}

static int32_t work(sgi_ready *ready, int32_t budget)
{
    sgi_hosting *h = SGI_OWNER(ready, sgi_hosting, ready);
    segue_session *session = h->session;
    (void)budget;
    sgi_session_ref(session);
    if (h->conn && sgi_conn_is_closing(h->conn))
        end_as_wanted(h);
    if (h->waited_for && sgi_hosting_is_ready(session)) {
        h->waited_for = false;
        if (session->conn->up && session->stage != SGI_STAGE_CLOSED)
            sgi_handshake_begin(session);
    }
    sgi_hosting_go(session);
    sgi_session_unref(session);
    return 0;
}

void sgi_hosting_go(segue_session *session)
{
    sgi_hosting *h = session->hosting;
    if (h && h->conn && h->open && session->conn->exchanging &&
        sgi_session_is_open(session))
        post_lines(h);
}

/* ---- life ---- */

segue_status sgi_hosting_new(segue_session *session, segue_server *host)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    sgi_hosting *h = sgi_zalloc(mem, sizeof *h);
    if (!h)
        return SEGUE_E_NOMEM;
    segue_status status = sgi_server_accept(host, NULL, &h->conn);
    if (status != SEGUE_OK) {
        sgi_release(mem, h, sizeof *h);
        return status;
    }
    sgi_conn_ref(h->conn);
    h->session = session;
    h->peer = h->conn->self;
    h->bearer = (sgi_bearer){session->conn, output, input, ends};
    h->source.fill = fill;
    h->ready.run = work;
    sgi_buf_init(&h->room, mem);
    h->peer->is_host = true;
    h->peer->stranger = session->options.no_tasks != 0; /* then none were declared */
    h->conn->apart = session->conn->exchanging;
    sgi_conn_carry(h->conn, &h->bearer);
    sgi_conn_start(h->conn);
    session->hosting = h;
    return SEGUE_OK;
}

void sgi_hosting_free(segue_session *session)
{
    sgi_hosting *h = session->hosting;
    if (!h)
        return;
    sgi_hosting_end(session);
    sgi_buf_free(&h->room);
    session->hosting = NULL;
    sgi_release(sgi_engine_mem(session->engine), h, sizeof *h);
}

bool sgi_hosting_is_ready(segue_session *session)
{
    sgi_hosting *h = session->hosting;
    if (!h || !h->conn || sgi_conn_wants_input(h->conn))
        return true;
    h->waited_for = true;
    return false;
}

/* Modes of SEP-1905 hold for both directions: what a side declared is what it knows. */
void sgi_hosting_open(segue_session *session)
{
    sgi_hosting *h = session->hosting;
    if (!h || !h->conn || session->version != SGI_VERSION_2025_11_25)
        return;
    sgi_handshake *told = h->peer->handshake;
    sgi_json capabilities = sgi_json_get(sgi_buf_str(&session->peer), "capabilities");
    h->conn->apart = session->conn->exchanging;
    sgi_conn_start(h->conn);
    told->version = session->version;
    told->initialized = true;
    told->modes = sgi_task_calls_modes(capabilities);
    h->open = true;
}

void sgi_hosting_cut(segue_session *session, const char *why)
{
    sgi_hosting *h = session->hosting;
    if (!h || !h->open)
        return;
    h->open = false;
    sgi_source_remove(session->conn, &h->source);
    if (h->conn)
        sgi_conn_lost(h->conn, why);
    sgi_buf_reset(&h->room, KEEP_ROOM);
    h->at = 0;
}

void sgi_hosting_end(segue_session *session)
{
    sgi_hosting *h = session->hosting;
    if (!h)
        return;
    sgi_ready_remove(session->engine, &h->ready);
    detach(h);
}

/* ---- input ---- */

static bool is_for_host(const segue_session *session, const sgi_message *msg)
{
    const sgi_peer *peer = session->hosting->peer;
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_name_text(msg->method, room);
    if (!method.n)
        return false;
    if (msg->kind == SGI_MESSAGE_NOTIFICATION)
        return sgi_str_eq(method, SGI_STR("notifications/cancelled"));
    if (method.n > 6 && !memcmp(method.p, "tasks/", 6))
        return !session->options.no_tasks;
    return sgi_question_method(peer->server, method) && !sgi_asked_refuses(session, msg);
}

bool sgi_hosting_takes(segue_session *session, const sgi_message *msg)
{
    sgi_hosting *h = session->hosting;
    if (!h || !h->open || !is_for_host(session, msg))
        return false;
    sgi_conn *conn = h->conn;
    sgi_conn_ref(conn);
    sgi_peer_message(h->peer, msg);
    sgi_conn_unref(conn);
    return true;
}

bool sgi_hosting_wants_input(const segue_session *session)
{
    const sgi_hosting *h = session->hosting;
    return !h || !h->open || sgi_conn_wants_input(h->conn);
}

/* ---- what is declared ---- */

static sgi_item *question(const segue_server *host, const sgi_call_kind *kind)
{
    return host ? sgi_item_find((segue_server *)host, SEGUE_ITEM_QUESTION,
                                sgi_str_of(kind->method))
                : NULL;
}

static bool is_task(const segue_server *host, const sgi_call_kind *kind)
{
    const sgi_item *item = question(host, kind);
    return item && item->options.task != SEGUE_TASK_NEVER &&
           host->dialects & SGI_DIALECT_L;
}

void sgi_hosting_write_tasks(sgi_jw *w, const segue_server *host)
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

void sgi_hosting_write_questions(sgi_jw *w, const segue_server *host, sgi_json given)
{
    if (question(host, &sgi_call_sampling) && !sgi_json_get(given, "sampling").n)
        sgi_jw_member_raw(w, "sampling", SGI_STR("{}"));
    if (question(host, &sgi_call_elicitation) && !sgi_json_get(given, "elicitation").n)
        sgi_jw_member_raw(w, "elicitation", SGI_STR("{}"));
}
