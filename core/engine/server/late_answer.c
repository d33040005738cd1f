#include "engine/server/late_answer.h"
#include "base/rare.h"
#include "engine/cluster/forwarding.h"
#include "engine/log/op.h"
#include "engine/server/server.h"

#define TOLD_MAX 96 /* maximum number of bytes of an id in a log message */

static const char not_taken[] =
    "The server cannot pass the answer on to its question now: send the answer again";

typedef struct sgi_late_answer {
    LIST_ENTRY(sgi_late_answer) link; /* in server->late.waiting while `op` is set */
    segue_server *server;             /* a counted reference */
    /* the POST that brought the answer, a counted reference; NULL = nobody waits to hear
     * what became of the answer */
    sgi_conn *post;
    /* where to write what became of the answer, while sgi_take_late_answer runs; NULL =
     * that function has returned */
    sgi_answered *now;
    /* the operation while its store has not confirmed the answer, a counted reference */
    sgi_op *op;
    sgi_waiter stored;
    uint64_t position;
    bool is_error;
    char *answer;
    size_t len;
    char id[TOLD_MAX + 1]; /* the beginning of the answer's id, for log messages */
} late;

void sgi_answer_log_dropped(sgi_engine *engine, sgi_json id)
{
    int n = (int)(id.n < TOLD_MAX ? id.n : TOLD_MAX);
    engine->warnings++;
    sgi_engine_log(engine, SEGUE_LOG_WARNING,
                   "the client sent an answer with the id %.*s, but no question with "
                   "this id is open: the answer is dropped",
                   n, n ? id.p : "");
}

void sgi_answer_end_post(sgi_conn *post, bool taken)
{
    if (!post->up || post->closing)
        return;
    if (taken) {
        sgi_send_end_without_answer(post);
        return;
    }
    sgi_send_error(post, (sgi_str){0}, SGI_RPC_INVALID_REQUEST, sgi_str_of(not_taken),
                   (sgi_json){0});
    post->http_status = 503;
}

static void end_late(late *l, sgi_answered how)
{
    segue_server *server = l->server;
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    if (l->now)
        *l->now = how;
    else if (l->post)
        sgi_answer_end_post(l->post, how != SGI_ANSWERED_LATER);
    if (!l->now && how != SGI_ANSWERED_ONE && !(l->post && how == SGI_ANSWERED_LATER))
        sgi_answer_log_dropped(server->engine, sgi_str_of(l->id));
    if (l->op) {
        sgi_op_wait_cancel(&l->stored);
        LIST_REMOVE(l, link);
        sgi_op_unref(l->op);
    }
    if (l->post)
        sgi_conn_unref(l->post);
    sgi_late_answer_usage_end(&server->late, l->len);
    sgi_free(mem, l->answer, l->len + 1);
    sgi_free(mem, l, sizeof *l);
    sgi_server_unref(server);
}

/* Returns the question whose log entry is at this position, if it can be answered. */
static sgi_op_question *find(sgi_op *op, uint64_t position)
{
    sgi_op_question *input = sgi_op_find_question_at(op, position);
    return input && sgi_op_question_can_be_answered(op, input) ? input : NULL;
}

/* True when another server may have asked the question at this position, and this server
 * would not know: what makes the question unknown or answered here is behind the durable
 * entries that this server knows. */
static bool may_be_asked_elsewhere(const sgi_op *op, uint64_t position)
{
    const sgi_op_question *input = sgi_op_find_question_at(op, position);
    if (sgi_op_has_ended(op) && op->head.final_seq <= op->durable)
        return false;
    if (!input)
        return position > op->durable;
    return input->answered ? input->answered > op->durable : sgi_op_has_ended(op);
}

/* SEGUE_E_TIMEOUT: the owner of the operation has not run the forwarded answer yet, but
 * the store keeps it. */
static void stored(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    (void)op;
    end_late(SGI_OWNER(waiter, late, stored),
             status == SEGUE_OK || status == SEGUE_E_TIMEOUT ? SGI_ANSWERED_ONE
                                                             : SGI_ANSWERED_LATER);
}

/* Answers the POST when the store has the answer. Until then this server, its store or
 * the owner of the operation can fail, and only the client can send the answer again. */
static void wait_until_stored(late *l, sgi_op *op)
{
    l->op = op;
    sgi_op_ref(op);
    LIST_INSERT_HEAD(&l->server->late.waiting, l, link);
    l->stored.fire = stored;
    sgi_op_wait_for_requested_changes(op, &l->stored);
}

static void found(void *user, sgi_op *op, segue_status status)
{
    late *l = user;
    sgi_op_question *input = op && status == SEGUE_OK ? find(op, l->position) : NULL;
    sgi_answered how = SGI_ANSWERED_NOTHING;
    if (status != SEGUE_OK && status != SEGUE_E_NOT_FOUND)
        how = SGI_ANSWERED_LATER; /* the store or memory has failed */
    else if (input)
        how = sgi_question_take_answer(op, input, l->is_error,
                                       (sgi_json){l->answer, l->len});
    else if (op && status == SEGUE_OK && may_be_asked_elsewhere(op, l->position))
        how = SGI_ANSWERED_LATER;
    if (how == SGI_ANSWERED_ONE && l->post)
        wait_until_stored(l, op);
    else
        end_late(l, how);
}

static late *make(sgi_peer *peer, const sgi_question_id_parts *parts, bool is_error,
                  sgi_json answer)
{
    segue_server *server = peer->server;
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    late *l = sgi_zalloc(mem, sizeof *l);
    char *copy = l ? sgi_text_dup(mem, answer) : NULL;
    if (!copy) {
        sgi_free(mem, l, sizeof *l);
        return NULL;
    }
    SGI_RARE(late_answer);
    *l = (late){.server = server,
                .post = peer->is_post_of_answer ? peer->conn : NULL,
                .position = parts->position,
                .is_error = is_error,
                .answer = copy,
                .len = answer.n};
    memcpy(l->id, parts->whole.p, parts->whole.n < TOLD_MAX ? parts->whole.n : TOLD_MAX);
    sgi_server_ref(server);
    if (l->post)
        sgi_conn_ref(l->post);
    sgi_late_answer_usage_begin(&server->late, answer.n);
    return l;
}

/* Handles an answer to a question of a plain call that this process did not ask. Only the
 * process that asked knows such a question. When servers share a key, another server may
 * have asked the question, so the client should send the answer again later. */
static sgi_answered elsewhere(const segue_server *server, sgi_str of)
{
    return sgi_seal_is_common(&server->seal) &&
                   !sgi_str_eq(of, sgi_str_of(server->mailbox.name))
               ? SGI_ANSWERED_LATER
               : SGI_ANSWERED_NOTHING;
}

sgi_answered sgi_take_late_answer(sgi_peer *peer, const sgi_question_id_parts *parts,
                                  bool is_error, sgi_json answer)
{
    segue_server *server = peer->server;
    sgi_answered now = SGI_ANSWERED_AWAITED;
    if (!parts->position)
        return elsewhere(server, parts->operation);
    if (parts->is_numbered)
        return SGI_ANSWERED_NOTHING;
    late *l = sgi_late_answer_usage_has_room(&server->late, answer.n)
                  ? make(peer, parts, is_error, answer)
                  : NULL;
    if (!l)
        return SGI_ANSWERED_LATER;
    l->now = &now;
    sgi_server_find_task(server, peer->who, parts->operation, found, l);
    if (now != SGI_ANSWERED_AWAITED)
        return now;
    l->now = NULL;
    if (!l->post)
        return SGI_ANSWERED_ONE;
    /* the POST gets only a status as its answer, never an event stream */
    l->post->no_events = true;
    return SGI_ANSWERED_AWAITED;
}

void sgi_late_answers_end_all(segue_server *server)
{
    late *l;
    while ((l = LIST_FIRST(&server->late.waiting)))
        end_late(l, SGI_ANSWERED_LATER);
}
