/* Inside: a session without a transport and without a handshake, as what there would be
 * to agree on was agreed on by the client's. It is open while the asker is joined to a
 * wire session, else lost, and one request is all it ever has. Its ids are those of its
 * question, with numbers. */
#include "engine/hosting/asker.h"

#include "engine/asking/request.h"
#include "engine/dialect/response_modes.h"
#include "engine/error.h"
#include "engine/serving/server.h"

#define EXCHANGE_MS 60000 /* of one exchange: the client can answer each at once */
#define TRIES_MAX 20
#define KEEP_ROOM ((size_t)64 * 1024)

struct sgi_asker {
    sgi_bearer bearer;
    sgi_op *op; /* counted */
    sgi_input *input;
    segue_session *session; /* counted */
    segue_request *request; /* counted */
    sgi_buf room;
    bool moved; /* its task was made in another wire session */
    void (*told)(sgi_op *op);
    void (*ended)(sgi_op *op, sgi_input *input, sgi_asked_end how, sgi_json json);
};

/* ---- carried ---- */

static void output(sgi_bearer *bearer)
{
    const sgi_asker *asker = SGI_OWNER(bearer, sgi_asker, bearer);
    asker->told(asker->op);
}

static void input(sgi_bearer *bearer)
{
    (void)bearer; /* it is never behind: nobody is given its segments */
}

/* Out of memory for a message: its exchange ends by its time. */
static void ends(sgi_bearer *bearer)
{
    SGI_OWNER(bearer, sgi_asker, bearer)->session->conn->closing = false;
}

/* ---- the end ---- */

/* The client's error, or what is to be said of a failure as if it were one; fails the
 * buffer when out of memory. */
static sgi_json error_of(sgi_buf *out, const segue_request *request)
{
    const segue_error *error = request->error;
    bool is_theirs = error->rpc_code != 0;
    int32_t code = is_theirs ? error->rpc_code : SGI_RPC_INTERNAL_ERROR;
    const char *text = is_theirs ? error->message : sgi_status_text(request->status);
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_int(&w, "code", code);
    sgi_jw_member_string(&w, "message", sgi_str_of(text));
    if (error->data)
        sgi_jw_member_raw(&w, "data", (sgi_str){error->data, error->data_len});
    sgi_jw_close(&w, '}');
    return sgi_buf_str(out);
}

/* Its task, or the request that was to make it, is gone with a client that went. */
static bool is_gone(const sgi_asker *asker)
{
    const segue_request *request = asker->request;
    bool is_lost = request->status == SEGUE_E_TASK_LOST ||
                   (request->status == SEGUE_E_INCOMPLETE && !request->error->rpc_code);
    return request->status == SEGUE_E_DISCONNECTED || (asker->moved && is_lost);
}

static void ended(segue_request *request)
{
    sgi_asker *asker = request->owner;
    sgi_buf error;
    sgi_buf_init(&error, sgi_engine_mem(request->engine));
    if (request->status == SEGUE_OK)
        asker->ended(asker->op, asker->input, SGI_ASKED_ANSWER,
                     sgi_buf_str(&request->result));
    else if (is_gone(asker))
        asker->ended(asker->op, asker->input, SGI_ASKED_AGAIN, (sgi_json){0});
    else
        asker->ended(asker->op, asker->input, SGI_ASKED_ERROR, error_of(&error, request));
    sgi_buf_free(&error);
}

/* ---- life ---- */

static segue_session *make_session(const sgi_op *op)
{
    segue_session_options options = {.struct_size = sizeof options,
                                     .name = "",
                                     .version = "",
                                     .request_timeout_ms = EXCHANGE_MS,
                                     .max_reconnects = TRIES_MAX,
                                     .max_result_bytes =
                                         (int64_t)op->limits.max_result_bytes,
                                     .max_requests = 1,
                                     .no_idempotency = 1,
                                     .no_tasks = 1};
    segue_session *session = NULL;
    sgi_session_new(op->engine, NULL, &options, (sgi_json){0}, NULL, &session);
    return session;
}

static segue_request *make_request(segue_session *session, const sgi_input *input,
                                   sgi_json params)
{
    segue_request_options options = {.struct_size = sizeof options};
    sgi_request_spec spec = {
        .method = sgi_str_of(input->method), .params = params, .options = &options};
    segue_request *request = NULL;
    sgi_request_new(session, &spec, &request);
    return request;
}

static void end_session(segue_session *session)
{
    sgi_session_close(session);
    sgi_conn_detach(session->conn);
    sgi_session_unref(session);
}

sgi_asker *sgi_asker_new(sgi_op *op, sgi_input *question, sgi_json params,
                         void (*told)(sgi_op *op),
                         void (*on_end)(sgi_op *op, sgi_input *input, sgi_asked_end how,
                                        sgi_json json))
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_asker *asker = sgi_zalloc(mem, sizeof *asker);
    segue_session *session = asker ? make_session(op) : NULL;
    segue_request *request = session ? make_request(session, question, params) : NULL;
    if (!request) {
        if (session)
            end_session(session);
        sgi_release(mem, asker, sizeof *asker);
        return NULL;
    }
    *asker = (sgi_asker){.bearer = {NULL, output, input, ends},
                         .op = op,
                         .input = question,
                         .session = session,
                         .request = request,
                         .told = told,
                         .ended = on_end};
    sgi_buf_init(&asker->room, mem);
    sgi_op_ref(op);
    session->agreed = true;
    session->version = SGI_VERSION_2025_11_25;
    sgi_conn_carry(session->conn, &asker->bearer);
    request->ended = ended;
    request->owner = asker;
    return asker;
}

void sgi_asker_free(sgi_asker *asker)
{
    sgi_op *op = asker->op;
    asker->request->ended = NULL;
    end_session(asker->session);
    sgi_request_unref(asker->request);
    sgi_buf_free(&asker->room);
    sgi_release(sgi_engine_mem(op->engine), asker, sizeof *asker);
    sgi_op_unref(op);
}

/* ---- its client ---- */

void sgi_asker_join(sgi_asker *asker, const sgi_question_id *question, uint8_t modes)
{
    asker->session->question = *question;
    asker->session->peer_modes = modes;
    sgi_conn_start(asker->session->conn);
}

void sgi_asker_cut(sgi_asker *asker)
{
    asker->moved |= asker->request->phase == SGI_PHASE_FOLLOW;
    sgi_conn_lost(asker->session->conn, "the client is gone");
}

bool sgi_asker_is_over(const sgi_asker *asker)
{
    return asker->request->phase == SGI_PHASE_DONE;
}

bool sgi_asker_has_words(const sgi_asker *asker)
{
    return asker->session->conn->out.len > 0;
}

void sgi_asker_say(sgi_asker *asker, sgi_conn *conn)
{
    size_t at = 0;
    sgi_buf_reset(&asker->room, KEEP_ROOM);
    sgi_conn_output(asker->session->conn, &asker->room);
    while (at < asker->room.len) {
        const char *from = asker->room.p + at;
        const char *end = memchr(from, '\n', asker->room.len - at);
        sgi_send_text(conn, (sgi_str){from, (size_t)(end - from)});
        at = (size_t)(end - asker->room.p) + 1;
    }
}

bool sgi_asker_waits(const sgi_asker *asker, sgi_json id)
{
    return sgi_emitter_find(asker->session, id) != NULL;
}

void sgi_asker_hear(sgi_asker *asker, const sgi_message *msg)
{
    segue_session *session = asker->session;
    sgi_conn *conn = session->conn;
    sgi_session_ref(session);
    if (conn->up)
        conn->role->message(session, msg);
    sgi_session_unref(session);
}

int64_t sgi_asker_number(const sgi_asker *asker)
{
    const sgi_emitter *emitter = asker->request->calling;
    return emitter && asker->request->phase == SGI_PHASE_WAIT ? emitter->id : 0;
}

void sgi_asker_cancel_task(sgi_asker *asker)
{
    if (asker->request->phase == SGI_PHASE_FOLLOW &&
        !sgi_task_state_is_terminal(asker->request->state))
        sgi_follow_abandon(asker->request);
}
