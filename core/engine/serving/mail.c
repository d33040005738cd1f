/* A letter is {"session","by","message"}: the session that was answered in, the digest of
 * its principal, and the answer as it came. */
#include "engine/serving/mail.h"

#include "engine/error.h"
#include "engine/serving/call.h"
#include "engine/serving/late_answer.h"
#include "engine/serving/wire_session.h"

#define BOX_NAME "dev.segue/mailbox"

static const char not_taken[] = "The server that asked cannot be reached through the "
                                "store: send the answer again";

/* ---- the mailbox ---- */

/* A mailbox is owned by a digest that no principal has (all 0xff), so no client can look
 * it up. */
static void write_owner(uint8_t digest[SGI_DIGEST_SIZE])
{
    memset(digest, 0xff, SGI_DIGEST_SIZE);
}

static bool is_owner(const uint8_t digest[SGI_DIGEST_SIZE])
{
    uint8_t owner[SGI_DIGEST_SIZE];
    write_owner(owner);
    return !memcmp(digest, owner, sizeof owner);
}

bool sgi_mail_is_box(const sgi_op *op)
{
    return is_owner(op->who->digest);
}

static void look_at_calls(const segue_server *server)
{
    segue_call *call;
    LIST_FOREACH(call, &server->calls, link)
        sgi_call_look(call);
}

/* Without one, answers come by the way of their clients only. */
static void box_made(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    segue_server *server = op->server;
    (void)waiter;
    if (status != SEGUE_OK)
        server->mailbox = NULL;
    look_at_calls(server);
}

static sgi_op *make_box(segue_server *server)
{
    uint8_t owner[SGI_DIGEST_SIZE];
    sgi_engine *engine = server->engine;
    sgi_op *op = sgi_op_new(server, SGI_STR(BOX_NAME), SGI_STR("{}"));
    if (!op)
        return NULL;
    write_owner(owner);
    sgi_principal *who = sgi_principal_get(&server->principals, engine, owner);
    if (who)
        sgi_budget_own(op, who);
    op->task_id = sgi_text_dup(sgi_engine_mem(engine), sgi_str_of(server->name));
    op->ttl_ms = -1;
    op->hold = SGI_HOLD_HERE;
    if (!who || !op->task_id || !sgi_random(&engine->env, op->id, sizeof op->id) ||
        sgi_op_log(op) != SEGUE_OK) {
        sgi_op_unref(op);
        return NULL;
    }
    return op;
}

void sgi_mail_open(segue_server *server)
{
    if (server->mailbox || !server->seal.shared || server->stage >= SGI_SERVER_CLOSED)
        return;
    sgi_op *box = make_box(server);
    if (!box)
        return; /* the next session tries again */
    server->mailbox = box;
    sgi_server_op_known(box);
    server->mail_waits.fire = box_made;
    sgi_op_wait(box, &server->mail_waits, 0);
    sgi_op_unref(box);
}

bool sgi_mail_is_opening(const segue_server *server)
{
    return server->mailbox && !server->mailbox->created;
}

void sgi_mail_drop(sgi_op *box)
{
    box->deleting = true;
    sgi_keeper_dirty(&box->server->keeper, box);
    sgi_server_op_forget(box);
}

void sgi_mail_close(segue_server *server)
{
    sgi_op *box = server->mailbox;
    if (!box)
        return;
    server->mailbox = NULL;
    sgi_op_wait_end(&server->mail_waits);
    sgi_mail_drop(box);
}

/* The server takes a new name, because questions sent under the old name can no longer
 * be answered. */
void sgi_mail_lost(sgi_op *box)
{
    segue_server *server = box->server;
    bool was_ours = server->mailbox == box;
    if (was_ours) {
        server->mailbox = NULL;
        sgi_op_wait_end(&server->mail_waits);
    }
    sgi_mail_drop(box); /* if it is still ours */
    if (was_ours && sgi_engine_random_text(server->engine, server->name))
        sgi_mail_open(server);
}

/* ---- sending ---- */

typedef struct mail {
    segue_server *server; /* counted */
    sgi_conn *conn;       /* counted: it brought the answer */
    size_t len;           /* as it was counted */
    sgi_buf letter;
} mail;

static void free_mail(mail *m)
{
    segue_server *server = m->server;
    server->late_answers--;
    server->late_bytes -= m->len;
    sgi_buf_free(&m->letter);
    sgi_conn_unref(m->conn);
    sgi_release(sgi_engine_mem(server->engine), m, sizeof *m);
    sgi_server_unref(server);
}

static void end_mail(mail *m, segue_status status)
{
    sgi_conn *conn = m->conn;
    if (conn->up && !conn->closing && status == SEGUE_OK) {
        sgi_send_nothing(conn);
    } else if (conn->up && !conn->closing) {
        sgi_send_error(conn, (sgi_str){0}, SGI_RPC_INVALID_REQUEST, sgi_str_of(not_taken),
                       (sgi_json){0});
        conn->http_status = 503;
    }
    free_mail(m);
}

static void posted(sgi_job *job)
{
    mail *m = job->user;
    segue_status status = job->status;
    sgi_job_free(job);
    end_mail(m, status);
}

static void box_found(sgi_job *job)
{
    mail *m = job->user;
    const sgi_found *found = TAILQ_FIRST(&job->found);
    sgi_keeper *keeper = &m->server->keeper;
    segue_status status = job->status;
    sgi_job *post = NULL;
    if (status == SEGUE_OK && (!found || !is_owner(found->record.principal)))
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK && !(post = sgi_job_new(keeper, SGI_JOB_POST, posted, m)))
        status = SEGUE_E_NOMEM;
    if (post) {
        memcpy(post->id, found->record.id, sizeof post->id);
        post->letter = m->letter;
        sgi_buf_init(&m->letter, sgi_engine_mem(m->server->engine));
        sgi_keeper_ask(keeper, post);
    }
    sgi_job_free(job);
    if (!post)
        end_mail(m, status);
}

static void write_letter(sgi_buf *out, const sgi_peer *peer, const sgi_message *msg)
{
    bool is_error = msg->kind == SGI_MESSAGE_ERROR;
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "session", sgi_str_of(peer->asks->session->id));
    sgi_jw_key(&w, "by");
    sgi_buf_add_char(out, '"');
    sgi_buf_add_base64(out, peer->who->digest, SGI_DIGEST_SIZE, true);
    sgi_buf_add_char(out, '"');
    w.comma = true;
    sgi_jw_key(&w, "message");
    sgi_jw_open(&w, '{');
    sgi_jw_member_raw(&w, "jsonrpc", SGI_STR("\"2.0\""));
    sgi_jw_member_raw(&w, "id", msg->id);
    sgi_jw_member_raw(&w, is_error ? "error" : "result",
                      is_error ? msg->error : msg->result);
    sgi_jw_close(&w, '}');
    sgi_jw_close(&w, '}');
}

static bool is_for_another(const sgi_peer *peer, const sgi_question_parts *parts)
{
    const segue_server *server = peer->server;
    return server->seal.shared && server->stage < SGI_SERVER_DEAD && !parts->is_lasting &&
           !parts->position && peer->asks->session &&
           !sgi_str_eq(parts->operation, sgi_str_of(server->name));
}

bool sgi_mail_send(sgi_peer *peer, const sgi_message *msg)
{
    sgi_question_parts parts;
    segue_server *server = peer->server;
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    if (!sgi_question_id_read(msg->id, &parts) || !is_for_another(peer, &parts))
        return false;
    sgi_buf letter;
    sgi_buf_init(&letter, mem);
    write_letter(&letter, peer, msg);
    bool ok = !letter.failed && sgi_late_has_room(server, letter.len);
    mail *m = ok ? sgi_zalloc(mem, sizeof *m) : NULL;
    sgi_job *job = m ? sgi_job_new(&server->keeper, SGI_JOB_FIND, box_found, m) : NULL;
    if (job)
        job->task_id = sgi_text_dup(mem, parts.operation);
    if (!job || !job->task_id) {
        if (job)
            sgi_job_free(job);
        sgi_release(mem, m, sizeof *m);
        sgi_buf_free(&letter);
        return false;
    }
    *m = (mail){server, peer->conn, letter.len, letter};
    sgi_server_ref(server);
    sgi_conn_ref(peer->conn);
    peer->conn->no_events = true; /* its answer is a status */
    server->late_answers++;
    server->late_bytes += letter.len;
    sgi_keeper_ask(&server->keeper, job);
    return true;
}

/* ---- reading ---- */

segue_status sgi_mail_read(segue_server *server, sgi_str letter)
{
    sgi_json value;
    sgi_message msg;
    sgi_str session, by;
    sgi_buf who;
    int32_t code;
    const char *problem;
    sgi_engine *engine = server->engine;
    segue_status status = sgi_engine_json(engine, letter.p, letter.n, &value, NULL);
    if (status != SEGUE_OK)
        return status;
    sgi_buf_init(&who, sgi_engine_mem(engine));
    bool ok =
        sgi_json_plain_string(sgi_json_get(value, "session"), &session) &&
        sgi_json_plain_string(sgi_json_get(value, "by"), &by) &&
        sgi_buf_add_unbase64(&who, by) && who.len == SGI_DIGEST_SIZE &&
        sgi_conn_parse(engine, sgi_json_get(value, "message"), &msg, &code, &problem);
    if (ok && !sgi_asks_brought(server, session, (const uint8_t *)who.p, &msg))
        sgi_answer_dropped(engine, msg.id);
    status = who.failed ? SEGUE_E_NOMEM : SEGUE_OK;
    sgi_buf_free(&who);
    return status;
}
