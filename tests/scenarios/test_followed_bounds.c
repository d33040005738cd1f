/* Changes that clients request for a task of another server wait at their server until
 * the task's owner has handled them. Forwarded commands wait at a server that may have
 * taken the task over. Both are bounded: beyond the bound a client gets an error, and
 * earlier requests are still handled. */
#include "support/draft_wire.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/cluster/forwarding.h"
#include "engine/server/server.h"
#include "store/store.h"

#define EACH ((int)SGI_FORWARDS_EACH)
#define ALL ((int)SGI_FORWARDS_MAX)
#define MIB (1024 * 1024)
#define TOO_MUCH "{\"reason\":\"limit\",\"retryAfterMs\":1000}"
#define ACCEPT                                                                           \
    ",\"inputResponses\":{\"input-1\":{\"action\":\"accept\",\"content\":{"              \
    "\"confirm\":true}}}"
#define HOPS 400
#define PATIENCE_MS 11000 /* longer than a server waits for a forwarded command */

static world other; /* server B; the world of the scenario is server A */

static void begin(world *w)
{
    other = (world){.tune = w->tune};
    world_begin_beside(w, &other);
}

static void end(void)
{
    assert_int_equal(other.server->cluster.forwards, 0);
    assert_int_equal(other.server->cluster.forward_bytes, 0);
    world_end(&other);
}

/* Returns whether a thread of the store takes commands while they are being written. */
static bool is_too_fast(const world *w)
{
    return world_is_slow(w);
}

static void many(segue_server_options *options)
{
    options->max_requests = 4000;
    options->max_principal_requests = 4000;
}

/* ---- requests without waiting: time stands still, and B has no turn ---- */

static void feed(wire *c, char *line)
{
    wire_feed(c, line, strlen(line));
    wire_feed(c, "\n", 1);
    free(line);
}

static void feed_about(wire *c, int id, const char *method, const char *task,
                       const char *more)
{
    char number[24];
    char *params = malloc(strlen(task) + strlen(more) + 32);
    snprintf(number, sizeof number, "%d", id);
    sprintf(params, "\"taskId\":\"%s\"%s", task, more);
    feed(c, wire_line(number, method, params, CAPS_ALL));
    free(params);
}

static sgi_op *find(const world *w, const char *task)
{
    sgi_op *op = sgi_cluster_known_task(&w->server->cluster, sgi_str_of(task));
    assert_non_null(op);
    return op;
}

/* Forwards this many bytes that mean nothing to the owner and are given up after a
 * while. */
static void send_much(sgi_op *op, size_t bytes)
{
    for (; bytes; bytes -= MIB) {
        char *payload = malloc(MIB);
        memset(payload, ' ', MIB);
        payload[0] = '{';
        payload[MIB - 1] = '}';
        assert_int_equal(sgi_forward_answer(op, "nothing", (sgi_str){payload, MIB}, true),
                         SEGUE_OK);
        free(payload);
    }
}

static const char *response(wire *c, int id)
{
    char number[24];
    snprintf(number, sizeof number, "%d", id);
    return wire_response(c, number);
}

static void must_be_refused(wire *c, int id)
{
    const char *r = response(c, id);
    assert_code(r, -32603);
    assert_at(r, "error.data", TOO_MUCH);
}

static void must_be_taken(wire *c, int id)
{
    assert_true(*json_at(response(c, id), "result"));
}

static const char *make_known(wire *a, wire *b, const char *tool)
{
    const char *id = wire_make_task(a, "\"make\"", tool, NULL, CAPS_ALL);
    world_run(a->w);
    wire_task(b, "\"look\"", "tasks/get", id, NULL);
    return id;
}

static const char *until_ended(wire *c, const char *id, const char *status)
{
    const char *r = NULL;
    for (int i = 0; i < HOPS; i++) {
        r = wire_task(c, "\"again\"", "tasks/get", id, NULL);
        if (!strcmp(json_at(r, "result.status"), status))
            return r;
        world_run(c->w);
    }
    fail_msg("never %s: %s", status, r);
    return NULL;
}

/* ---- at the sender ---- */

static void wishes_for_one_task(world *w)
{
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = make_known(a, b, "hang");
    for (int i = 0; i < EACH + 3; i++)
        feed_about(b, i, "tasks/cancel", id, "");
    world_run(w);
    assert_int_equal(other.server->cluster.counts.refused, 3);
    for (int i = 0; i < EACH + 3; i++)
        if (i < EACH)
            must_be_taken(b, i);
        else
            must_be_refused(b, i);
    until_ended(a, id, "\"cancelled\"");
    end();
}

static void wishes_for_all_tasks(world *w)
{
    const int tasks = (int)(ALL / EACH);
    char ids[tasks + 1][64];
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    for (int t = 0; t <= tasks; t++)
        snprintf(ids[t], sizeof ids[t], "%s", make_known(a, b, "hang"));
    for (int i = 0; i < ALL; i++)
        feed_about(b, i, "tasks/cancel", ids[i / EACH], "");
    feed_about(b, ALL, "tasks/cancel", ids[tasks], "");
    for (int i = 0; i < 40; i++) /* the store has room for this many at a time */
        world_run(w);
    must_be_refused(b, ALL);
    until_ended(b, ids[0], "\"cancelled\"");
    wire_task(b, "\"once more\"", "tasks/cancel", ids[tasks], NULL);
    until_ended(a, ids[tasks], "\"cancelled\"");
    end();
}

static void bytes_of_one_task(world *w)
{
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = make_known(a, b, "hang");
    const char *another = make_known(a, b, "hang");
    send_much(find(&other, id), SGI_FORWARDS_EACH_BYTES);
    feed_about(b, 1, "tasks/cancel", id, "");
    feed_about(b, 2, "tasks/cancel", another, "");
    world_run(w);
    must_be_refused(b, 1);
    must_be_taken(b, 2);
    world_advance(w, PATIENCE_MS);
    feed_about(b, 3, "tasks/cancel", id, "");
    world_run(w);
    must_be_taken(b, 3);
    until_ended(b, id, "\"cancelled\"");
    end();
}

static void bytes_of_all_tasks(world *w)
{
    const int tasks = (int)(SGI_FORWARDS_BYTES / SGI_FORWARDS_EACH_BYTES);
    char ids[tasks + 1][64];
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    for (int t = 0; t <= tasks; t++)
        snprintf(ids[t], sizeof ids[t], "%s", make_known(a, b, "hang"));
    for (int t = 0; t < tasks; t++)
        send_much(find(&other, ids[t]), SGI_FORWARDS_EACH_BYTES);
    feed_about(b, 1, "tasks/cancel", ids[tasks], "");
    world_run(w);
    must_be_refused(b, 1);
    world_advance(w, PATIENCE_MS);
    feed_about(b, 2, "tasks/cancel", ids[tasks], "");
    until_ended(a, ids[tasks], "\"cancelled\"");
    must_be_taken(b, 2);
    end();
}

/* Nothing of it stays behind. */
static void a_server_ends_meanwhile(world *w)
{
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = make_known(a, b, "hang");
    send_much(find(&other, id), SGI_FORWARDS_EACH_BYTES);
    world_run(w);
    assert_int_equal(other.server->cluster.forwards, SGI_FORWARDS_EACH_BYTES / MIB);
    feed_about(b, 1, "tasks/cancel", id, "");
    world_end(&other); /* ending a world checks for leaks */
}

/* A command holds its operation. A server that has let go of an operation sends none, or
 * nobody would ever drop it. */
static void nothing_is_sent_for_what_was_let_go(world *w)
{
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    sgi_op *op = find(&other, make_known(a, b, "hang"));
    sgi_op_ref(op);
    sgi_server_take_from_maps(op);
    assert_int_equal(sgi_forward_cancel(op), SEGUE_E_STORE);
    assert_int_equal(other.server->cluster.forwards, 0);
    sgi_op_unref(op);
    end();
}

/* 2025-11-25: a client that waits for the outcome is told that there will be none. */
static void wishes_of_2025(world *w)
{
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = legacy_connect(w, "Ada", NULL);
    wire *b = legacy_connect(&other, "Ada", NULL);
    const char *id = legacy_make_task(a, "\"make\"", "hang", NULL, NULL);
    legacy_task(b, "\"look\"", "tasks/get", id, NULL);
    for (int i = 0; i <= EACH; i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tasks/cancel\","
                 "\"params\":{\"taskId\":\"%s\"}}",
                 i, id);
        feed(b, strdup(line));
    }
    world_run(w);
    assert_at(response(b, 0), "result.status", "\"cancelled\"");
    assert_at(response(b, EACH - 1), "result.status", "\"cancelled\"");
    must_be_refused(b, EACH);
    end();
}

/* An answer beyond the bound is refused, and its question stays open. */
static void answers_to_a_question(world *w)
{
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = make_known(a, b, "confirm_delete");
    send_much(find(&other, id), SGI_FORWARDS_EACH_BYTES);
    feed_about(b, 1, "tasks/update", id, ACCEPT);
    world_run(w);
    must_be_refused(b, 1);
    world_advance(w, PATIENCE_MS);
    feed_about(b, 2, "tasks/update", id, ACCEPT);
    world_run(w);
    must_be_taken(b, 2);
    until_ended(b, id, "\"completed\"");
    end();
}

/* The same for the draft, which sends answers with tasks/get. */
static void draft_answers(world *w)
{
    char more[512];
    const char *r = NULL;
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = draft_connect(w, "Ada", "{\"elicitation\":{}}");
    wire *b = draft_connect(&other, "Ada", "{\"elicitation\":{}}");
    const char *id = draft_make_task(a, "\"make\"", "confirm_delete", NULL);
    for (int i = 0; i < HOPS; i++) {
        r = legacy_task(b, "\"look\"", "tasks/get", id, NULL);
        if (!strcmp(json_at(r, "result.status"), "\"input_required\""))
            break;
    }
    snprintf(more, sizeof more, "\"requestState\":%s%s", draft_state_of(r), ACCEPT);
    send_much(find(&other, id), SGI_FORWARDS_EACH_BYTES);
    legacy_ask_about(b, "1", "tasks/get", id, more);
    must_be_refused(b, 1);
    legacy_ask_about(b, "2", "tasks/cancel", id, NULL);
    must_be_refused(b, 2);
    world_advance(w, PATIENCE_MS);
    legacy_ask_about(b, "3", "tasks/get", id, more);
    must_be_taken(b, 3);
    legacy_get_until(b, id, "completed");
    end();
}

/* An answer beyond the bound cannot be refused here: the client is asked once more. */
static void a_question_of_2025(world *w)
{
    char answer[256];
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = legacy_connect(w, "Ada", "{\"elicitation\":{}}");
    wire *b = legacy_connect(&other, "Ada", "{\"elicitation\":{}}");
    const char *id = legacy_make_task(a, "\"make\"", "confirm_delete", NULL, NULL);
    wire_cut(a);
    legacy_ask_about(b, "1", "tasks/result", id, NULL);
    for (int i = 0; i < 2; i++) {
        const char *question = wire_request(b, "elicitation/create");
        if (!i)
            send_much(find(&other, id), SGI_FORWARDS_EACH_BYTES);
        else
            world_advance(w, PATIENCE_MS);
        snprintf(answer, sizeof answer,
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\","
                 "\"content\":{\"confirm\":true}}}",
                 json_at(question, "id"));
        wire_send(b, answer);
    }
    for (int i = 0; i < HOPS && !strstr(wire_history(b), "deleted"); i++)
        world_run(w);
    assert_true(*json_at(wire_response(b, "1"), "result.content.0"));
    end();
}

static const uint8_t key_of_service[32] = {3, 1, 4, 1, 5, 9};

static void of_a_service(segue_server_options *options)
{
    options->seal_key = key_of_service;
    options->seal_key_len = sizeof key_of_service;
}

static const char *keyed(wire *c, int id, const char *more)
{
    char line[4096];
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
             "\"name\":\"ask_once\",\"arguments\":{}%s,\"_meta\":{"
             "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
             "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"t\",\"version\":\"1\"},"
             "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}},"
             "\"dev.segue/idempotencyKey\":\"a-key-of-some-length\"}}}",
             id, more);
    wire_send(c, line);
    for (int i = 0; i < 40; i++)
        world_run(c->w);
    return response(c, id);
}

/* An answer that comes with the call itself. */
static void rounds_of_a_keyed_call(world *w)
{
    char more[3000];
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    keyed(a, 1, "");
    const char *r = keyed(b, 2, "");
    snprintf(more, sizeof more, ",\"requestState\":%s%s",
             json_at(r, "result.requestState"), ACCEPT);
    send_much(TAILQ_FIRST(&other.server->cluster.followed_ops)->op,
              SGI_FORWARDS_EACH_BYTES);
    assert_at(keyed(b, 3, more), "error.data", TOO_MUCH);
    world_advance(w, PATIENCE_MS);
    r = keyed(b, 4, more);
    assert_at(r, "result.resultType", "\"complete\"");
    assert_int_equal(world_runs(w, "ask_once"), 1);
    world_jump(w, 700000); /* all rounds have expired */
    end();
}

/* ---- at a server that may have taken over ---- */

static size_t waiting(size_t *bytes)
{
    const sgi_feed_change *news;
    size_t count = 0;
    *bytes = 0;
    TAILQ_FOREACH(news, &other.server->cluster.commands, link) {
        count++;
        *bytes += news->what.data_len;
    }
    return count;
}

static void no_wake(void *user)
{
    (void)user;
}

/* Posts a command as a sender that does not listen any more. */
static void post(world *w, const char *task, const char *letter, size_t len)
{
    sgi_store_listener *listener;
    const sgi_op *op = find(w, task);
    assert_int_equal(sgi_store_listen(w->store, no_wake, NULL, &listener), SEGUE_OK);
    assert_int_equal(sgi_store_post_command(listener, op->id, letter, len), SEGUE_OK);
    sgi_store_unlisten(listener);
}

/* Sends commands without meaning to a task of A, which takes them. B cannot know whose
 * they are while it takes over operations. Returns the most commands that waited at B. */
static size_t most_that_wait(world *w, const char *task, int count, size_t len,
                             size_t *bytes)
{
    size_t most = 0;
    char *letter = malloc(len);
    memset(letter, ' ', len);
    letter[0] = '{';
    letter[len - 1] = '}';
    for (int i = 0; i < count; i++) {
        post(w, task, letter, len);
        world_run(&other); /* B gets them first */
        size_t now = waiting(bytes);
        most = now > most ? now : most;
    }
    free(letter);
    return most;
}

static void letters_wait_for(world *w, int count, size_t len, size_t most,
                             size_t most_bytes)
{
    size_t bytes;
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = make_known(a, b, "hang");
    other.server->cluster.recovering++;
    sgi_server_ref(other.server);
    size_t got = most_that_wait(w, id, count, len, &bytes);
    assert_int_equal(got, most);
    assert_true(bytes <= most_bytes);
    assert_int_equal(other.server->cluster.command_count, got);
    assert_int_equal(other.server->cluster.command_bytes, bytes);
    /* B has finished taking over, and handles later commands at once. */
    other.server->cluster.recovering--;
    sgi_forwarded_commands_run_waiting(&other.server->cluster);
    sgi_server_unref(other.server);
    assert_int_equal(waiting(&bytes), 0);
    assert_int_equal(other.server->cluster.command_count, 0);
    assert_int_equal(other.server->cluster.command_bytes, 0);
    const char *mine = make_known(b, a, "hang");
    wire_task(a, "\"cancel\"", "tasks/cancel", mine, NULL);
    world_advance(w, 1000);
    until_ended(a, mine, "\"cancelled\"");
    end();
}

static void letters_wait(world *w)
{
    const int most = (int)SGI_COMMANDS_WAITING_MAX;
    letters_wait_for(w, most + 200, 2, SGI_COMMANDS_WAITING_MAX, MIB);
}

static void bytes_of_letters_wait(world *w)
{
    letters_wait_for(w, 72, MIB, SGI_COMMANDS_WAITING_BYTES / MIB,
                     SGI_COMMANDS_WAITING_BYTES);
}

/* Over HTTP the server has a turn with each request. */
#define FLAGS (ONLY_HERE | ONE_DRIVE | NOT_HTTP)

static const scenario scenarios[] = {
    {"wishes for one task of another server are bounded", wishes_for_one_task, FLAGS,
     NULL},
    {"wishes for all tasks of other servers are bounded", wishes_for_all_tasks, FLAGS,
     many},
    {"bytes for one task of another server are bounded", bytes_of_one_task, FLAGS, NULL},
    {"bytes for all tasks of other servers are bounded", bytes_of_all_tasks, FLAGS, many},
    {"nothing is sent for a task that was let go", nothing_is_sent_for_what_was_let_go,
     FLAGS, NULL},
    {"a server ends while changes of another's task wait", a_server_ends_meanwhile, FLAGS,
     NULL},
    {"wishes of 2025-11-25 for a task of another server are bounded", wishes_of_2025,
     FLAGS, NULL},
    {"an answer over the bounds of another server's task is told", answers_to_a_question,
     FLAGS, NULL},
    {"an answer of the draft over the bounds is told", draft_answers, FLAGS, draft_on},
    {"a question at another server is asked again", a_question_of_2025, FLAGS, NULL},
    {"an answer of a keyed call over the bounds is told", rounds_of_a_keyed_call, FLAGS,
     of_a_service},
    {"letters that wait for a take-over are bounded", letters_wait, FLAGS, NULL},
    {"bytes of letters that wait for a take-over are bounded", bytes_of_letters_wait,
     FLAGS, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
