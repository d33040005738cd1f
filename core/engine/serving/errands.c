/* A letter is one of {"cancel":1}, {"answer":{"key","response"|"error"}}, {"away":0|1},
 * and has "by", a mark of the server that wrote it. Who reads one that it does not know
 * passes over it: it is from a newer server.
 *
 * An errand counts against the bounds until it is over and its letter, which nobody can
 * take back from a store that is busy or away, has left this process. */
#include "engine/serving/errands.h"

#include "engine/dialect/dialect.h"
#include "engine/log/following.h"
#include "engine/serving/asks.h"
#include "engine/serving/mail.h"
#include "engine/serving/resumable.h"
#include "engine/serving/rounds.h"
#include "engine/serving/task.h"

#define WAIT_MS 10000
#define ACK_MS 1000 /* once the letter is durable: X acknowledges a wish */

typedef struct sgi_errand {
    LIST_ENTRY(sgi_errand) link;
    sgi_op *op; /* counted */
    uint64_t number;
    size_t bytes; /* as they were counted */
    char *key;    /* of a question; NULL = the operation is to end */
    bool awaited;
    sgi_job *job;
    sgi_timer timer;
} sgi_errand;

/* ---- bounds ---- */

static bool has_room(const sgi_op *op)
{
    const segue_server *server = op->server;
    const sgi_errand *errand;
    size_t count = 0, bytes = 0;
    LIST_FOREACH(errand, &op->errands, link) {
        count++;
        bytes += errand->bytes;
    }
    return count < SGI_ERRANDS_EACH && bytes < SGI_ERRANDS_EACH_BYTES &&
           server->errands < SGI_ERRANDS_MAX && server->errand_bytes < SGI_ERRANDS_BYTES;
}

static void count_in(sgi_errand *errand, size_t bytes)
{
    segue_server *server = errand->op->server;
    errand->bytes = bytes;
    server->errands++;
    server->errand_bytes += bytes;
}

static void count_out(segue_server *server, size_t bytes)
{
    server->errands--;
    server->errand_bytes -= bytes;
}

/* ---- sending ---- */

static void end_errand(sgi_errand *errand)
{
    sgi_op *op = errand->op;
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    if (errand->job) {
        errand->job->user = NULL;
        errand->job->bytes = errand->bytes;
    } else {
        count_out(op->server, errand->bytes);
    }
    LIST_REMOVE(errand, link);
    sgi_engine_timer_clear(op->engine, &errand->timer);
    sgi_text_free(mem, errand->key);
    sgi_release(mem, errand, sizeof *errand);
    sgi_op_unref(op);
}

static void fail(sgi_errand *errand, segue_status status)
{
    sgi_op *op = errand->op;
    uint64_t number = errand->number;
    bool awaited = errand->awaited;
    sgi_op_ref(op);
    end_errand(errand);
    if (awaited)
        sgi_op_wait_failed(op, number, status);
    if (sgi_op_is_elsewhere(op))
        sgi_asks_follow(op); /* what it was to answer is still open */
    sgi_op_unref(op);
}

/* A timeout says that the letter is durable: not so while the store has not answered. */
static void time_over(sgi_timer *timer)
{
    sgi_errand *errand = SGI_OWNER(timer, sgi_errand, timer);
    fail(errand, errand->job ? SEGUE_E_STORE : SEGUE_E_TIMEOUT);
}

static bool is_done(const sgi_errand *errand)
{
    const sgi_op *op = errand->op;
    bool ended = sgi_op_has_ended(op) && op->final_seq <= sgi_op_horizon(op);
    const sgi_input *input =
        errand->key ? sgi_op_input((sgi_op *)op, sgi_str_of(errand->key)) : NULL;
    return ended || (errand->key && !(input && sgi_input_is_open(op, input)));
}

/* One that has ended, or is gone, needs no letter: what became of it is in the log. */
static void posted(sgi_job *job)
{
    sgi_errand *errand = job->user;
    segue_status status = job->status;
    if (!errand)
        count_out(SGI_OWNER(job->keeper, segue_server, keeper), job->bytes);
    sgi_job_free(job);
    if (!errand)
        return;
    sgi_op *op = errand->op;
    sgi_op_ref(op);
    bool gone = status == SEGUE_E_TERMINAL || status == SEGUE_E_NOT_FOUND;
    errand->job = NULL;
    if (status != SEGUE_OK && !gone)
        fail(errand, status);
    else if (!errand->awaited)
        end_errand(errand);
    else if (op->dialect == &sgi_dialect_tasks_ext)
        sgi_engine_timer(op->engine, &errand->timer, ACK_MS, time_over);
    if (gone)
        sgi_followed_look(op);
    sgi_op_unref(op);
}

static sgi_errand *make(sgi_op *op, const char *key)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_errand *errand = sgi_zalloc(mem, sizeof *errand);
    if (!errand)
        return NULL;
    errand->job = sgi_job_new(&op->server->keeper, SGI_JOB_POST, posted, errand);
    errand->key = key ? sgi_text_dup(mem, sgi_str_of(key)) : NULL;
    if (errand->job && (errand->key || !key)) {
        memcpy(errand->job->id, op->id, sizeof errand->job->id);
        return errand;
    }
    if (errand->job)
        sgi_job_free(errand->job);
    sgi_text_free(mem, errand->key);
    sgi_release(mem, errand, sizeof *errand);
    return NULL;
}

static segue_status post(sgi_op *op, const char *key, bool awaited, const char *what,
                         sgi_json value)
{
    if (!has_room(op)) {
        op->server->counts.refused++;
        return SEGUE_E_LIMIT;
    }
    sgi_errand *errand = make(op, key);
    if (!errand)
        return SEGUE_E_NOMEM;
    sgi_job *job = errand->job;
    sgi_jw w = sgi_jw_on(&job->letter);
    sgi_jw_open(&w, '{');
    sgi_jw_member_raw(&w, what, value);
    sgi_jw_key(&w, "by");
    sgi_buf_add_char(w.buf, '"');
    sgi_buf_add_base64(w.buf, op->server->mark, sizeof op->server->mark, true);
    sgi_buf_add_char(w.buf, '"');
    sgi_jw_close(&w, '}');
    errand->op = op;
    sgi_op_ref(op);
    errand->number = ++op->server->errand_number;
    errand->awaited = awaited;
    LIST_INSERT_HEAD(&op->errands, errand, link);
    count_in(errand, sizeof *errand + job->letter.len);
    if (job->letter.failed) {
        sgi_job_free(job);
        errand->job = NULL;
        end_errand(errand);
        return SEGUE_E_NOMEM;
    }
    sgi_engine_timer(op->engine, &errand->timer, WAIT_MS, time_over);
    sgi_keeper_ask(&op->server->keeper, job);
    return SEGUE_OK;
}

segue_status sgi_errand_cancel(sgi_op *op)
{
    return post(op, NULL, true, "cancel", SGI_STR("1"));
}

segue_status sgi_errand_answer(sgi_op *op, const char *key, sgi_str payload, bool awaited)
{
    return post(op, key, awaited, "answer", payload);
}

/* Without memory or room for it the next one says the same. */
void sgi_errand_presence(sgi_op *op, bool away)
{
    if (op->known && op->server->stage < SGI_SERVER_DEAD)
        post(op, NULL, false, "away", away ? SGI_STR("1") : SGI_STR("0"));
}

bool sgi_errand_answers(const sgi_op *op, const char *key)
{
    const sgi_errand *errand;
    LIST_FOREACH(errand, &op->errands, link)
        if (errand->awaited && errand->key && !strcmp(errand->key, key))
            return true;
    return false;
}

bool sgi_errands_are_open(const sgi_op *op, uint64_t number)
{
    const sgi_errand *errand;
    LIST_FOREACH(errand, &op->errands, link)
        if (errand->awaited && errand->number <= number)
            return true;
    return false;
}

void sgi_errands_look(sgi_op *op)
{
    sgi_errand *errand = LIST_FIRST(&op->errands);
    sgi_op_ref(op);
    while (errand) {
        sgi_errand *next = LIST_NEXT(errand, link);
        if (errand->awaited && is_done(errand))
            end_errand(errand);
        errand = next;
    }
    sgi_op_unref(op);
}

void sgi_errands_end(sgi_op *op)
{
    sgi_errand *errand;
    sgi_op_ref(op);
    while ((errand = LIST_FIRST(&op->errands)))
        end_errand(errand);
    sgi_op_unref(op);
}

/* ---- reading ---- */

/* D and X only wish it; L is told that a task was cancelled, or was not. */
static segue_status read_cancel(sgi_op *op)
{
    if (sgi_task_is_unstoppable(op) && op->dialect != &sgi_dialect_tasks_2025)
        return SEGUE_OK;
    sgi_task_cancel(op);
    return sgi_op_has_ended(op) ? SEGUE_OK : SEGUE_E_NOMEM;
}

static segue_status read_answer(sgi_op *op, sgi_json answer)
{
    sgi_str key;
    sgi_json error = sgi_json_get(answer, "error");
    if (!sgi_json_plain_string(sgi_json_get(answer, "key"), &key))
        return SEGUE_OK;
    segue_status status =
        error.n ? sgi_task_answer_error(op, key, error)
                : sgi_task_answer(op, key, sgi_json_get(answer, "response"));
    sgi_round_settle(op);
    return status;
}

/* Its owner has gone, and this server, which wrote to it, has taken over. */
static bool is_ours(const segue_server *server, sgi_json by)
{
    sgi_str text;
    sgi_buf mark;
    sgi_buf_init(&mark, sgi_engine_mem(server->engine));
    bool ours = sgi_json_plain_string(by, &text) && sgi_buf_add_unbase64(&mark, text) &&
                mark.len == sizeof server->mark &&
                !memcmp(mark.p, server->mark, sizeof server->mark);
    sgi_buf_free(&mark);
    return ours;
}

segue_status sgi_letter_read(sgi_op *op, sgi_str letter)
{
    sgi_json value;
    int64_t number = 0;
    if (sgi_mail_is_box(op))
        return sgi_mail_read(op->server, letter);
    segue_status status = sgi_engine_json(op->engine, letter.p, letter.n, &value, NULL);
    if (status != SEGUE_OK)
        return status;
    sgi_json answer = sgi_json_get(value, "answer");
    sgi_json away = sgi_json_get(value, "away");
    if (sgi_json_get(value, "cancel").n)
        return read_cancel(op);
    if (answer.n)
        return read_answer(op, answer);
    if (op->resumable && sgi_json_int(away, &number) &&
        !is_ours(op->server, sgi_json_get(value, "by")))
        sgi_resumable_elsewhere(op->resumable, number != 0);
    return SEGUE_OK;
}
