#include "engine/conn.h"

#define FILL_BYTES (256 * 1024)
#define KEEP_ROOM (512 * 1024)

sgi_conn *sgi_conn_new(sgi_engine *engine, const sgi_role *role, void *self,
                       void *transport)
{
    sgi_conn *conn = sgi_zalloc(sgi_engine_mem(engine), sizeof *conn);
    if (!conn)
        return NULL;
    conn->engine = engine;
    conn->refs = 1;
    conn->role = role;
    conn->self = self;
    conn->transport = transport;
    sgi_ndjson_init(&conn->framing, sgi_engine_mem(engine), engine->max_message);
    sgi_buf_init(&conn->out, sgi_engine_mem(engine));
    TAILQ_INIT(&conn->sources);
    return conn;
}

void sgi_conn_ref(sgi_conn *conn)
{
    conn->refs++;
}

void sgi_conn_unref(sgi_conn *conn)
{
    if (--conn->refs)
        return;
    sgi_ndjson_free(&conn->framing);
    sgi_buf_free(&conn->out);
    sgi_release(sgi_engine_mem(conn->engine), conn, sizeof *conn);
}

void *sgi_conn_transport(const sgi_conn *conn)
{
    return conn->transport;
}

/* ---- input ---- */

void sgi_conn_start(sgi_conn *conn)
{
    if (conn->detached)
        return;
    sgi_ndjson_reset(&conn->framing);
    sgi_buf_reset(&conn->out, KEEP_ROOM);
    conn->told = false;
    conn->up = true;
    conn->role->start(conn->self);
}

/* What came is no message: dropped and counted, whoever it is for. */
static void refuse_input(sgi_conn *conn, int32_t rpc_code, const char *problem)
{
    conn->engine->warnings++;
    conn->role->bad_input(conn->self, rpc_code, problem);
}

static void read_message(sgi_conn *conn, sgi_str line)
{
    sgi_json_member members[SGI_MESSAGE_MEMBERS];
    sgi_json_error fault;
    sgi_message message;
    size_t count = 0;
    if (!sgi_json_read(&conn->engine->reader, line, members, SGI_MESSAGE_MEMBERS, &count,
                       &fault)) {
        sgi_engine_log(conn->engine, SEGUE_LOG_WARNING, "input: %s at byte %zu",
                       sgi_json_fault_text(fault.fault), fault.at);
        refuse_input(conn, SGI_RPC_PARSE_ERROR, sgi_json_fault_text(fault.fault));
        return;
    }
    if (sgi_json_kind_of(sgi_json_trim(line)) != SGI_JSON_OBJECT) {
        refuse_input(conn, SGI_RPC_INVALID_REQUEST, "a message is not an object");
        return;
    }
    if (count >
        SGI_MESSAGE_MEMBERS) { /* an id among those that are not seen would matter */
        refuse_input(conn, SGI_RPC_INVALID_REQUEST, "a message has too many members");
        return;
    }
    sgi_message_sort(&message, members, count);
    conn->role->message(conn->self, &message);
}

void sgi_conn_feed(sgi_conn *conn, const char *bytes, size_t len)
{
    sgi_str input = {bytes, len};
    sgi_str line;
    sgi_ndjson_event event;
    if (!conn->up)
        return;
    sgi_conn_ref(conn);
    while ((event = sgi_ndjson_next(&conn->framing, &input, &line)) != SGI_NDJSON_MORE) {
        if (event == SGI_NDJSON_LINE)
            read_message(conn, line);
        else
            refuse_input(conn, SGI_RPC_PARSE_ERROR,
                         event == SGI_NDJSON_TOO_LONG ? "message too large"
                                                      : "out of memory");
        if (!conn->up)
            break;
    }
    sgi_conn_unref(conn);
}

bool sgi_conn_wants_input(const sgi_conn *conn)
{
    bool wants =
        conn->out.len < conn->engine->max_queue && conn->role->wants_input(conn->self);
    ((sgi_conn *)conn)->stalled = !wants;
    return wants;
}

void sgi_conn_resume_input(sgi_conn *conn)
{
    if (conn->stalled && conn->up && sgi_conn_wants_input(conn))
        conn->engine->host.input(conn->engine->host.user, conn);
}

void sgi_conn_lost(sgi_conn *conn, const char *why)
{
    if (!conn->up)
        return;
    sgi_source *source;
    conn->up = false;
    while ((source = TAILQ_FIRST(&conn->sources)))
        sgi_source_remove(conn, source);
    sgi_buf_reset(&conn->out, 0);
    sgi_conn_ref(conn);
    conn->role->lost(conn->self, why);
    sgi_conn_unref(conn);
}

void sgi_conn_detach(sgi_conn *conn)
{
    if (conn->detached)
        return;
    sgi_conn_lost(conn, "closed");
    conn->detached = true;
    conn->transport = NULL;
    conn->role->detached(conn->self);
}

/* ---- output ---- */

static void tell_host(sgi_conn *conn)
{
    if (conn->told || !conn->up)
        return;
    conn->told = true;
    conn->engine->host.output(conn->engine->host.user, conn);
}

static void ask_sources(sgi_conn *conn)
{
    sgi_source *source;
    while (conn->out.len < FILL_BYTES && (source = TAILQ_FIRST(&conn->sources))) {
        sgi_source_remove(conn, source);
        if (source->fill(source, FILL_BYTES - conn->out.len) && conn->up &&
            !source->queued) {
            source->queued = true;
            TAILQ_INSERT_TAIL(&conn->sources, source, link);
        }
    }
}

void sgi_conn_output(sgi_conn *conn, sgi_buf *into)
{
    if (!conn->up)
        return;
    ask_sources(conn);
    sgi_buf filled = conn->out;
    sgi_buf_reset(into, KEEP_ROOM);
    conn->out = *into;
    *into = filled;
    conn->told = false;
    if (!TAILQ_EMPTY(&conn->sources))
        tell_host(conn);
    sgi_conn_resume_input(conn);
}

void sgi_conn_close(sgi_conn *conn)
{
    if (conn->closing || conn->detached)
        return;
    conn->closing = true;
    conn->engine->host.close(conn->engine->host.user, conn);
}

void sgi_source_ready(sgi_conn *conn, sgi_source *source)
{
    if (source->queued || !conn->up)
        return;
    source->queued = true;
    TAILQ_INSERT_TAIL(&conn->sources, source, link);
    tell_host(conn);
}

void sgi_source_remove(sgi_conn *conn, sgi_source *source)
{
    if (!source->queued)
        return;
    source->queued = false;
    TAILQ_REMOVE(&conn->sources, source, link);
}

bool sgi_conn_is_full(const sgi_conn *conn)
{
    return conn->out.len >= conn->engine->max_queue;
}

/* ---- messages ---- */

static void begin(sgi_sending *sending, sgi_conn *conn)
{
    sending->conn = conn;
    sending->mark = conn->out.len;
    sending->w = sgi_jw_on(&conn->out);
    sgi_buf_add_lit(&conn->out, "{\"jsonrpc\":\"2.0\"");
    sending->w.comma = true;
}

void sgi_send_result(sgi_sending *sending, sgi_conn *conn, sgi_str id,
                     const char *result_type)
{
    begin(sending, conn);
    sgi_jw_member_raw(&sending->w, "id", id);
    sgi_jw_key(&sending->w, "result");
    sgi_jw_open(&sending->w, '{');
    if (result_type)
        sgi_jw_member_string(&sending->w, "resultType", sgi_str_of(result_type));
    sending->depth = 2;
}

void sgi_send_notification(sgi_sending *sending, sgi_conn *conn, const char *method)
{
    begin(sending, conn);
    sgi_jw_member_string(&sending->w, "method", sgi_str_of(method));
    sgi_jw_key(&sending->w, "params");
    sgi_jw_open(&sending->w, '{');
    sending->depth = 2;
}

void sgi_send_request(sgi_sending *sending, sgi_conn *conn, int64_t id, sgi_str method)
{
    begin(sending, conn);
    sgi_jw_member_int(&sending->w, "id", id);
    sgi_jw_member_string(&sending->w, "method", method);
    sgi_jw_key(&sending->w, "params");
    sgi_jw_open(&sending->w, '{');
    sending->depth = 2;
}

static bool finish(sgi_conn *conn, size_t mark)
{
    sgi_buf_add_char(&conn->out, '\n');
    if (conn->out.failed || !conn->up) {
        bool failed = conn->out.failed;
        sgi_buf_cut(&conn->out, mark);
        if (failed) {
            sgi_engine_log(conn->engine, SEGUE_LOG_ERROR,
                           "out of memory for a message: the conversation is closed");
            sgi_conn_close(conn);
        }
        return false;
    }
    tell_host(conn);
    return true;
}

bool sgi_send_end(sgi_sending *sending)
{
    for (; sending->depth > 0; sending->depth--)
        sgi_jw_close(&sending->w, '}');
    return finish(sending->conn, sending->mark);
}

void sgi_send_error(sgi_conn *conn, sgi_str id, int32_t code, sgi_str message,
                    sgi_json data)
{
    size_t mark = conn->out.len;
    sgi_rpc_error_message(&conn->out, id, code, message, data);
    finish(conn, mark);
}

void sgi_send_error_object(sgi_conn *conn, sgi_str id, sgi_json error)
{
    sgi_sending sending;
    begin(&sending, conn);
    sgi_jw_member_raw(&sending.w, "id", id);
    sgi_jw_member_raw(&sending.w, "error", error);
    sending.depth = 1;
    sgi_send_end(&sending);
}
