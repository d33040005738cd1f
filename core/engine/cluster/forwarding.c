/* A forwarded command reaches the owner through the store, as SEGUE_STORE_LETTER
 * (segue_ext.h). The command is a JSON object with one of these members: {"cancel":1},
 * {"answer":{"key","response"|"error"}}, {"away":0|1}. A command with "away" also has
 * the member "at", a position of the log. The member "by" identifies the server that
 * wrote the command. A server ignores a command that it does not know, because a newer
 * version of the library may have written it.
 *
 * A command counts against the limits until its effect is in the store. A command cannot
 * be withdrawn while the store is busy or unreachable. */
#include "base/thresholds.h"
#include "engine/cluster/forwarding.h"

#include "engine/cluster/following.h"

#define WAIT_MS SGI_THRESHOLD(forward_wait_ms)
/* the pause in ms after an answer that the store could not take */
#define REST_MS SGI_THRESHOLD(commit_retry_ms)
/* the maximum time in ms to wait for the effect of a durable command, for tasks of
 * 2026-07-28, whose clients get only an acknowledgement */
#define ACK_MS SGI_THRESHOLD(forward_ack_ms)

/* What becomes of a command. */
typedef enum sgi_forward_state {
    SGI_FORWARD_POSTED_ONLY, /* the command is done when it is in the store */
    SGI_FORWARD_AWAITED,     /* the command is done when the log shows its effect */
    /* The store could not take the answer to a question, and the waiters know. The
     * question stays closed for a pause, or its client would be asked again at once, as
     * often as it answers, while the store is away. */
    SGI_FORWARD_RESTS
} sgi_forward_state;

typedef struct sgi_forward {
    LIST_ENTRY(sgi_forward) link;
    sgi_op *op; /* a counted reference */
    uint64_t number;
    size_t bytes; /* number of bytes that forward_bytes counts for this command */
    /* key of the question that the command answers; NULL = the command answers no
     * question */
    char *key;
    sgi_forward_state state;
    sgi_store_job *job;
    sgi_timer timer;
} sgi_forward;

/* ---- limits ---- */

static bool has_room(const sgi_op *op)
{
    const sgi_cluster *cluster = sgi_op_cluster(op);
    const sgi_forward *forward;
    size_t count = 0, bytes = 0;
    LIST_FOREACH(forward, &op->shared->forwards, link) {
        count++;
        bytes += forward->bytes;
    }
    return count < SGI_FORWARDS_EACH && bytes < SGI_FORWARDS_EACH_BYTES &&
           cluster->forwards < SGI_FORWARDS_MAX &&
           cluster->forward_bytes < SGI_FORWARDS_BYTES;
}

static void count_in(sgi_forward *forward, size_t bytes)
{
    sgi_cluster *cluster = sgi_op_cluster(forward->op);
    forward->bytes = bytes;
    cluster->forwards++;
    cluster->forward_bytes += bytes;
}

static void count_out(sgi_cluster *cluster, size_t bytes)
{
    cluster->forwards--;
    cluster->forward_bytes -= bytes;
}

/* ---- sending a command ---- */

static void wait_failed(sgi_op *op, uint64_t number, segue_status status);

static void end_forward(sgi_forward *forward)
{
    sgi_op *op = forward->op;
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    if (forward->job) {
        forward->job->user = NULL;
        forward->job->bytes = forward->bytes;
    } else {
        count_out(sgi_op_cluster(op), forward->bytes);
    }
    LIST_REMOVE(forward, link);
    sgi_engine_clear_timer(op->engine, &forward->timer);
    sgi_text_free(mem, forward->key);
    sgi_free(mem, forward, sizeof *forward);
    sgi_op_unref(op);
}

static void fail(sgi_forward *forward, segue_status status)
{
    sgi_op *op = forward->op;
    uint64_t number = forward->number;
    bool is_awaited = forward->state == SGI_FORWARD_AWAITED;
    sgi_op_ref(op);
    end_forward(forward);
    if (is_awaited)
        wait_failed(op, number, status);
    /* the command has failed, so its question is open again */
    sgi_op_tell_waiters_fired(op);
    sgi_op_unref(op);
}

/* Fails a command whose time limit is over. SEGUE_E_TIMEOUT tells the waiters that the
 * command is durable, so this status is used only when the store has confirmed the
 * command. */
static void time_over(sgi_timer *timer)
{
    sgi_forward *forward = SGI_OWNER(timer, sgi_forward, timer);
    fail(forward, forward->job ? SEGUE_E_STORE : SEGUE_E_TIMEOUT);
}

static void rest_is_over(sgi_timer *timer)
{
    fail(SGI_OWNER(timer, sgi_forward, timer), SEGUE_E_STORE);
}

/* Handles a command that the store could not take. */
static void post_failed(sgi_forward *forward, segue_status status)
{
    if (!forward->key || forward->state != SGI_FORWARD_AWAITED) {
        fail(forward, status);
        return;
    }
    forward->state = SGI_FORWARD_RESTS;
    sgi_engine_set_timer(forward->op->engine, &forward->timer, REST_MS, rest_is_over);
    wait_failed(forward->op, forward->number, status);
}

static bool is_done(const sgi_forward *forward)
{
    const sgi_op *op = forward->op;
    bool ended = sgi_op_has_ended(op) && op->head.final_seq <= sgi_op_horizon(op);
    const sgi_op_question *input =
        forward->key ? sgi_op_find_question((sgi_op *)op, sgi_str_of(forward->key))
                     : NULL;
    return ended || (forward->key && !(input && sgi_op_question_is_open(op, input)));
}

/* Called when the job that writes a command to the store has ended. If the operation has
 * ended or is gone, a failure is ignored, because the log has the outcome. */
static void posted(sgi_store_job *job)
{
    sgi_forward *forward = job->user;
    segue_status status = job->status;
    if (!forward)
        count_out(job->committer->cluster, job->bytes);
    sgi_store_job_free(job);
    if (!forward)
        return;
    sgi_op *op = forward->op;
    sgi_op_ref(op);
    bool gone = status == SEGUE_E_TERMINAL || status == SEGUE_E_NOT_FOUND;
    forward->job = NULL;
    if (status != SEGUE_OK && !gone)
        post_failed(forward, status);
    else if (forward->state != SGI_FORWARD_AWAITED)
        end_forward(forward);
    else if (sgi_op_cluster(op)->observer->acknowledges(op))
        sgi_engine_set_timer(op->engine, &forward->timer, ACK_MS, time_over);
    if (gone)
        sgi_followed_read_more(op);
    sgi_op_unref(op);
}

static sgi_forward *make(sgi_op *op, const char *key)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_forward *forward = sgi_zalloc(mem, sizeof *forward);
    if (!forward)
        return NULL;
    forward->job = sgi_store_job_new(op->committer, SGI_STORE_JOB_POST, posted, forward);
    forward->key = key ? sgi_text_dup(mem, sgi_str_of(key)) : NULL;
    if (forward->job && (forward->key || !key)) {
        memcpy(forward->job->id, op->id, sizeof forward->job->id);
        return forward;
    }
    if (forward->job)
        sgi_store_job_free(forward->job);
    sgi_text_free(mem, forward->key);
    sgi_free(mem, forward, sizeof *forward);
    return NULL;
}

typedef struct sgi_command {
    const char *what;
    sgi_json value;
    const uint64_t *at; /* NULL = the command has no position */
} sgi_command;

static void write_command(const sgi_command *command, const sgi_cluster *cluster,
                          sgi_buf *out)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_raw(&w, command->what, command->value);
    if (command->at)
        sgi_jw_member_int(&w, "at", (int64_t)*command->at);
    sgi_jw_key(&w, "by");
    sgi_buf_add_char(w.buf, '"');
    sgi_buf_add_base64(w.buf, cluster->mark, sizeof cluster->mark, true);
    sgi_buf_add_char(w.buf, '"');
    sgi_jw_close(&w, '}');
}

static segue_status post(sgi_op *op, const char *key, sgi_forward_state state,
                         sgi_command command)
{
    sgi_cluster *cluster = sgi_op_cluster(op);
    /* A command holds a reference to its operation. Nobody would drop the command of an
     * operation that has left the maps. */
    if (!sgi_op_is_known(op) || op->committer->closed)
        return SEGUE_E_STORE;
    if (!has_room(op)) {
        cluster->counts.refused++;
        return SEGUE_E_LIMIT;
    }
    sgi_forward *forward = make(op, key);
    if (!forward)
        return SEGUE_E_NOMEM;
    sgi_store_job *job = forward->job;
    write_command(&command, cluster, &job->command);
    forward->op = op;
    sgi_op_ref(op);
    forward->number = ++cluster->forward_number;
    forward->state = state;
    LIST_INSERT_HEAD(&op->shared->forwards, forward, link);
    count_in(forward, sizeof *forward + job->command.len);
    if (job->command.failed) {
        sgi_store_job_free(job);
        forward->job = NULL;
        end_forward(forward);
        return SEGUE_E_NOMEM;
    }
    sgi_engine_set_timer(op->engine, &forward->timer, WAIT_MS, time_over);
    sgi_committer_add_job(op->committer, job);
    return SEGUE_OK;
}

segue_status sgi_forward_cancel(sgi_op *op)
{
    return post(op, NULL, SGI_FORWARD_AWAITED,
                (sgi_command){"cancel", SGI_STR("1"), NULL});
}

segue_status sgi_forward_answer(sgi_op *op, const char *key, sgi_str payload,
                                bool awaited)
{
    return post(op, key, awaited ? SGI_FORWARD_AWAITED : SGI_FORWARD_POSTED_ONLY,
                (sgi_command){"answer", payload, NULL});
}

/* Sends the owner a command that says whether the client is connected. A failure is
 * ignored, because the next change is reported too. */
void sgi_forward_presence(sgi_op *op, bool away, uint64_t attached_at)
{
    sgi_json value = away ? SGI_STR("1") : SGI_STR("0");
    post(op, NULL, SGI_FORWARD_POSTED_ONLY, (sgi_command){"away", value, &attached_at});
}

bool sgi_question_answer_is_being_forwarded(const sgi_op *op, const char *key)
{
    const sgi_forward *forward;
    LIST_FOREACH(forward, &op->shared->forwards, link)
        if (forward->state != SGI_FORWARD_POSTED_ONLY && forward->key &&
            !strcmp(forward->key, key))
            return true;
    return false;
}

bool sgi_forwards_are_open(const sgi_op *op, uint64_t number)
{
    const sgi_forward *forward;
    LIST_FOREACH(forward, &op->shared->forwards, link)
        if (forward->state == SGI_FORWARD_AWAITED && forward->number <= number)
            return true;
    return false;
}

void sgi_forwards_end_done(sgi_op *op)
{
    sgi_forward *forward = LIST_FIRST(&op->shared->forwards);
    sgi_op_ref(op);
    while (forward) {
        sgi_forward *next = LIST_NEXT(forward, link);
        if (forward->state != SGI_FORWARD_POSTED_ONLY && is_done(forward))
            end_forward(forward);
        forward = next;
    }
    sgi_op_unref(op);
}

void sgi_forwards_drop_all(sgi_op *op)
{
    sgi_forward *forward;
    sgi_op_ref(op);
    while ((forward = LIST_FIRST(&op->shared->forwards)))
        end_forward(forward);
    sgi_op_unref(op);
}

/* ---- waiting for commands ---- */

static bool is_visible(const sgi_op *op, const sgi_waiter *waiter)
{
    return !sgi_forwards_are_open(op, waiter->number);
}

void sgi_op_wait_for_requested_changes(sgi_op *op, sgi_waiter *waiter)
{
    if (!sgi_op_runs_elsewhere(op) && !sgi_forwards_are_open(op, UINT64_MAX)) {
        sgi_op_wait_until_visible(op, waiter, op->head.next_log - 1);
        return;
    }
    waiter->is_due = is_visible;
    waiter->number = sgi_op_cluster(op)->forward_number;
    sgi_op_wait_until_due(op, waiter);
}

static sgi_waiter *first_in_vain(const sgi_op *op, uint64_t number)
{
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link)
        if (waiter->is_due == is_visible && waiter->number >= number)
            return waiter;
    return NULL;
}

/* Reports a failure to the waiters that wait for this command, and to the waiters that
 * wait for a later command. */
static void wait_failed(sgi_op *op, uint64_t number, segue_status status)
{
    sgi_waiter *waiter;
    sgi_op_ref(op);
    while ((waiter = first_in_vain(op, number))) {
        sgi_op_wait_cancel(waiter);
        waiter->fire(waiter, op, status);
    }
    sgi_op_unref(op);
}
