/* A forwarded answer is the JSON object {"session","by","message"}. "session" is the wire
 * session in which the client sent the answer. "by" is the digest of the client's
 * principal. "message" is the answer as received. */
#include "engine/server/mailbox.h"

#include "engine/error.h"
#include "engine/server/call.h"
#include "engine/server/late_answer.h"
#include "engine/server/wire_session.h"

#define BOX_NAME "dev.segue/mailbox"

/* ---- the mailbox ---- */

/* Writes the owner of a mailbox (an operation to which other servers send answers): a
 * digest of 0xff bytes. No principal has this digest, so no client can find the
 * mailbox. */
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

bool sgi_op_is_mailbox(const sgi_op *op)
{
    return is_owner(op->served->who->digest);
}

static void look_at_calls(const segue_server *server)
{
    segue_call *call;
    LIST_FOREACH(call, &server->calls.running, link)
        sgi_call_queue_events(call);
}

/* Sends the waiting questions when the creation of the mailbox is durable or has failed.
 * Other servers put answers for this server into the mailbox; without it, an answer is
 * lost if the client sends the answer to another server. A mailbox has ended when the
 * store may have it but refused to confirm it; another mailbox replaces it. */
static void box_made(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    segue_server *server = sgi_op_server(op);
    (void)waiter;
    if (status != SEGUE_OK)
        server->mailbox.box = NULL;
    else if (sgi_op_has_ended(op))
        sgi_mailbox_replace(op);
    look_at_calls(server);
}

static sgi_op *make_box(segue_server *server)
{
    uint8_t owner[SGI_DIGEST_SIZE];
    sgi_engine *engine = server->engine;
    sgi_op *op = sgi_served_op_new(server, SGI_STR(BOX_NAME), SGI_STR("{}"));
    if (!op)
        return NULL;
    write_owner(owner);
    sgi_principal *who = sgi_principal_find_or_new(&server->principals, engine, owner);
    if (who)
        sgi_budget_set_owner(op, who);
    op->ttl_ms = -1;
    sgi_op_set_hold(op, SGI_HOLD_HERE);
    if (!who || !sgi_operation_id(&engine->env, op->id) ||
        sgi_op_turn_into_stored(op, sgi_str_of(server->mailbox.name)) != SEGUE_OK) {
        sgi_op_unref(op);
        return NULL;
    }
    return op;
}

void sgi_mailbox_create(segue_server *server)
{
    if (server->mailbox.box || !sgi_seal_is_common(&server->seal) ||
        server->stage >= SGI_SERVER_CLOSED)
        return;
    sgi_op *box = make_box(server);
    if (!box)
        /* the mailbox was not created; the next session that begins makes another
         * attempt */
        return;
    server->mailbox.box = box;
    sgi_server_put_in_maps(box);
    server->mailbox.waits.fire = box_made;
    sgi_op_wait_until_visible(box, &server->mailbox.waits, 0);
    sgi_op_unref(box);
}

bool sgi_mailbox_is_being_stored(const segue_server *server)
{
    return server->mailbox.box && !sgi_op_is_created(server->mailbox.box);
}

void sgi_mailbox_delete_claimed(sgi_op *box)
{
    box->deleting = true;
    sgi_committer_mark_dirty(&sgi_op_server(box)->committer, box);
    sgi_server_take_from_maps(box);
}

void sgi_mailbox_delete(segue_server *server)
{
    sgi_op *box = server->mailbox.box;
    if (!box)
        return;
    server->mailbox.box = NULL;
    sgi_op_wait_cancel(&server->mailbox.waits);
    sgi_mailbox_delete_claimed(box);
}

/* Replaces the mailbox, to which other servers send answers, and gives the server a new
 * name. Answers to questions that carry the old name are lost. */
void sgi_mailbox_replace(sgi_op *box)
{
    segue_server *server = sgi_op_server(box);
    bool was_ours = server->mailbox.box == box;
    if (was_ours) {
        server->mailbox.box = NULL;
        sgi_op_wait_cancel(&server->mailbox.waits);
    }
    /* deletes the old mailbox in the store if this server still owns the mailbox */
    sgi_mailbox_delete_claimed(box);
    if (was_ours && sgi_operation_text(&server->engine->env, server->mailbox.name))
        sgi_mailbox_create(server);
}

void sgi_mailbox_renew(segue_server *server)
{
    if (server->mailbox.box)
        sgi_mailbox_replace(server->mailbox.box);
}

/* ---- sending an answer to another server ---- */

typedef struct mail {
    segue_server *server; /* a counted reference */
    /* the POST that brought the answer, a counted reference; NULL = the POST does not
     * wait for what becomes of the answer */
    sgi_conn *conn;
    size_t len; /* number of bytes of this answer that server->late counts */
    sgi_buf answer;
} mail;

static void free_mail(mail *m)
{
    segue_server *server = m->server;
    sgi_late_answer_usage_end(&server->late, m->len);
    sgi_buf_free(&m->answer);
    if (m->conn)
        sgi_conn_unref(m->conn);
    sgi_free(sgi_engine_mem(server->engine), m, sizeof *m);
    sgi_server_unref(server);
}

static void end_forwarding(mail *m, segue_status status)
{
    if (m->conn)
        sgi_answer_end_post(m->conn, status == SEGUE_OK);
    else if (status != SEGUE_OK)
        sgi_engine_log(m->server->engine, SEGUE_LOG_WARNING,
                       "an answer in a batch is dropped, because it cannot be forwarded "
                       "to the server that asked: %s",
                       sgi_status_name(status));
    free_mail(m);
}

static void posted(sgi_store_job *job)
{
    mail *m = job->user;
    segue_status status = job->status;
    sgi_store_job_free(job);
    end_forwarding(m, status);
}

static void box_found(sgi_store_job *job)
{
    mail *m = job->user;
    const sgi_found_record *found = TAILQ_FIRST(&job->found);
    sgi_committer *committer = &m->server->committer;
    segue_status status = job->status;
    sgi_store_job *post = NULL;
    if (status == SEGUE_OK && (!found || !is_owner(found->record.principal)))
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK &&
        !(post = sgi_store_job_new(committer, SGI_STORE_JOB_POST, posted, m)))
        status = SEGUE_E_NOMEM;
    if (post) {
        memcpy(post->id, found->record.id, sizeof post->id);
        post->command = m->answer;
        sgi_buf_init(&m->answer, sgi_engine_mem(m->server->engine));
        sgi_committer_add_job(committer, post);
    }
    sgi_store_job_free(job);
    if (!post)
        end_forwarding(m, status);
}

static void write_letter(sgi_buf *out, const sgi_peer *peer, const sgi_message *msg)
{
    bool is_error = msg->kind == SGI_MESSAGE_ERROR;
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "session", sgi_str_of(peer->questions->session->id));
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

static bool is_for_another(const sgi_peer *peer, const sgi_question_id_parts *parts)
{
    const segue_server *server = peer->server;
    return sgi_seal_is_common(&server->seal) && server->stage < SGI_SERVER_DEAD &&
           !parts->is_lasting && !parts->position && peer->questions->session &&
           !sgi_str_eq(parts->operation, sgi_str_of(server->mailbox.name));
}

bool sgi_mailbox_forward_answer(sgi_peer *peer, const sgi_message *msg, bool awaited)
{
    sgi_question_id_parts parts;
    segue_server *server = peer->server;
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    if (!sgi_question_id_parse(msg->id, &parts) || !is_for_another(peer, &parts))
        return false;
    sgi_buf answer;
    sgi_buf_init(&answer, mem);
    write_letter(&answer, peer, msg);
    bool ok = !answer.failed && sgi_late_answer_usage_has_room(&server->late, answer.len);
    mail *m = ok ? sgi_zalloc(mem, sizeof *m) : NULL;
    sgi_store_job *job =
        m ? sgi_store_job_new(&server->committer, SGI_STORE_JOB_FIND, box_found, m)
          : NULL;
    if (job)
        job->task_id = sgi_text_dup(mem, parts.operation);
    if (!job || !job->task_id) {
        if (job)
            sgi_store_job_free(job);
        sgi_free(mem, m, sizeof *m);
        sgi_buf_free(&answer);
        return false;
    }
    *m = (mail){server, awaited ? peer->conn : NULL, answer.len, answer};
    sgi_server_ref(server);
    if (awaited) {
        sgi_conn_ref(peer->conn);
        /* the POST gets only a status as its answer, never an event stream */
        peer->conn->no_events = true;
    }
    sgi_late_answer_usage_begin(&server->late, answer.len);
    sgi_committer_add_job(&server->committer, job);
    return true;
}

/* ---- receiving an answer from another server ---- */

segue_status sgi_mailbox_take_answer(segue_server *server, sgi_str answer)
{
    sgi_json value;
    sgi_message msg;
    sgi_str session, by;
    sgi_buf who;
    int32_t code;
    const char *problem;
    sgi_engine *engine = server->engine;
    segue_status status = sgi_engine_check_json(engine, answer.p, answer.n, &value, NULL);
    if (status != SEGUE_OK)
        return status;
    sgi_buf_init(&who, sgi_engine_mem(engine));
    bool ok = sgi_json_plain_string(sgi_json_get(value, "session"), &session) &&
              sgi_json_plain_string(sgi_json_get(value, "by"), &by) &&
              sgi_buf_add_unbase64(&who, by) && who.len == SGI_DIGEST_SIZE &&
              sgi_conn_parse(engine, NULL, sgi_json_get(value, "message"), &msg, &code,
                             &problem);
    if (ok && !sgi_question_requests_take_forwarded(server, session,
                                                    (const uint8_t *)who.p, &msg))
        sgi_answer_log_dropped(engine, msg.id);
    status = who.failed ? SEGUE_E_NOMEM : SEGUE_OK;
    sgi_buf_free(&who);
    return status;
}
