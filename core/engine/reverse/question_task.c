/* A question task contains a session without a transport and without a handshake, because
 * the client's own session has already negotiated everything. This inner session counts
 * as connected while the question task is connected to a wire session; at other times its
 * connection counts as lost. The inner session has only one request. The ids of its
 * messages are the id of the question, "/" and a number. */
#include "engine/reverse/reverse.h"

#include "engine/client/request.h"
#include "engine/dialect/following/follow.h"
#include "engine/response_modes.h"
#include "engine/error.h"
#include "engine/server/server.h"

/* The time limit of one exchange, in ms. A short limit suffices, because the client can
 * answer each of these exchanges at once. */
#define EXCHANGE_MS 60000
#define TRIES_MAX 20
#define KEEP_ROOM ((size_t)64 * 1024)

typedef struct question_task {
    sgi_question_task base; /* must be the first member */
    sgi_outer_conn outer_conn;
    sgi_op *op; /* a counted reference */
    sgi_op_question *input;
    segue_session *session; /* a counted reference */
    segue_request *request; /* a counted reference */
    sgi_buf room;
    bool moved; /* the client made the task in an earlier wire session */
    const sgi_question_task_events *events;
} question_task;

static question_task *of(const sgi_question_task *base)
{
    return SGI_OWNER(base, question_task, base);
}

/* ---- functions for the conversation that carries the session ---- */

static void output(sgi_outer_conn *outer_conn)
{
    const question_task *a = SGI_OWNER(outer_conn, question_task, outer_conn);
    a->events->has_output(a->op);
}

static void input(sgi_outer_conn *outer_conn)
{
    /* nothing to do: no application reads the segments of a question task, so its session
     * never stops reading */
    (void)outer_conn;
}

/* Called when there was no memory to write a message. The session stays open; the
 * exchange of the message ends by its time limit. */
static void ends(sgi_outer_conn *outer_conn)
{
    SGI_OWNER(outer_conn, question_task, outer_conn)->session->conn->closing = false;
}

/* ---- the end of the question ---- */

/* Writes the error that the client sent. If the client sent no error, writes an error
 * with the reason of the failure. When out of memory, out->failed is true. */
static sgi_json error_of(sgi_buf *out, const segue_request *request)
{
    const segue_error *error = request->error;
    bool is_theirs = error->view.rpc_code != 0;
    int32_t code = is_theirs ? error->view.rpc_code : SGI_RPC_INTERNAL_ERROR;
    const char *text = is_theirs ? error->view.message : sgi_status_text(request->status);
    sgi_jw w = sgi_jw_to(out);
    sgi_json data = {error->view.data, error->view.data_len};
    sgi_write_error_object(&w, code, sgi_str_of(text), data);
    return sgi_buf_str(out);
}

/* True when the client that had the task, or that received the request for the task, has
 * gone. */
static bool is_gone(const question_task *a)
{
    const segue_request *request = a->request;
    bool is_lost = request->status == SEGUE_E_TASK_LOST;
    return request->status == SEGUE_E_DISCONNECTED || (a->moved && is_lost);
}

static void ended(segue_request *request)
{
    const question_task *a = request->maker.owner;
    sgi_question_task_end how = SGI_QUESTION_TASK_ERROR;
    sgi_json json = {0};
    sgi_buf error;
    sgi_buf_init(&error, sgi_engine_mem(request->engine));
    if (request->status == SEGUE_OK)
        how = SGI_QUESTION_TASK_ANSWER;
    else if (is_gone(a))
        how = SGI_QUESTION_TASK_AGAIN;
    if (how == SGI_QUESTION_TASK_ANSWER)
        json = sgi_buf_str(&request->result);
    else if (how == SGI_QUESTION_TASK_ERROR)
        json = error_of(&error, request);
    a->events->ended(a->op, a->input, how, json);
    sgi_buf_free(&error);
}

/* ---- making and freeing ---- */

static segue_session *make_session(const sgi_op *op)
{
    segue_session_options options = {.struct_size = sizeof options,
                                     .name = "",
                                     .version = "",
                                     .request_timeout_ms = EXCHANGE_MS,
                                     .max_reconnects = TRIES_MAX,
                                     .max_result_bytes =
                                         (int64_t)op->committer->limits.max_result_bytes,
                                     .max_requests = 1,
                                     .no_idempotency = 1,
                                     .no_tasks = 1};
    segue_session *session = NULL;
    sgi_session_new(op->engine, NULL, &options, (sgi_json){0}, NULL, &session);
    return session;
}

static segue_request *make_request(segue_session *session, const sgi_op_question *input,
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

static sgi_question_task *asker_make(sgi_op *op, sgi_op_question *question,
                                     sgi_json params,
                                     const sgi_question_task_events *events)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    question_task *a = sgi_zalloc(mem, sizeof *a);
    segue_session *session = a ? make_session(op) : NULL;
    segue_request *request = session ? make_request(session, question, params) : NULL;
    if (!request) {
        if (session)
            end_session(session);
        sgi_free(mem, a, sizeof *a);
        return NULL;
    }
    *a = (question_task){.base = {&sgi_reverse_question_tasks},
                         .outer_conn = {NULL, output, input, ends},
                         .op = op,
                         .input = question,
                         .session = session,
                         .request = request,
                         .events = events};
    sgi_buf_init(&a->room, mem);
    sgi_op_ref(op);
    session->handshake.agreed = true;
    session->version = SGI_VERSION_HANDSHAKE;
    sgi_conn_set_outer(session->conn, &a->outer_conn);
    request->maker.ended = ended;
    request->maker.owner = a;
    return &a->base;
}

static void asker_free(sgi_question_task *base)
{
    question_task *a = of(base);
    sgi_op *op = a->op;
    a->request->maker.ended = NULL;
    end_session(a->session);
    sgi_request_unref(a->request);
    sgi_buf_free(&a->room);
    sgi_free(sgi_engine_mem(op->engine), a, sizeof *a);
    sgi_op_unref(op);
}

/* ---- the question task's client ---- */

static void asker_join(sgi_question_task *base, const sgi_question_id_text *question,
                       uint8_t modes)
{
    segue_session *session = of(base)->session;
    session->question = *question;
    session->server.modes = modes;
    sgi_conn_start(session->conn);
}

static void asker_cut(sgi_question_task *base)
{
    question_task *a = of(base);
    a->moved |= a->request->phase == SGI_PHASE_FOLLOW;
    sgi_conn_on_lost(a->session->conn, "the client is gone");
}

static bool asker_is_over(const sgi_question_task *base)
{
    return sgi_request_is_over(of(base)->request);
}

static bool has_output(const sgi_question_task *base)
{
    return of(base)->session->conn->out.len > 0;
}

static void move_output(sgi_question_task *base, sgi_conn *conn)
{
    question_task *a = of(base);
    size_t at = 0;
    sgi_buf_reset(&a->room, KEEP_ROOM);
    sgi_conn_take_output(a->session->conn, &a->room);
    while (at < a->room.len) {
        const char *from = a->room.p + at;
        const char *end = memchr(from, '\n', a->room.len - at);
        sgi_send_message_text(conn, (sgi_str){from, (size_t)(end - from)});
        at = (size_t)(end - a->room.p) + 1;
    }
}

static bool asker_waits(const sgi_question_task *base, sgi_json id)
{
    return sgi_emitter_find(of(base)->session, id) != NULL;
}

static void take_message(sgi_question_task *base, const sgi_message *msg)
{
    segue_session *session = of(base)->session;
    sgi_conn *conn = session->conn;
    sgi_session_ref(session);
    if (conn->up)
        conn->role->message(session, msg);
    sgi_session_unref(session);
}

static int64_t asker_number(const sgi_question_task *base)
{
    const segue_request *request = of(base)->request;
    const sgi_emitter *emitter = request->calling;
    return emitter && request->phase == SGI_PHASE_WAIT ? emitter->id : 0;
}

static void asker_cancel_task(sgi_question_task *base)
{
    segue_request *request = of(base)->request;
    if (request->phase == SGI_PHASE_FOLLOW &&
        !sgi_task_state_is_terminal(sgi_follow_state(request)))
        sgi_follow_cancel_abandoned_task(request);
}

const sgi_question_task_ops sgi_reverse_question_tasks = {.make = asker_make,
                                                          .free = asker_free,
                                                          .join = asker_join,
                                                          .cut = asker_cut,
                                                          .is_over = asker_is_over,
                                                          .has_output = has_output,
                                                          .move_output = move_output,
                                                          .waits = asker_waits,
                                                          .take_message = take_message,
                                                          .number = asker_number,
                                                          .cancel_task =
                                                              asker_cancel_task};
