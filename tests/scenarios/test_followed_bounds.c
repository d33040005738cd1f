/* What clients want changed of a task that another server runs waits, at the server that
 * was asked, until its owner has dealt with it, and letters wait at who may have taken
 * their task over. Neither is without bounds: who goes over them is told, and what was
 * there before is dealt with. */
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

#include "engine/serving/errands.h"
#include "engine/serving/server.h"
#include "store/store.h"

#define MIB (1024 * 1024)
#define TOO_MUCH "{\"reason\":\"limit\",\"retryAfterMs\":1000}"
#define ACCEPT                                                                           \
    ",\"inputResponses\":{\"input-1\":{\"action\":\"accept\",\"content\":{"              \
    "\"confirm\":true}}}"
#define HOPS 400
#define PATIENCE_MS 11000 /* longer than an errand is waited for */

static world other; /* B; the world of the scenario is A */

static void begin(world *w)
{
    other = (world){.tune = w->tune};
    world_begin_beside(w, &other);
}

static void end(void)
{
    assert_int_equal(other.server->errands, 0);
    assert_int_equal(other.server->errand_bytes, 0);
    world_end(&other);
}

/* A thread of the store's own takes letters while they are being written. */
static bool is_too_fast(const world *w)
{
    return world_is_slow(w);
}

static void many(segue_server_options *options)
{
    options->max_requests = 4000;
    options->max_principal_requests = 4000;
}

/* ---- asking without waiting: time stands still, and B has no turn ---- */

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
    sgi_map_node *node = sgi_map_find(&w->server->by_task, sgi_str_of(task));
    assert_non_null(node);
    return SGI_OWNER(node, sgi_op, by_task);
}

/* So much is on its way, means nothing to the owner, and is given up after a while. */
static void send_much(sgi_op *op, size_t bytes)
{
    for (; bytes; bytes -= MIB) {
        char *payload = malloc(MIB);
        memset(payload, ' ', MIB);
        payload[0] = '{';
        payload[MIB - 1] = '}';
        assert_int_equal(sgi_errand_answer(op, "nothing", (sgi_str){payload, MIB}, true),
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

/* ---- at who sends ---- */

static void wishes_for_one_task(world *w)
{
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = make_known(a, b, "hang");
    for (int i = 0; i < SGI_ERRANDS_EACH + 3; i++)
        feed_about(b, i, "tasks/cancel", id, "");
    world_run(w);
    assert_int_equal(other.server->counts.refused, 3);
    for (int i = 0; i < SGI_ERRANDS_EACH + 3; i++)
        if (i < SGI_ERRANDS_EACH)
            must_be_taken(b, i);
        else
            must_be_refused(b, i);
    until_ended(a, id, "\"cancelled\"");
    end();
}

static void wishes_for_all_tasks(world *w)
{
    enum { TASKS = SGI_ERRANDS_MAX / SGI_ERRANDS_EACH };
    static char ids[TASKS + 1][64];
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    for (int t = 0; t <= TASKS; t++)
        snprintf(ids[t], sizeof ids[t], "%s", make_known(a, b, "hang"));
    for (int i = 0; i < SGI_ERRANDS_MAX; i++)
        feed_about(b, i, "tasks/cancel", ids[i / SGI_ERRANDS_EACH], "");
    feed_about(b, SGI_ERRANDS_MAX, "tasks/cancel", ids[TASKS], "");
    for (int i = 0; i < 40; i++) /* the store has room for so many at a time */
        world_run(w);
    must_be_refused(b, SGI_ERRANDS_MAX);
    until_ended(b, ids[0], "\"cancelled\"");
    wire_task(b, "\"once more\"", "tasks/cancel", ids[TASKS], NULL);
    until_ended(a, ids[TASKS], "\"cancelled\"");
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
    send_much(find(&other, id), SGI_ERRANDS_EACH_BYTES);
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
    enum { TASKS = SGI_ERRANDS_BYTES / SGI_ERRANDS_EACH_BYTES };
    static char ids[TASKS + 1][64];
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    for (int t = 0; t <= TASKS; t++)
        snprintf(ids[t], sizeof ids[t], "%s", make_known(a, b, "hang"));
    for (int t = 0; t < TASKS; t++)
        send_much(find(&other, ids[t]), SGI_ERRANDS_EACH_BYTES);
    feed_about(b, 1, "tasks/cancel", ids[TASKS], "");
    world_run(w);
    must_be_refused(b, 1);
    world_advance(w, PATIENCE_MS);
    feed_about(b, 2, "tasks/cancel", ids[TASKS], "");
    until_ended(a, ids[TASKS], "\"cancelled\"");
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
    send_much(find(&other, id), SGI_ERRANDS_EACH_BYTES);
    world_run(w);
    assert_int_equal(other.server->errands, SGI_ERRANDS_EACH_BYTES / MIB);
    feed_about(b, 1, "tasks/cancel", id, "");
    world_end(&other); /* which looks for leaks */
}

/* 2025-11-25: who waits for the outcome hears that there will be none. */
static void wishes_of_2025(world *w)
{
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = legacy_connect(w, "Ada", NULL);
    wire *b = legacy_connect(&other, "Ada", NULL);
    const char *id = legacy_make_task(a, "\"make\"", "hang", NULL, NULL);
    legacy_task(b, "\"look\"", "tasks/get", id, NULL);
    for (int i = 0; i <= SGI_ERRANDS_EACH; i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tasks/cancel\","
                 "\"params\":{\"taskId\":\"%s\"}}",
                 i, id);
        feed(b, strdup(line));
    }
    world_run(w);
    assert_at(response(b, 0), "result.status", "\"cancelled\"");
    assert_at(response(b, SGI_ERRANDS_EACH - 1), "result.status", "\"cancelled\"");
    must_be_refused(b, SGI_ERRANDS_EACH);
    end();
}

/* An answer that is over the bound is told, and its question stays open. */
static void answers_to_a_question(world *w)
{
    if (is_too_fast(w))
        return;
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = make_known(a, b, "confirm_delete");
    send_much(find(&other, id), SGI_ERRANDS_EACH_BYTES);
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

/* The same for the draft, which brings answers by tasks/get. */
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
    send_much(find(&other, id), SGI_ERRANDS_EACH_BYTES);
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

/* Nobody can be told: who is asked is asked once more. */
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
            send_much(find(&other, id), SGI_ERRANDS_EACH_BYTES);
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
    send_much(TAILQ_FIRST(&other.server->followed_ops), SGI_ERRANDS_EACH_BYTES);
    assert_at(keyed(b, 3, more), "error.data", TOO_MUCH);
    world_advance(w, PATIENCE_MS);
    r = keyed(b, 4, more);
    assert_at(r, "result.resultType", "\"complete\"");
    assert_int_equal(world_runs(w, "ask_once"), 1);
    world_jump(w, 700000); /* nobody's round is out any more */
    end();
}

/* ---- at who may have taken over ---- */

static size_t waiting(size_t *bytes)
{
    const sgi_news *news;
    size_t count = 0;
    *bytes = 0;
    TAILQ_FOREACH(news, &other.server->keeper.letters, link) {
        count++;
        *bytes += news->what.data_len;
    }
    return count;
}

static void no_ring(void *user)
{
    (void)user;
}

/* Who posts it and listens no more. */
static void post(world *w, const char *task, const char *letter, size_t len)
{
    sgi_store_listener *listener;
    const sgi_op *op = find(w, task);
    assert_int_equal(sgi_store_listen(w->store, no_ring, NULL, &listener), SEGUE_OK);
    assert_int_equal(sgi_store_post(listener, op->id, letter, len), SEGUE_OK);
    sgi_store_unlisten(listener);
}

/* Letters of no meaning to a task of A, which takes them, while B cannot know whose they
 * are: it takes operations over. Returns how many waited at B at most. */
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
        world_run(&other); /* B hears of it first */
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
    other.server->recovering++;
    sgi_server_ref(other.server);
    size_t got = most_that_wait(w, id, count, len, &bytes);
    assert_int_equal(got, most);
    assert_true(bytes <= most_bytes);
    assert_int_equal(other.server->keeper.letter_count, got);
    assert_int_equal(other.server->keeper.letter_bytes, bytes);
    /* It is done, and hears what comes from then on. */
    other.server->recovering--;
    sgi_letters_deal(&other.server->keeper);
    sgi_server_unref(other.server);
    assert_int_equal(waiting(&bytes), 0);
    assert_int_equal(other.server->keeper.letter_count, 0);
    assert_int_equal(other.server->keeper.letter_bytes, 0);
    const char *mine = make_known(b, a, "hang");
    wire_task(a, "\"cancel\"", "tasks/cancel", mine, NULL);
    world_advance(w, 1000);
    until_ended(a, mine, "\"cancelled\"");
    end();
}

static void letters_wait(world *w)
{
    letters_wait_for(w, SGI_LETTERS_WAIT_MAX + 200, 2, SGI_LETTERS_WAIT_MAX, MIB);
}

static void bytes_of_letters_wait(world *w)
{
    letters_wait_for(w, 72, MIB, SGI_LETTERS_WAIT_BYTES / MIB, SGI_LETTERS_WAIT_BYTES);
}

/* HTTP has a turn with each request. */
#define FLAGS (ONLY_HERE | ONE_DRIVE | NOT_HTTP)

static const scenario scenarios[] = {
    {"wishes for one task of another server are bounded", wishes_for_one_task, FLAGS,
     NULL},
    {"wishes for all tasks of other servers are bounded", wishes_for_all_tasks, FLAGS,
     many},
    {"bytes for one task of another server are bounded", bytes_of_one_task, FLAGS, NULL},
    {"bytes for all tasks of other servers are bounded", bytes_of_all_tasks, FLAGS, many},
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
