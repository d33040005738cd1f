#include "engine/server/late_answer.h"
#include "base/rare.h"
#include "engine/log/op.h"
#include "engine/server/server.h"

#define TOLD_MAX 96 /* maximum number of bytes of an id in a log message */

typedef struct late {
    segue_server *server; /* a counted reference */
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

static void free_late(late *l)
{
    segue_server *server = l->server;
    const sgi_mem *mem = sgi_engine_mem(server->engine);
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

static void found(void *user, sgi_op *op, segue_status status)
{
    late *l = user;
    sgi_op_question *input = op && status == SEGUE_OK ? find(op, l->position) : NULL;
    if (!input ||
        !sgi_question_take_answer(op, input, l->is_error, (sgi_json){l->answer, l->len}))
        sgi_answer_log_dropped(l->server->engine, sgi_str_of(l->id));
    free_late(l);
}

static late *make(segue_server *server, const sgi_question_id_parts *parts, bool is_error,
                  sgi_json answer)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    late *l = sgi_zalloc(mem, sizeof *l);
    char *copy = l ? sgi_text_dup(mem, answer) : NULL;
    if (!copy) {
        sgi_free(mem, l, sizeof *l);
        return NULL;
    }
    SGI_RARE(late_answer);
    *l = (late){.server = server,
                .position = parts->position,
                .is_error = is_error,
                .answer = copy,
                .len = answer.n};
    memcpy(l->id, parts->whole.p, parts->whole.n < TOLD_MAX ? parts->whole.n : TOLD_MAX);
    sgi_server_ref(server);
    sgi_late_answer_usage_begin(&server->late, answer.n);
    return l;
}

/* Handles an answer to a question of a plain call that this process did not ask. Only the
 * process that asked knows such a question. When servers share a key, another server may
 * have asked the question, so the client should send the answer again later. */
static sgi_answered elsewhere(const segue_server *server, sgi_str of)
{
    return server->seal.shared && !sgi_str_eq(of, sgi_str_of(server->name))
               ? SGI_ANSWERED_LATER
               : SGI_ANSWERED_NOTHING;
}

sgi_answered sgi_take_late_answer(sgi_peer *peer, const sgi_question_id_parts *parts,
                                  bool is_error, sgi_json answer)
{
    segue_server *server = peer->server;
    if (!parts->position)
        return elsewhere(server, parts->operation);
    if (parts->is_numbered)
        return SGI_ANSWERED_NOTHING;
    late *l = sgi_late_answer_usage_has_room(&server->late, answer.n)
                  ? make(server, parts, is_error, answer)
                  : NULL;
    if (!l)
        return SGI_ANSWERED_LATER;
    sgi_server_find_task(server, peer->who, parts->operation, found, l);
    return SGI_ANSWERED_ONE;
}
