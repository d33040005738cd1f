/* A batch is open while its messages are handed to the role (`reading`), and while one of
 * its requests has no answer. `waiting` has the id of each request without an answer. A
 * message without a usable id has an empty entry in `waiting` while the message is being
 * refused. An entry is removed when its answer is sent, or when it is certain that no
 * answer will be sent.
 *
 * Collected answers are stored one per line, because messages contain no line ends. If
 * the answer of an HTTP exchange is already an event stream, answers are not collected:
 * each answer is sent as an event at once. */
#include "engine/conversation/batch.h"

#include "engine/conversation/sending.h"

struct sgi_batch_answer {
    sgi_batch_answer *next;
    bool reading;
    bool asks; /* at least one message of the batch needs an answer */
    bool lost; /* the conversation was lost while the batch was read */
    /* the ids of the requests that have no answer yet; a NUL follows each id */
    sgi_buf waiting;
    sgi_buf kept; /* the collected answers; a newline follows each answer */
};

/* ---- the begin and the end of a batch ---- */

static void free_batch(const sgi_mem *mem, sgi_batch_answer *batch)
{
    sgi_buf_free(&batch->waiting);
    sgi_buf_free(&batch->kept);
    sgi_free(mem, batch, sizeof *batch);
}

static void unlink_batch(sgi_conn *conn, const sgi_batch_answer *batch)
{
    sgi_batch_answer **at = &conn->batches;
    while (*at != batch)
        at = &(*at)->next;
    *at = batch->next;
    conn->batch_bytes -= batch->kept.len;
}

void sgi_batches_free(sgi_conn *conn)
{
    sgi_batch_answer *batch;
    while ((batch = conn->batches)) {
        unlink_batch(conn, batch);
        if (batch->reading)
            /* sgi_batch_close frees this batch, because the loop over its messages still
             * uses it */
            batch->lost = true;
        else
            free_batch(sgi_engine_mem(conn->engine), batch);
    }
}

/* Sends the collected answers and frees the batch. Called when no further answer will be
 * collected. */
static void end_batch(sgi_conn *conn, sgi_batch_answer *batch)
{
    unlink_batch(conn, batch);
    if (!batch->asks) {
        /* a batch that consists only of notifications and answers gets no answer */
    } else if (batch->kept.len && conn->frames != SGI_FRAMES_EVENTS) {
        sgi_send_batch_array(conn, sgi_buf_str(&batch->kept));
    } else if (conn->frames != SGI_FRAMES_LINES) {
        /* every HTTP exchange needs an answer, even an answer without a message */
        sgi_send_end_without_answer(conn);
    }
    free_batch(sgi_engine_mem(conn->engine), batch);
}

static void maybe_end(sgi_conn *conn, sgi_batch_answer *batch)
{
    if (!batch->reading && !batch->waiting.len)
        end_batch(conn, batch);
}

/* ---- output ---- */

static char *find_slot(const sgi_batch_answer *batch, sgi_str id)
{
    char *at = batch->waiting.p;
    size_t left = batch->waiting.len;
    while (left) {
        size_t n = strlen(at);
        if (sgi_str_eq((sgi_str){at, n}, id))
            return at;
        at += n + 1;
        left -= n + 1;
    }
    return NULL;
}

sgi_batch_answer *sgi_batch_of_request(const sgi_conn *conn, sgi_str id)
{
    sgi_batch_answer *batch = conn->batches;
    while (batch && !find_slot(batch, id))
        batch = batch->next;
    return batch;
}

/* Collects an answer of the batch. Returns false when out of memory. If an HTTP exchange
 * lost its connection before it became an event stream, the answer is dropped, because
 * the client cannot ask for this answer again. */
bool sgi_batch_keep_answer(sgi_conn *conn, sgi_batch_answer *batch, sgi_str message)
{
    size_t before = batch->kept.len;
    if (!conn->transport)
        return true;
    sgi_buf_add_str(&batch->kept, message);
    sgi_buf_add_char(&batch->kept, '\n');
    if (batch->kept.failed) {
        sgi_buf_truncate(&batch->kept, before);
        return false;
    }
    conn->batch_bytes += batch->kept.len - before;
    return true;
}

void sgi_batch_note_answered(sgi_conn *conn, sgi_batch_answer *batch, sgi_str id)
{
    sgi_buf *waiting = &batch->waiting;
    char *slot = find_slot(batch, id);
    size_t n = id.n + 1;
    memmove(slot, slot + n, waiting->len - (size_t)(slot - waiting->p) - n);
    sgi_buf_shorten(waiting, waiting->len - n);
    maybe_end(conn, batch);
}

void sgi_batch_note_no_answer(sgi_conn *conn, sgi_str id)
{
    sgi_batch_answer *batch = sgi_batch_of_request(conn, id);
    if (batch)
        sgi_batch_note_answered(conn, batch, id);
}

/* Sends the collected answers as events. Only HTTP exchanges call this function; an
 * exchange has at most one batch. */
void sgi_batch_send_collected(sgi_conn *conn)
{
    sgi_batch_answer *batch = conn->batches;
    if (!batch)
        return;
    sgi_str left = sgi_buf_str(&batch->kept);
    while (left.n) {
        const char *end = memchr(left.p, '\n', left.n);
        sgi_str message = {left.p, (size_t)(end - left.p)};
        sgi_send_batch_answer(conn, message);
        left = (sgi_str){end + 1, left.n - message.n - 1};
    }
    conn->batch_bytes -= batch->kept.len;
    sgi_buf_reset(&batch->kept, 0);
}

/* ---- input ---- */

const char *sgi_batch_find_problem(sgi_str text)
{
    sgi_json items = sgi_json_trim(text), item;
    size_t at = 0;
    int32_t count = 0;
    while (count <= SGI_BATCH_MAX && sgi_json_next_item(items, &at, &item))
        count++;
    if (!count)
        return "the batch has no messages";
    return count > SGI_BATCH_MAX ? "the batch has more than 64 messages" : NULL;
}

bool sgi_batch_expect(sgi_batch_answer *batch, sgi_str id)
{
    size_t before = batch->waiting.len;
    batch->asks = true;
    sgi_buf_add_str(&batch->waiting, id);
    sgi_buf_add_char(&batch->waiting, 0);
    if (!batch->waiting.failed)
        return true;
    sgi_buf_truncate(&batch->waiting, before);
    return false;
}

sgi_batch_answer *sgi_batch_open(sgi_conn *conn)
{
    const sgi_mem *mem = sgi_engine_mem(conn->engine);
    sgi_batch_answer *batch = sgi_zalloc(mem, sizeof *batch);
    if (!batch)
        return NULL;
    sgi_buf_init(&batch->waiting, mem);
    sgi_buf_init(&batch->kept, mem);
    batch->reading = true;
    batch->next = conn->batches;
    conn->batches = batch;
    return batch;
}

void sgi_batch_close(sgi_conn *conn, sgi_batch_answer *batch)
{
    batch->reading = false;
    if (batch->lost)
        free_batch(sgi_engine_mem(conn->engine), batch);
    else
        maybe_end(conn, batch);
}

bool sgi_batch_wants_answer(sgi_engine *engine, sgi_str text)
{
    sgi_json items = sgi_json_trim(text), item;
    sgi_message msg;
    size_t at = 0;
    if (sgi_batch_find_problem(text))
        return true;
    while (sgi_json_next_item(items, &at, &item))
        if (!sgi_conn_parse_batch_item(engine, item, &msg) ||
            msg.kind == SGI_MESSAGE_REQUEST ||
            (msg.kind == SGI_MESSAGE_INVALID && !msg.is_response))
            return true;
    return false;
}
