/* Decides when two states are the same. The hash covers the server's operation, its call,
 * the store and the commit under way. It also covers all messages to and from the client
 * on each connection, in their order, from which the states of client and connections
 * follow. So merging ignores only the order of events that do not affect each other.
 * test_task_model checks this (explorer.h, compare). */
#include "support/race_world.h"

#include "engine/log/reader.h"

static uint64_t add(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

static uint64_t add_timers(uint64_t hash, const sgi_engine *engine)
{
    uint64_t sum = engine->timers.count; /* the order inside a heap has no meaning */
    for (size_t i = 0; i < engine->timers.count; i++)
        sum += add(3, (uint64_t)engine->timers.heap[i].timer->at_ms);
    return add(hash, sum);
}

static uint64_t add_store(uint64_t hash, const fake_host *h)
{
    const fake_row *row;
    const fake_record *record;
    LIST_FOREACH(record, &h->records, link) {
        hash = add(hash, (uint64_t)record->record.ended);
        hash = add(hash, (uint64_t)record->record.purge_ms);
        hash = add(hash, (uint64_t)record->releases);
    }
    TAILQ_FOREACH(row, &h->rows, link) {
        hash = add(hash, (uint64_t)row->entry.kind);
        hash = add(hash, (uint64_t)row->entry.at_ms);
        race_history(&hash, row->entry.data, row->entry.data_len);
    }
    hash = add(hash, h->batch.op_count);
    for (size_t i = 0; i < h->batch.count; i++)
        hash = add(hash, (uint64_t)h->batch.writes[i].kind);
    return add(hash, h->batch.op_count ? h->batch.count : 0);
}

static uint64_t add_call(uint64_t hash, const segue_call *call)
{
    if (!call)
        return add(hash, 1);
    hash = add(hash, (uint64_t)call->refs);
    hash = add(hash, (uint64_t)(call->held | call->invoke_due << 1 | call->turned << 2 |
                                call->watched << 3 | call->cancelled << 4 |
                                call->cancel_due << 5 | call->wants_drain << 6 |
                                call->drain_due << 7 | (call->earlier != NULL) << 8 |
                                call->is_closing << 9 | call->check_due << 10 |
                                call->ready.queued << 11));
    return add(hash, call->events.free_user != NULL);
}

static uint64_t add_inputs(uint64_t hash, const sgi_op *op)
{
    const sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link) {
        hash = add(hash, input->asked);
        hash = add(hash, input->answered);
        hash = add(hash,
                   (uint64_t)(input->bound | input->delivered << 1 | input->failed << 2 |
                              (input->question_request != NULL) << 3));
    }
    return hash;
}

static uint64_t add_log(uint64_t hash, const sgi_op *op)
{
    const sgi_entry *entry;
    TAILQ_FOREACH(entry, &op->tail, link) {
        hash = add(hash, entry->seq);
        hash = add(hash, (uint64_t)entry->kind);
        hash = add(hash, (uint64_t)entry->at_ms);
        race_history(&hash, entry->data, entry->len);
    }
    hash = add(hash, op->pending ? op->pending->seq : 0);
    return add(hash, op->durable);
}

static uint64_t add_watchers(uint64_t hash, const sgi_op *op)
{
    const sgi_waiter *waiter;
    const sgi_reader *reader;
    const sgi_op_watch *watch;
    uint64_t waiting = 0, reading = 0, watching = 0;
    TAILQ_FOREACH(waiter, &op->waiters, link)
        waiting += add(5, waiter->seq);
    TAILQ_FOREACH(reader, &op->readers, link)
        reading++;
    LIST_FOREACH(watch, &op->watches, link)
        watching++;
    return add(add(add(hash, waiting), reading), watching);
}

static uint64_t add_op(uint64_t hash, const sgi_op *op)
{
    if (!op)
        return add(hash, 2);
    hash = add(hash, (uint64_t)op->refs);
    hash = add(hash, (uint64_t)(sgi_op_is_task(op) | sgi_op_is_logged(op) << 1 |
                                (op->writing == SGI_WRITING_DIRTY) << 2 |
                                (op->writing == SGI_WRITING_NOW) << 3 |
                                sgi_op_is_created(op) << 4 | sgi_op_is_broken(op) << 5 |
                                op->releasing << 6 | op->deleting << 7 |
                                op->served->counted << 8 | op->served->streams << 9));
    hash = add(hash, (uint64_t)op->shared->state);
    hash = add(hash, (uint64_t)op->hold);
    hash = add(hash, (uint64_t)op->head.final);
    hash = add(hash, op->head.final_seq);
    hash = add(hash, (uint64_t)op->head.ended_ms);
    hash = add(hash, (uint64_t)op->head.updated_ms);
    hash = add(hash, (uint64_t)op->head.input_count);
    hash = add(hash, op->served->reply != NULL);
    hash = add(hash, op->served->creator != NULL);
    hash = add(hash, op->served->call != NULL);
    hash = add_log(hash, op);
    hash = add_inputs(hash, op);
    return add_watchers(hash, op);
}

static uint64_t add_server(uint64_t hash, const segue_server *server)
{
    const sgi_store_job *job;
    const sgi_op *op;
    const segue_call *call;
    uint64_t broken = 0;
    hash = add(hash, (uint64_t)server->stage);
    hash = add(hash, (uint64_t)server->cluster.recovering);
    hash = add(hash, (uint64_t)server->lingering.count);
    hash = add(hash, server->by_key.count);
    TAILQ_FOREACH(job, &server->committer.jobs, link)
        hash = add(hash, (uint64_t)job->kind);
    TAILQ_FOREACH(op, &server->committer.broken, dirty_link)
        broken++;
    hash = add(hash, broken);
    hash = add(hash, server->committer.solo);
    LIST_FOREACH(call, &server->calls.running, link)
        hash = add_call(hash, call);
    return hash;
}

static uint64_t add_wires(uint64_t hash, const race_world *w)
{
    for (int i = 0; i < 2; i++) {
        hash = add(hash, w->wires[i].history);
        hash = add(hash, (uint64_t)w->wires[i].count);
        hash = add(hash, w->wires[i].to_len);
        hash = add(hash, w->wires[i].conn != NULL);
    }
    return hash;
}

static uint64_t add_ready(uint64_t hash, const sgi_engine *engine)
{
    const sgi_ready_object *ready;
    TAILQ_FOREACH(ready, &engine->ready, link)
        hash = add(hash, 7);
    return hash;
}

uint64_t race_hash(void *user)
{
    const race_world *w = user;
    const race_handler *h = &w->handler;
    uint64_t hash = add((uint64_t)w->row->dialect, (uint64_t)w->steps);
    for (int i = 0; i < RACE_EVENTS; i++)
        hash = add(hash, w->used[i]);
    hash = add(hash, (uint64_t)w->server.clock_ms);
    hash = add(hash, w->server.chance);
    hash = add(hash, w->client.chance);
    hash = add_timers(hash, &w->server.engine);
    hash = add_timers(hash, &w->client.engine);
    hash = add_ready(hash, &w->server.engine);
    hash = add_store(hash, &w->server);
    hash = add_server(hash, w->handle);
    hash = add_op(hash, race_op(w));
    hash = add_wires(hash, w);
    hash = add(hash, w->client_history);
    hash = add(hash, (uint64_t)(h->runs | h->cancels << 4 | h->inputs << 8 |
                                h->asked << 12 | h->freed << 16 | h->next_segment << 20 |
                                (h->call != NULL) << 28));
    hash = add(hash, (uint64_t)(w->tasks | w->completed << 4 | w->broken << 8 |
                                w->ends << 12 | w->seen_final << 16));
    return add(hash, (uint64_t)w->lives);
}
