#include "engine/conversation/conn.h"

#include "base/thresholds.h"
#include "base/limit.h"
#include "engine/conversation/batch.h"
#include "engine/conversation/replay.h"

#define FILL_BYTES SGI_THRESHOLD(fill_bytes)
#define KEEP_ROOM (512 * 1024)
/* number of bytes that the output buffer keeps while the conversation is lost and can
 * start again */
#define SPARE_ROOM 1024

sgi_conn *sgi_conn_new(sgi_engine *engine, const sgi_conn_role *role, void *self,
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
    if (conn->role->freed)
        conn->role->freed(conn->self);
    sgi_batches_free(conn);
    sgi_ndjson_free(&conn->framing);
    sgi_buf_free(&conn->out);
    sgi_text_free(sgi_engine_mem(conn->engine), conn->lacks);
    if (conn->replay) {
        sgi_replay_free(conn->replay);
        sgi_free(sgi_engine_mem(conn->engine), conn->replay, sizeof *conn->replay);
    }
    sgi_free(sgi_engine_mem(conn->engine), conn, sizeof *conn);
}

void *sgi_conn_transport(const sgi_conn *conn)
{
    return conn->transport;
}

bool sgi_conn_is_closing(const sgi_conn *conn)
{
    return conn->closing;
}

/* ---- input ---- */

static void empty_output(sgi_conn *conn, size_t room)
{
    sgi_buf_reset(&conn->out, room);
    conn->caused_bytes = 0;
}

void sgi_conn_start(sgi_conn *conn)
{
    if (conn->detached)
        return;
    sgi_ndjson_reset(&conn->framing);
    empty_output(conn, KEEP_ROOM);
    conn->output_notified = false;
    conn->closing = conn->answered = conn->stateless = conn->parting = false;
    conn->http_status = 0;
    sgi_text_free(sgi_engine_mem(conn->engine), conn->lacks);
    conn->lacks = NULL;
    conn->up = true;
    conn->role->start(conn->self);
}

/* Parses a text as a message. Returns NULL on success, otherwise the reason why the text
 * is not a message. The caller logs and counts the problem. */
static const char *read_message(sgi_engine *engine, const void *whose, sgi_str text,
                                sgi_message *message, sgi_json_error *fault)
{
    sgi_json_member members[SGI_MESSAGE_MEMBERS];
    size_t count = 0;
    *fault = (sgi_json_error){SGI_JSON_OK, 0};
    if (!sgi_message_read(message, &engine->reader, text, members, &count, fault,
                          sgi_engine_shapes_of(engine, whose)))
        return sgi_json_fault_text(fault->fault);
    if (sgi_json_kind_of(sgi_json_trim(text)) == SGI_JSON_ARRAY)
        return "JSON-RPC batches are not supported here: send one message at a time";
    if (sgi_json_kind_of(sgi_json_trim(text)) != SGI_JSON_OBJECT)
        return "a message is not an object";
    if (count > SGI_MESSAGE_MEMBERS)
        return "a message has more than " SGI_TEXT_OF(SGI_MESSAGE_MEMBERS) " members";
    sgi_message_classify(message, members, count);
    return NULL;
}

bool sgi_conn_parse(sgi_engine *engine, const void *whose, sgi_str text,
                    sgi_message *message, int32_t *code, const char **problem)
{
    sgi_json_error fault;
    *problem = read_message(engine, whose, text, message, &fault);
    if (!*problem)
        return true;
    *code = SGI_RPC_INVALID_REQUEST;
    if (fault.fault != SGI_JSON_OK) {
        sgi_engine_log(engine, SEGUE_LOG_WARNING,
                       "input of the peer was dropped: %s at byte %zu", *problem,
                       fault.at);
        *code =
            fault.fault == SGI_JSON_NOMEM ? SGI_RPC_INTERNAL_ERROR : SGI_RPC_PARSE_ERROR;
    }
    engine->warnings++;
    return false;
}

/* ---- batches ---- */

bool sgi_conn_is_batch(sgi_engine *engine, sgi_str text)
{
    return sgi_json_kind_of(sgi_json_trim(text)) == SGI_JSON_ARRAY &&
           sgi_json_read(&engine->reader, text, NULL, 0, NULL, NULL);
}

bool sgi_conn_parse_batch_item(sgi_engine *engine, sgi_json item, sgi_message *message)
{
    sgi_json_error fault;
    return !read_message(engine, NULL, item, message, &fault);
}

/* Handles one message that is not a batch. */
static void take_message(sgi_conn *conn, sgi_str text)
{
    sgi_message message;
    int32_t code;
    const char *problem;
    if (sgi_conn_parse(conn->engine, conn, text, &message, &code, &problem))
        conn->role->message(conn->self, &message);
    else
        conn->role->bad_input(conn->self, code, problem);
}

void sgi_conn_handle_batch(sgi_conn *conn, sgi_str batch)
{
    sgi_json items = sgi_json_trim(batch), item;
    size_t at = 0;
    while (conn->up && sgi_json_next_item(items, &at, &item))
        take_message(conn, item);
}

/* Counts input that is not a message, and reports the input to the role. */
static void refuse_input(sgi_conn *conn, int32_t rpc_code, const char *problem)
{
    conn->engine->warnings++;
    conn->role->bad_input(conn->self, rpc_code, problem);
}

/* Refuses a message that is too long. beginning: the part of the message that was read.
 * If that part contains the id, the role gets an invalid message with this id, so that
 * the role can send an error to the right request. */
static void refuse_long(sgi_conn *conn, sgi_str beginning)
{
    sgi_message message;
    sgi_limit limit = {SGI_LIMIT_MAX_MESSAGE_BYTES, (int64_t)conn->engine->max_message};
    sgi_limit_text told = sgi_engine_describe_limit(
        conn->engine, "The message is too large", limit, "limit", NULL);
    sgi_message_read_truncated(&message, &conn->engine->reader, beginning, told.text);
    if (message.id.n) {
        conn->role->message(conn->self, &message);
        return;
    }
    sgi_engine_log(conn->engine, SEGUE_LOG_WARNING,
                   "%s. The beginning of the message has no request id, so it is "
                   "unknown which request failed",
                   told.text);
    refuse_input(conn, SGI_RPC_PARSE_ERROR, told.text);
}

void sgi_conn_add_message(sgi_conn *conn, sgi_str text)
{
    if (!conn->up)
        return;
    sgi_conn_ref(conn);
    if (!conn->role->batch || !conn->role->batch(conn->self, text))
        take_message(conn, text);
    sgi_conn_unref(conn);
}

void sgi_conn_add_input(sgi_conn *conn, const char *bytes, size_t len)
{
    sgi_str input = {bytes, len};
    sgi_str line;
    sgi_ndjson_event event;
    if (!conn->up)
        return;
    sgi_conn_ref(conn);
    while ((event = sgi_ndjson_next(&conn->framing, &input, &line)) != SGI_NDJSON_MORE) {
        if (event == SGI_NDJSON_LINE)
            sgi_conn_add_message(conn, line);
        else if (event == SGI_NDJSON_TOO_LONG)
            refuse_long(conn, line);
        else
            refuse_input(conn, SGI_RPC_PARSE_ERROR, "out of memory");
        if (!conn->up)
            break;
    }
    sgi_conn_unref(conn);
}

bool sgi_conn_wants_input(sgi_conn *conn)
{
    bool wants = conn->caused_bytes < conn->engine->max_queue &&
                 conn->role->wants_input(conn->self);
    conn->stalled = !wants;
    return wants;
}

void sgi_conn_count_output(sgi_conn *conn)
{
    conn->caused_bytes = conn->out.len;
}

void sgi_conn_drop_output(sgi_conn *conn)
{
    empty_output(conn, SPARE_ROOM);
}

void sgi_conn_resume_input(sgi_conn *conn)
{
    if (!conn->stalled || !conn->up || !sgi_conn_wants_input(conn))
        return;
    if (conn->outer_conn)
        conn->outer_conn->input(conn->outer_conn);
    else
        conn->engine->host.input(conn->engine->host.user, conn);
}

void sgi_conn_on_lost(sgi_conn *conn, const char *why)
{
    if (!conn->up)
        return;
    sgi_output_source *source;
    conn->up = false;
    while ((source = TAILQ_FIRST(&conn->sources)))
        sgi_output_source_remove(conn, source);
    empty_output(conn, SPARE_ROOM);
    sgi_batches_free(conn);
    sgi_conn_ref(conn);
    conn->role->lost(conn->self, why);
    sgi_conn_unref(conn);
}

void sgi_conn_detach(sgi_conn *conn)
{
    if (conn->detached)
        return;
    sgi_conn_on_lost(conn, "closed");
    conn->detached = true;
    conn->transport = NULL;
    conn->outer_conn = NULL;
    conn->role->detached(conn->self);
}

void sgi_conn_set_outer(sgi_conn *conn, sgi_outer_conn *outer_conn)
{
    conn->outer_conn = outer_conn;
}

void sgi_conn_set_uses_stdio(sgi_conn *conn)
{
    conn->sole = true;
}

void sgi_conn_use_http_exchanges(sgi_conn *conn, uint64_t endpoint, const char *name)
{
    conn->exchanging = true;
    conn->endpoint_name = name;
    conn->endpoint = endpoint;
}

void sgi_conn_on_credentials_changed(sgi_conn *conn)
{
    conn->credentials++;
}

/* ---- output ---- */

void sgi_conn_notify_output(sgi_conn *conn)
{
    if (conn->output_notified || !conn->up)
        return;
    conn->output_notified = true;
    if (conn->outer_conn)
        conn->outer_conn->output(conn->outer_conn);
    else
        conn->engine->host.output(conn->engine->host.user, conn);
}

static void ask_sources(sgi_conn *conn)
{
    sgi_output_source *source;
    while (conn->out.len < FILL_BYTES && (source = TAILQ_FIRST(&conn->sources))) {
        sgi_output_source_remove(conn, source);
        if (source->fill(source, FILL_BYTES - conn->out.len) && conn->up &&
            !source->queued) {
            source->queued = true;
            TAILQ_INSERT_TAIL(&conn->sources, source, link);
        }
    }
}

void sgi_conn_take_output(sgi_conn *conn, sgi_buf *into)
{
    if (!conn->up)
        return;
    ask_sources(conn);
    bool counts = conn->role->passed && conn->role->passed(conn->self);
    sgi_buf filled = conn->out;
    sgi_buf_reset(into, KEEP_ROOM);
    conn->out = *into;
    *into = filled;
    conn->caused_bytes = 0;
    conn->output_notified = false;
    if (!TAILQ_EMPTY(&conn->sources) || counts)
        sgi_conn_notify_output(conn);
    sgi_conn_resume_input(conn);
}

void sgi_conn_close(sgi_conn *conn)
{
    if (conn->closing || conn->detached)
        return;
    conn->closing = true;
    if (conn->outer_conn)
        conn->outer_conn->close(conn->outer_conn);
    else
        conn->engine->host.close(conn->engine->host.user, conn);
}

void sgi_output_source_queue(sgi_conn *conn, sgi_output_source *source)
{
    if (source->queued || !conn->up)
        return;
    source->queued = true;
    TAILQ_INSERT_TAIL(&conn->sources, source, link);
    sgi_conn_notify_output(conn);
}

void sgi_output_source_remove(sgi_conn *conn, sgi_output_source *source)
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
