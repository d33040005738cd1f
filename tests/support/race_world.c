/* The race world. In one step the client reads one message of the server. Messages that
 * the client has not read when the server dies are lost. Messages to the server arrive at
 * once. Their timing is still covered, because the messages that the client reads and its
 * application decide when they are sent. */
#include "support/race_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

void race_fail(const race_world *w, const char *format, ...)
{
    va_list args;
    explorer_print(w->explorer);
    fprintf(stderr, "%s: ", w->row->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    fail();
    abort();
}

void race_history(uint64_t *history, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t hash = *history ^ len;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ p[i]) * 1099511628211u;
    *history = hash;
}

const fake_record *race_record(const race_world *w)
{
    return LIST_FIRST(&w->server.records);
}

sgi_op *race_op(const race_world *w)
{
    const fake_record *record = race_record(w);
    const sgi_cluster *cluster = &w->handle->cluster;
    sgi_op *op = record
                     ? sgi_cluster_known_task(cluster, sgi_str_of(record->record.task_id))
                     : sgi_op_of_task_node(sgi_index_any_node(&cluster->by_task));
    if (op)
        return op;
    return w->handler.call ? w->handler.call->op : NULL;
}

/* ---- lines ---- */

static void put_to_server(race_wire *wire, sgi_str text)
{
    wire->to_server = realloc(wire->to_server, wire->to_len + text.n + 1);
    memcpy(wire->to_server + wire->to_len, text.p, text.n);
    wire->to_len += text.n;
    wire->to_server[wire->to_len] = 0;
}

static void wire_cut(race_wire *wire)
{
    while (wire->count) {
        free(wire->lines[wire->first % RACE_QUEUE].text);
        wire->first++;
        wire->count--;
    }
    free(wire->to_server);
    wire->to_server = NULL;
    wire->to_len = 0;
    wire->conn = NULL;
    *wire->status = 0;
    race_history(&wire->history, "cut", 3);
}

static void take_line(race_world *w, race_wire *wire, sgi_str line)
{
    race_history(&wire->history, line.p, line.n);
    race_judge_line(w, wire, line);
    if (wire != &w->wires[0])
        return;
    race_check(w, wire->count < RACE_QUEUE);
    race_line *slot = &wire->lines[(wire->first + wire->count++) % RACE_QUEUE];
    slot->text = malloc(line.n + 1);
    slot->len = line.n + 1;
    memcpy(slot->text, line.p, line.n);
    slot->text[line.n] = '\n';
}

/* Handles one message from the server. */
static bool hear(race_world *w, race_wire *wire)
{
    sgi_buf taken;
    sgi_buf_init(&taken, &w->server_heap.mem);
    sgi_conn_take_output(wire->conn, &taken);
    sgi_str text = sgi_buf_str(&taken);
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        race_check(w, end != NULL);
        take_line(w, wire, (sgi_str){text.p, (size_t)(end - text.p)});
        text.n -= (size_t)(end - text.p) + 1;
        text.p = end + 1;
    }
    bool any = taken.len > 0;
    sgi_buf_free(&taken);
    return any;
}

static bool speak(race_world *w, race_wire *wire)
{
    (void)w;
    if (!wire->to_len || !sgi_conn_wants_input(wire->conn))
        return false;
    char *text = wire->to_server;
    size_t len = wire->to_len;
    wire->to_server = NULL;
    wire->to_len = 0;
    race_history(&wire->history, text, len);
    sgi_conn_add_input(wire->conn, text, len);
    free(text);
    return true;
}

static bool client_speaks(race_world *w)
{
    sgi_buf taken;
    sgi_buf_init(&taken, &w->client_heap.mem);
    sgi_conn_take_output(w->session->conn, &taken);
    bool any = taken.len > 0;
    if (any && w->wires[0].conn)
        put_to_server(&w->wires[0], sgi_buf_str(&taken));
    sgi_buf_free(&taken);
    return any;
}

void race_say(race_world *w, const char *format, ...)
{
    char line[1500];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[n++] = '\n';
    put_to_server(&w->wires[1], (sgi_str){line, (size_t)n});
}

void race_read(race_world *w)
{
    race_wire *wire = &w->wires[0];
    race_line line = wire->lines[wire->first++ % RACE_QUEUE];
    wire->count--;
    race_history(&w->client_history, &w->client.clock_ms, sizeof(int64_t));
    race_history(&w->client_history, line.text, line.len);
    sgi_conn_add_input(w->session->conn, line.text, line.len);
    free(line.text);
}

/* ---- connections ---- */

static void connect_wire(race_world *w, int which)
{
    race_wire *wire = &w->wires[which];
    race_check(w, sgi_server_accept(w->handle, wire, &wire->conn) == SEGUE_OK);
    sgi_conn_start(wire->conn);
}

/* Connects the second client, with a handshake where the dialect has one. */
static void connect_other(race_world *w)
{
    static const char *const versions[] = {NULL, "2025-11-25", "DRAFT-2026-v1"};
    connect_wire(w, 1);
    if (!versions[w->row->dialect])
        return;
    race_say(w,
             "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
             "\"protocolVersion\":\"%s\",\"capabilities\":{\"elicitation\":{}},"
             "\"clientInfo\":{\"name\":\"other\",\"version\":\"1\"}}}",
             versions[w->row->dialect]);
    race_say(w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
}

/* Handles the client's wish to connect again. */
static bool reconnect(race_world *w)
{
    if (w->reopens == w->client.reopens)
        return false;
    w->reopens = w->client.reopens;
    connect_wire(w, 0);
    race_history(&w->client_history, &w->client.clock_ms, sizeof(int64_t));
    sgi_conn_start(w->session->conn);
    return true;
}

void race_settle(race_world *w)
{
    bool any = true;
    for (int turn = 0; any; turn++) {
        race_check(w, turn < 1000);
        any = fake_host_deliver(&w->client) > 0;
        any |= reconnect(w);
        any |= client_speaks(w);
        for (int i = 0; i < 2; i++) {
            any |= w->wires[i].conn && speak(w, &w->wires[i]);
            any |= w->wires[i].conn && hear(w, &w->wires[i]);
        }
    }
}

/* ---- time ---- */

int64_t race_next_timer(const race_world *w)
{
    int64_t one = sgi_timers_next_due_ms(&w->server.engine.timers);
    int64_t other = sgi_timers_next_due_ms(&w->client.engine.timers);
    return one < other ? one : other;
}

void race_pass(race_world *w)
{
    int64_t at = race_next_timer(w);
    if (at == INT64_MAX)
        race_fail(w, "it hangs: completed %d, an end is %sstored", w->completed,
                  race_final(w) ? "" : "not ");
    int64_t ms = at > w->server.clock_ms ? at - w->server.clock_ms : 0;
    if (sgi_timers_next_due_ms(&w->client.engine.timers) <= w->client.clock_ms + ms) {
        int64_t now = w->client.clock_ms + ms;
        race_history(&w->client_history, "tick", 4);
        race_history(&w->client_history, &now, sizeof now);
    }
    fake_host_advance(&w->server, ms);
    fake_host_advance(&w->client, ms);
}

/* ---- the server's lives ---- */

static void server_start(race_world *w)
{
    segue_server *server = fake_server_new(&w->server);
    race_check(w, server != NULL);
    w->handle = server;
    server->stage = SGI_SERVER_NEW; /* the server has a store to look into */
    if (w->row->dialect == RACE_D)
        server->dialects |= SEGUE_DIALECT_DRAFT_TASKS;
    race_add_tool(w);
    w->handler = (race_handler){.next_segment = 1};
    w->ends = 0;
    w->lives++;
    connect_other(w);
}

static void lose_server(race_world *w)
{
    wire_cut(&w->wires[0]);
    wire_cut(&w->wires[1]);
    if (!w->session)
        return;
    race_history(&w->client_history, "lost", 4);
    race_history(&w->client_history, &w->client.clock_ms, sizeof(int64_t));
    sgi_conn_on_lost(w->session->conn, "the server is gone");
}

void race_crash(race_world *w, bool late)
{
    if (late)
        fake_store_land(&w->server);
    drop_heap_drop(&w->server_heap);
    fake_host_crash(&w->server, &w->server_heap.mem, (uint64_t)w->lives + 1);
    lose_server(w);
    server_start(w);
}

/* Ends the server as the end of a runtime does: its connections end first. All memory
 * must be returned then. */
static void server_end(race_world *w)
{
    for (int i = 0; i < 2; i++)
        if (w->wires[i].conn)
            sgi_conn_detach(w->wires[i].conn);
    fake_server_end(w->handle);
    race_let_call_go(w);
    race_check(w, w->handler.freed == w->handler.watched);
    race_check(w, w->handler.inputs == w->handler.asked);
    race_check(w, sgi_timers_next_due_ms(&w->server.engine.timers) == INT64_MAX);
}

void race_restart(race_world *w)
{
    server_end(w);
    fake_host_reboot(&w->server, (uint64_t)w->lives + 1);
    if (w->server_heap.live)
        race_fail(w, "%zu bytes are left of a server", w->server_heap.live);
    lose_server(w);
    server_start(w);
}

/* ---- the beginning ---- */

static void session_start(race_world *w)
{
    segue_session_options options = {.struct_size = sizeof options,
                                     .name = "race",
                                     .version = "1",
                                     .era = w->row->dialect == RACE_X ? SEGUE_ERA_MODERN
                                                                      : SEGUE_ERA_LEGACY,
                                     .probe_timeout_ms = 5000,
                                     .request_timeout_ms = 60000,
                                     .max_reconnects = 20,
                                     .max_result_bytes = 1 << 20,
                                     .max_requests = 16};
    if (w->row->dialect == RACE_D)
        options.dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
    race_check(w, sgi_session_new(&w->client.engine, NULL, &options,
                                  SGI_STR("{\"elicitation\":{}}"), NULL,
                                  &w->session) == SEGUE_OK);
    w->session->conn->can_reopen = true;
    connect_wire(w, 0);
    sgi_conn_start(w->session->conn);
}

static bool has_call(const race_world *w)
{
    return w->handle->cluster.by_task.count || !LIST_EMPTY(&w->handle->calls.running);
}

/* Runs until the server has the call and nothing else has happened. */
void race_begin(void *user)
{
    race_world *w = user;
    const race_row *row = w->row;
    explorer_world *explorer = w->explorer;
    *w = (race_world){.row = row, .explorer = explorer};
    drop_heap_init(&w->server_heap);
    drop_heap_init(&w->client_heap);
    fake_host_init(&w->server, &w->server_heap.mem, 1);
    fake_host_init(&w->client, &w->client_heap.mem, 1001);
    server_start(w);
    session_start(w);
    race_start_call(w);
    for (int i = 0; i < 100 && !has_call(w); i++) {
        race_settle(w);
        fake_store_answer(&w->server, SEGUE_OK);
        if (w->wires[0].count)
            race_read(w);
    }
    race_check(w, has_call(w));
    race_replay(w, row->from);
}

/* ---- the end ---- */

static bool store_goes_on(race_world *w)
{
    bool any = false;
    if (w->server.batch.op_count) {
        fake_store_done(&w->server, SEGUE_OK);
        any = true;
    }
    any |= fake_store_commit(&w->server, SEGUE_OK);
    any |= fake_store_answer(&w->server, SEGUE_OK);
    return any;
}

static void run_out(race_world *w)
{
    bool any = true;
    for (int i = 0; any; i++) {
        race_check(w, i < 1000);
        race_settle(w);
        any = fake_host_deliver(&w->server) > 0;
        any |= store_goes_on(w);
        if (w->wires[0].count) {
            race_read(w);
            any = true;
        }
        sgi_op *op = race_op(w);
        if (w->handler.call && op && sgi_op_has_ended(op))
            race_let_call_go(w);
        race_judge_state(w);
    }
}

/* Returns whether the request and its task have ended. This includes a call that was
 * withdrawn before there was a task. */
static bool is_over(const race_world *w)
{
    bool nothing = !race_record(w) && !race_op(w);
    return w->completed && (w->broken || race_final(w) || nothing);
}

/* Lets only time pass from here on, so that the task ends by itself, and also the
 * request. */
void race_finish(void *user)
{
    race_world *w = user;
    w->finishing = true;
    run_out(w);
    race_judge_quiet(w);
    for (int i = 0; i < 60 && !is_over(w); i++) {
        race_pass(w);
        run_out(w);
    }
    race_judge_end(w);
    sgi_request_unref(w->request);
    sgi_session_close(w->session);
    sgi_conn_detach(w->session->conn);
    fake_host_deliver(&w->client);
    sgi_session_unref(w->session);
    fake_host_deliver(&w->client);
    server_end(w);
    wire_cut(&w->wires[0]);
    wire_cut(&w->wires[1]);
    fake_host_free(&w->client);
    fake_host_free(&w->server);
    race_check(w, w->freed == 1);
    if (w->server_heap.live || w->client_heap.live)
        race_fail(w, "%zu bytes are left of the server, %zu of the client",
                  w->server_heap.live, w->client_heap.live);
}

void race_drop(void *user)
{
    race_world *w = user;
    drop_heap_drop(&w->server_heap);
    drop_heap_drop(&w->client_heap);
    wire_cut(&w->wires[0]);
    wire_cut(&w->wires[1]);
    fake_host_crash(&w->server, &w->server_heap.mem, 1);
    fake_host_crash(&w->client, &w->client_heap.mem, 1);
    fake_host_free(&w->server); /* this also frees the stored rows */
    fake_host_free(&w->client);
}

void race_world_explorer(race_world *w, const race_row *row, explorer_world *explorer)
{
    *w = (race_world){.row = row, .explorer = explorer};
    *explorer = (explorer_world){w,         race_begin,  race_enabled, race_step,
                                 race_hash, race_finish, race_drop,    race_name};
}
