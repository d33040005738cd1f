/* An answer reaches only the question that was asked: over a restart, at another server
 * of the same service, and from any client (2025-11-25 client/elicitation,
 * basic/utilities/tasks; R-0-2, R-C-14). A yes to question A never approves B. */
#include "support/legacy_wire.h"
#include "support/redis_kit.h"
#include "support/shared_store.h"
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
#include "engine/server/late_answer.h"

#define CAPS_FORM "{\"elicitation\":{}}"
#define CAPS_RESUME "{\"resumableRequests\":{},\"elicitation\":{}}"
#define POLICY "notifications/requests/resumePolicy"
#define CREATE "elicitation/create"
#define RELATED "\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}"
#define LEASE_MS 5000
#define HOPS 400 /* turns of both servers before a test gives up */

static world other; /* another server on the same store */
static const uint8_t key_of_service[32] = {3, 1, 4, 1, 5, 9};

static void of_a_service(segue_server_options *options)
{
    options->seal_key = key_of_service;
    options->seal_key_len = sizeof key_of_service;
}

/* Opens another connection of the same client: over HTTP in the same session. */
static wire *beside(world *w, const wire *c)
{
    wire *next = legacy_connect(w, "Ada", CAPS_FORM);
    free(next->session);
    next->session = strdup(c->session);
    return next;
}

static void call(wire *c, const char *id)
{
    wire_ask_plain(c, id, "tools/call", "\"name\":\"ask_once\",\"arguments\":{}");
}

static void question(wire *c, char id[WIRE_ID])
{
    snprintf(id, WIRE_ID, "%s", json_at(wire_request(c, CREATE), "id"));
    assert_true(*id);
}

/* word: what the tool must get; meta: members, or "". */
static void reply_about(wire *c, const char *id, const char *word, const char *meta)
{
    char line[1024];
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\","
             "\"content\":{\"for\":\"%s\"},\"_meta\":{%s}}}",
             id, word, meta);
    wire_send(c, line);
}

static void reply(wire *c, const char *id, const char *word)
{
    reply_about(c, id, word, "");
}

static void says(const char *response, const char *part)
{
    const char *text = json_at(response, "result.content.0.text");
    if (!strstr(text, part))
        fail_msg("%s is not in %s", part, response);
}

static void until(wire *c, const char *task, const char *status)
{
    char ask[24], wanted[32];
    const char *r = "";
    static int next;
    snprintf(wanted, sizeof wanted, "\"%s\"", status);
    for (int i = 0; i < HOPS; i++) {
        snprintf(ask, sizeof ask, "%d", 7000 + next++);
        r = legacy_task(c, ask, "tasks/get", task, NULL);
        if (!strcmp(json_at(r, "result.status"), wanted))
            return;
        world_run(c->w);
    }
    fail_msg("never %s: %s", status, r);
}

/* Question X is asked and its server dies. The next server asks question Y in the same
 * session. Then the client answers X. */
static void an_answer_over_a_restart(world *w)
{
    char of_x[WIRE_ID], of_y[WIRE_ID], session[256];
    wire *c = legacy_connect(w, "Ada", CAPS_FORM);
    const char *task = legacy_make_task(c, "1", "confirm_delete", NULL, NULL);
    question(c, of_x);
    snprintf(session, sizeof session, "%s", c->session);
    world_restart(w);
    wire *y = legacy_connect(w, "Ada", CAPS_FORM);
    free(y->session);
    y->session = strdup(session);
    wire *answers = beside(w, y);
    call(y, "2");
    question(y, of_y);
    assert_string_not_equal(of_x, of_y);
    reply(answers, of_x, "x");
    world_run(w);
    assert_null(strstr(wire_history(y), "accept"));
    reply(answers, of_y, "y");
    says(wire_response(y, "2"), "\"for\\\":\\\"y");
    until(answers, task, "completed"); /* X has its own answer */
    says(legacy_task(answers, "3", "tasks/result", task, NULL), "\"for\\\":\\\"x");
}

/* The client is back after its server has died: in the same session, over HTTP with the
 * stream for messages of the server. */
static wire *back(world *w, const char *session)
{
    wire *c = legacy_connect(w, "Ada", CAPS_FORM);
    if (w->place != WORLD_HTTP)
        return c;
    free(c->session);
    c->session = strdup(session);
    wire_notify(c, "notifications/initialized", NULL);
    /* the server does not know which lists the client has from the server before */
    wire_notification(c, "notifications/tools/list_changed");
    wire_notification(c, "notifications/resources/list_changed");
    wire_notification(c, "notifications/prompts/list_changed");
    return c;
}

/* The client polls its task and does not wait for the result: it is asked all the
 * same. */
static void a_question_is_asked_again_after_a_restart(world *w)
{
    char first[WIRE_ID], again[WIRE_ID], session[256];
    wire *c = legacy_connect(w, "Ada", CAPS_FORM);
    const char *task = legacy_make_task(c, "1", "confirm_delete", NULL, NULL);
    question(c, first);
    snprintf(session, sizeof session, "%s", c->session ? c->session : "");
    world_restart(w);
    c = back(w, session);
    wire_quiet(c);
    assert_at(legacy_task(c, "2", "tasks/get", task, NULL), "result.status",
              "\"input_required\"");
    question(c, again);
    assert_string_not_equal(first, again);
    legacy_task(c, "3", "tasks/get", task, NULL);
    wire_quiet(c); /* the client is asked only once */
    reply(c, again, "again");
    until(c, task, "completed");
    says(legacy_task(c, "4", "tasks/result", task, NULL), "\"for\\\":\\\"again");
}

/* The same for a client with a new session, at a server that ran all the time. */
static void a_question_follows_to_a_new_session(world *w)
{
    char first[WIRE_ID], again[WIRE_ID];
    wire *c = legacy_connect(w, "Ada", CAPS_FORM);
    wire *foreign = legacy_connect(w, "Bob", CAPS_FORM);
    const char *task = legacy_make_task(c, "1", "confirm_delete", NULL, NULL);
    question(c, first);
    wire_cut(c);
    world_run(w);
    assert_code(legacy_task(foreign, "2", "tasks/get", task, NULL), -32602);
    wire_quiet(foreign);
    c = legacy_connect(w, "Ada", CAPS_FORM);
    legacy_task(c, "2", "tasks/get", task, NULL);
    if (w->place == WORLD_PAIR) {
        question(c, again);
        reply(c, again, "new");
    } else {
        reply(c, first, "new"); /* the question is open, in the session that was left */
    }
    until(c, task, "completed");
    says(legacy_task(c, "4", "tasks/result", task, NULL), "\"for\\\":\\\"new");
}

/* The client has left its session silently and opened another, in which it waits for the
 * result. There it is asked, once. The earlier question stays valid. */
static void moves_to_who_waits(world *w, bool answers_the_first)
{
    char first[WIRE_ID], again[WIRE_ID];
    wire *c = legacy_connect(w, "Ada", CAPS_FORM);
    const char *task = legacy_make_task(c, "1", "confirm_delete", NULL, NULL);
    question(c, first);
    wire_cut(c);
    world_run(w);
    c = legacy_connect(w, "Ada", CAPS_FORM);
    legacy_ask_about(c, "2", "tasks/result", task, NULL);
    question(c, again);
    assert_string_not_equal(first, again);
    wire *second = legacy_connect(w, "Ada", CAPS_FORM);
    legacy_ask_about(second, "3", "tasks/result", task, NULL);
    world_run(w);
    assert_null(strstr(wire_history(second), CREATE));
    reply(beside(w, c), answers_the_first ? first : again, "moved");
    says(wire_response(c, "2"), "\"for\\\":\\\"moved");
    says(wire_response(second, "3"), "\"for\\\":\\\"moved");
}

static void a_question_moves_to_who_waits(world *w)
{
    moves_to_who_waits(w, false);
}

static void what_was_asked_before_stays_good(world *w)
{
    moves_to_who_waits(w, true);
}

/* The client has a new session, in which it waits twice for the result. The stream on
 * which it was asked breaks. It is asked on the other one. */
static void a_question_moves_to_the_next_who_waits(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, "Ada", CAPS_FORM);
    const char *task = legacy_make_task(c, "1", "confirm_delete", NULL, NULL);
    question(c, id);
    wire_cut(c);
    world_advance(w, SGI_THRESHOLD(ask_again_ms));
    c = legacy_connect(w, "Ada", CAPS_FORM);
    wire *second = beside(w, c);
    legacy_ask_about(c, "2", "tasks/result", task, NULL);
    question(c, id);
    legacy_ask_about(second, "3", "tasks/result", task, NULL);
    world_run(w);
    assert_null(strstr(wire_history(second), CREATE));
    wire_cut(c);
    world_advance(w, SGI_THRESHOLD(ask_again_ms));
    question(second, id);
    reply(beside(w, second), id, "moved");
    says(wire_response(second, "3"), "\"for\\\":\\\"moved");
}

static shared_place *place; /* the place of a store with leases, or NULL */
static shared_store *instance_a, *instance_b;

static void open_instance(segue_store **out, shared_store **self)
{
    shared_options options = {0};
    assert_int_equal(shared_store_new(place, &options, self, out), SEGUE_OK);
}

static int64_t clock_of(void *user)
{
    return ((const world *)user)->clock_ms;
}

static void with_leases(world *w)
{
    if (place)
        shared_place_free(place);
    place = shared_place_new(LEASE_MS, clock_of, w);
    open_instance(&w->custom, &instance_a);
}

static redis_server *redis; /* a real store that servers share, or NULL */

static void open_redis(world *w)
{
    w->custom = redis_kit_open_lasting(redis_server_url(redis));
    w->slow = w->shared = 1;
}

/* Randomness starts equal in each world, so all use the same names: the server must hold
 * nothing of another world. */
static void with_redis(world *w)
{
    assert_int_not_equal(redis_server_do(redis, "FLUSHALL"), -1);
    open_redis(w);
}

static void begin(world *w)
{
    other = (world){.tune = w->tune};
    if (redis)
        open_redis(&other);
    else if (place)
        open_instance(&other.custom, &instance_b);
    world_begin_beside(w, &other);
}

static void lets_run(world *w)
{
    for (int i = 0; i < HOPS; i++)
        world_run(w);
}

/* One session behind one address: calls at both servers ask, and each answer arrives at
 * the other server. It reaches its call all the same. */
static void answers_that_come_to_the_other_server(world *w)
{
    char at_a[WIRE_ID], at_b[WIRE_ID];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    wire *b = beside(&other, a);
    wire *to_a = beside(w, a);
    wire *to_b = beside(&other, a);
    call(a, "1");
    call(b, "2");
    question(a, at_a);
    question(b, at_b);
    assert_string_not_equal(at_a, at_b);
    reply(to_b, at_a, "a");
    reply(to_a, at_b, "b");
    says(wire_response(a, "1"), "\"for\\\":\\\"a");
    says(wire_response(b, "2"), "\"for\\\":\\\"b");
    wire_expect_status(to_b, 202);
    wire_expect_status(to_a, 202);
    assert_int_equal(
        w->server->cluster.counts.commands + other.server->cluster.counts.commands, 2);
    world_end(&other);
}

/* Revision 2025-03-26 has batches. An answer in a batch reaches the server that asked. */
static void an_answer_in_a_batch(world *w)
{
    char id[WIRE_ID], line[512];
    begin(w);
    wire *a = legacy_connect_as(w, "Ada", "2025-03-26", CAPS_FORM);
    wire *b = legacy_connect_as(&other, "Ada", "2025-03-26", CAPS_FORM);
    free(b->session);
    b->session = strdup(a->session);
    call(a, "1");
    question(a, id);
    snprintf(line, sizeof line,
             "[{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\","
             "\"content\":{\"for\":\"batch\"}}}]",
             id);
    wire_send(b, line);
    says(wire_response(a, "1"), "\"for\\\":\\\"batch");
    wire_expect_status(b, 202);
    world_end(&other);
}

/* A forwarded answer is checked like a posted one. Another principal, another session of
 * the same principal, and a second answer change nothing. */
static void letters_that_do_not_belong(world *w)
{
    char id[WIRE_ID];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    wire *strange = legacy_connect(&other, "Bob", CAPS_FORM);
    wire *apart = legacy_connect(&other, "Ada", CAPS_FORM);
    wire *b = beside(&other, a);
    const uint64_t warned = w->warn_count;
    call(a, "1");
    question(a, id);
    reply(strange, id, "bob");
    lets_run(w);
    reply(apart, id, "apart");
    lets_run(w);
    assert_int_equal(w->warn_count, warned + 2);
    assert_null(strstr(wire_history(a), "accept"));
    reply(b, id, "mine");
    says(wire_response(a, "1"), "\"for\\\":\\\"mine");
    reply(b, id, "twice");
    lets_run(w);
    assert_int_equal(w->warn_count, warned + 3);
    world_end(&other);
}

/* Servers that share the key and no store cannot forward answers. The client is told to
 * send its answer again, and then reaches the server that asked. */
static void servers_without_a_common_store(world *w)
{
    char id[WIRE_ID];
    world apart = {.tune = w->tune, .place = w->place, .chance = w->chance + 77};
    world_begin(&apart);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    wire *b = beside(&apart, a);
    call(a, "1");
    question(a, id);
    reply(b, id, "elsewhere");
    lets_run(&apart);
    wire_expect_status(b, 503);
    b = beside(w, a);
    reply(b, id, "here");
    says(wire_response(a, "1"), "\"for\\\":\\\"here");
    world_end(&apart);
}

/* The server that asked has died, so nobody takes the answer. The next server that looks
 * removes the inbox that it left in the store. */
static void a_letter_to_a_server_that_died(world *w)
{
    char id[WIRE_ID], session[256];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    snprintf(session, sizeof session, "%s", a->session);
    call(a, "1");
    question(a, id);
    wire *b = beside(&other, a);
    world_stop(w);
    lets_run(&other);
    reply(b, id, "late");
    lets_run(&other);
    wire_expect_status(b, 503);
    assert_null(strstr(wire_history(b), "accept"));
    world_end(&other);
}

/* A server was away for longer than its lease, and another one has taken its inbox. It
 * makes a new inbox, and later questions are answered under the new name. */
static void a_server_that_comes_back_gets_letters(world *w)
{
    char id[WIRE_ID], old[SGI_OPERATION_TEXT + 1];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    wire *b = beside(&other, a);
    memcpy(old, w->server->mailbox.name, sizeof old);
    shared_store_away(instance_a, 1);
    world_advance(w, 3 * LEASE_MS);
    shared_store_away(instance_a, 0);
    world_advance(w, 3 * LEASE_MS);
    assert_string_not_equal(w->server->mailbox.name, old);
    const sgi_op *box =
        sgi_cluster_known_task(&w->server->cluster, sgi_str_of(w->server->mailbox.name));
    assert_true(box && sgi_op_is_created(box));
    assert_int_equal(w->server->cluster.by_task.count, 1);
    call(a, "1");
    question(a, id);
    assert_non_null(strstr(id, w->server->mailbox.name));
    reply(b, id, "new");
    world_advance(w, 1000);
    says(wire_response(a, "1"), "\"for\\\":\\\"new");
    world_end(&other);
}

/* The number of forwarded answers on their way is bounded: beyond it an answer is
 * refused, and accepted later. */
static void letters_on_their_way_are_bounded(world *w)
{
    char id[WIRE_ID];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    wire *b = beside(&other, a);
    call(a, "1");
    question(a, id);
    other.server->late.answers += SGI_LATE_ANSWERS_MAX;
    reply(b, id, "more");
    wire_expect_status(b, 503);
    other.server->late.answers -= SGI_LATE_ANSWERS_MAX;
    reply(b, id, "now");
    says(wire_response(a, "1"), "\"for\\\":\\\"now");
    assert_int_equal(other.server->late.answers, 0);
    assert_int_equal(other.server->late.bytes, 0);
    world_end(&other);
}

/* The answer to a task's question reaches the task from either server. */
static void a_task_is_answered_at_the_other_server(world *w)
{
    char id[WIRE_ID];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    const char *task = legacy_make_task(a, "1", "confirm_delete", NULL, NULL);
    question(a, id);
    wire *b = beside(&other, a);
    reply(b, id, "there");
    says(legacy_task(b, "3", "tasks/result", task, NULL), "\"for\\\":\\\"there");
    world_end(&other);
}

/* The answer to a task's question comes to B while B cannot reach the store. B refuses
 * the answer, because A does not know of it and would wait for ever. */
static void an_answer_that_cannot_be_stored_is_refused(world *w)
{
    char id[WIRE_ID];
    for (int knows = 0; knows < 2; knows++) {
        begin(w);
        wire *a = legacy_connect(w, "Ada", CAPS_FORM);
        const char *task = legacy_make_task(a, "1", "confirm_delete", NULL, NULL);
        question(a, id);
        wire *b = beside(&other, a);
        if (knows) /* B has the operation in memory, so it need not be looked up */
            until(b, task, "input_required");
        shared_store_away(instance_b, 1);
        reply(b, id, "lost");
        wire_expect_status(b, 503);
        shared_store_away(instance_b, 0);
        reply(b, id, "there");
        wire_expect_status(b, 202);
        says(legacy_task(b, "3", "tasks/result", task, NULL), "\"for\\\":\\\"there");
        assert_int_equal(other.server->late.answers, 0);
        world_end(&other);
        world_restart(w);
    }
}

/* A has lost its store and does not know that B runs the task now. A has an answer to
 * the question in memory, which B never gets. A refuses the next answer, so the client
 * sends it to B. */
static void an_answer_beside_one_that_is_not_stored_is_refused(world *w)
{
    char at_a[WIRE_ID], at_b[WIRE_ID];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    const char *task = legacy_make_task(a, "1", "confirm_delete", NULL, NULL);
    question(a, at_a);
    wire *b = beside(&other, a);
    shared_store_away(instance_a, 1);
    wire *to_a = beside(w, a);
    reply(to_a, at_a, "unstored");
    wire_expect_status(to_a, 202);
    world_advance(w, 2 * LEASE_MS);
    world_advance(&other, 2 * LEASE_MS);
    legacy_ask_about(b, "2", "tasks/result", task, NULL);
    question(b, at_b);
    reply(to_a, at_b, "lost");
    wire_expect_status(to_a, 503);
    reply(beside(&other, a), at_b, "there");
    says(wire_response(b, "2"), "\"for\\\":\\\"there");
    world_end(&other);
}

/* B forwards as many commands as it may, so it refuses an answer for A. */
static void an_answer_that_cannot_be_forwarded_is_refused(world *w)
{
    char id[WIRE_ID];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    const char *task = legacy_make_task(a, "1", "confirm_delete", NULL, NULL);
    question(a, id);
    wire *b = beside(&other, a);
    until(b, task, "input_required"); /* B has the operation in memory */
    other.server->cluster.forwards += SGI_FORWARDS_MAX;
    reply(b, id, "more");
    wire_expect_status(b, 503);
    other.server->cluster.forwards -= SGI_FORWARDS_MAX;
    reply(b, id, "there");
    wire_expect_status(b, 202);
    says(legacy_task(b, "3", "tasks/result", task, NULL), "\"for\\\":\\\"there");
    world_end(&other);
}

/* A client makes a call at A and resumes it at B (SEP-975). Returns its connection to B;
 * id: the id of the call's question. */
static wire *resume_at_the_other_server(world *w, char id[WIRE_ID])
{
    char params[256];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_RESUME);
    call(a, "123");
    snprintf(params, sizeof params, "\"resumeToken\":%s",
             json_at(wire_notification(a, POLICY), "params.resumeToken"));
    question(a, id);
    wire *b = legacy_connect(&other, "Ada", CAPS_RESUME);
    wire_ask_plain(b, "123", "requests/resume", params);
    question(b, id);
    return b;
}

/* The client has resumed its call at B (SEP-975), and B cannot reach the store when the
 * answer to the call's question comes. */
static void an_answer_to_a_resumed_call_is_refused(world *w)
{
    char id[WIRE_ID];
    wire *b = resume_at_the_other_server(w, id);
    wire *answers = beside(&other, b);
    shared_store_away(instance_b, 1);
    reply(answers, id, "lost");
    world_run(&other);
    wire_expect_status(answers, 503);
    shared_store_away(instance_b, 0);
    reply(answers, id, "there");
    says(wire_response(b, "123"), "\"for\\\":\\\"there");
    wire_expect_status(answers, 202);
    world_end(&other);
}

static int questions_in(const char *history)
{
    int n = 0;
    for (const char *at = history; (at = strstr(at, CREATE)); at++)
        n++;
    return n;
}

/* A client that answers at once is asked again after a pause. Without it, client and
 * server would exchange questions and answers as fast as they can, while the store is
 * away. Over HTTP the answer is refused. */
static void a_question_is_asked_again_after_a_pause(world *w)
{
    char id[WIRE_ID];
    wire *b = resume_at_the_other_server(w, id);
    shared_store_away(instance_b, 1);
    int asked = questions_in(wire_history(b));
    reply(b, id, "lost");
    world_run(&other);
    world_advance(&other, SGI_THRESHOLD(commit_retry_ms) - 1);
    assert_int_equal(questions_in(wire_history(b)), asked);
    world_advance(&other, 1);
    assert_int_equal(questions_in(wire_history(b)), asked + 1);
    shared_store_away(instance_b, 0);
    reply(b, id, "there");
    says(wire_response(b, "123"), "\"for\\\":\\\"there");
    world_end(&other);
}

/* The number of answers that are looked up in the store is bounded: beyond it they are
 * refused, and accepted later. */
static void late_answers_are_bounded(world *w)
{
    char id[WIRE_ID];
    begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    const char *task = legacy_make_task(a, "1", "confirm_delete", NULL, NULL);
    question(a, id);
    wire *b = beside(&other, a);
    other.server->late.answers += SGI_LATE_ANSWERS_MAX;
    reply(b, id, "more");
    wire_expect_status(b, 503);
    other.server->late.answers -= SGI_LATE_ANSWERS_MAX;
    other.server->late.bytes += SGI_LATE_ANSWERS_BYTES;
    reply(b, id, "large");
    wire_expect_status(b, 503);
    other.server->late.bytes -= SGI_LATE_ANSWERS_BYTES;
    reply(b, id, "now");
    wire_expect_status(b, 202);
    until(b, task, "completed");
    says(legacy_task(b, "3", "tasks/result", task, NULL), "\"for\\\":\\\"now");
    assert_int_equal(other.server->late.answers, 0);
    assert_int_equal(other.server->late.bytes, 0);
    world_end(&other);
}

/* Answers of another client, to another task, and repeated ones. */
static void answers_that_do_not_belong(world *w)
{
    char id[WIRE_ID], meta[160];
    wire *c = legacy_connect(w, "Ada", CAPS_FORM);
    wire *foreign = legacy_connect(w, "Bob", CAPS_FORM);
    const char *task = legacy_make_task(c, "1", "confirm_delete", NULL, NULL);
    const char *second = legacy_make_task(c, "2", "hang", NULL, NULL);
    const uint64_t warned = w->warn_count;
    question(c, id);
    reply(foreign, id, "bob");
    world_run(w);
    assert_int_equal(w->warn_count, warned + 1);
    snprintf(meta, sizeof meta, RELATED, second);
    reply_about(c, id, "second", meta);
    world_run(w);
    assert_int_equal(w->warn_count, warned + 2);
    until(c, task, "input_required");
    snprintf(meta, sizeof meta, RELATED, task);
    reply_about(c, id, "first", meta);
    until(c, task, "completed");
    reply(c, id, "late");
    world_run(w);
    assert_int_equal(w->warn_count, warned + 3);
    says(legacy_task(c, "3", "tasks/result", task, NULL), "\"for\\\":\\\"first");
}

static const scenario scenarios[] = {
    {"an answer over a restart reaches its question", an_answer_over_a_restart,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"a question is asked again after a restart",
     a_question_is_asked_again_after_a_restart, ONLY_HERE | ONE_DRIVE, of_a_service},
    {"a question follows its client to a new session",
     a_question_follows_to_a_new_session, ONLY_HERE | ONE_DRIVE, of_a_service},
    {"a question moves to who waits in another session", a_question_moves_to_who_waits,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"a question moves to the next who waits", a_question_moves_to_the_next_who_waits,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"what was asked before a question moved stays good",
     what_was_asked_before_stays_good, ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"an answer at another server reaches its call",
     answers_that_come_to_the_other_server, ONLY_HERE | ONLY_HTTP | ONE_DRIVE,
     of_a_service},
    {"an answer in a batch reaches its call at another server", an_answer_in_a_batch,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"a letter answers what its sender was asked", letters_that_do_not_belong,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"servers without a common store take no answer for each other",
     servers_without_a_common_store, ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"an answer to a server that died is refused", a_letter_to_a_server_that_died,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"answers on their way to another server are bounded",
     letters_on_their_way_are_bounded, ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"a task is answered at another server", a_task_is_answered_at_the_other_server,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"answers that are looked for are bounded", late_answers_are_bounded,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"answers that do not belong to a question are told and dropped",
     answers_that_do_not_belong, ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario leased[] = {
    {"an answer at another server reaches its call",
     answers_that_come_to_the_other_server, ONLY_HERE | ONLY_HTTP | ONE_DRIVE,
     of_a_service},
    {"a letter answers what its sender was asked", letters_that_do_not_belong,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"an answer that cannot be stored is refused",
     an_answer_that_cannot_be_stored_is_refused, ONLY_HERE | ONLY_HTTP | ONE_DRIVE,
     of_a_service},
    {"an answer beside one that is not stored is refused",
     an_answer_beside_one_that_is_not_stored_is_refused,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
    {"an answer that cannot be forwarded is refused",
     an_answer_that_cannot_be_forwarded_is_refused, ONLY_HERE | ONLY_HTTP | ONE_DRIVE,
     of_a_service},
    {"R-975-16 an answer to a resumed call that cannot be stored is refused",
     an_answer_to_a_resumed_call_is_refused, ONLY_HERE | ONLY_HTTP | ONE_DRIVE,
     of_a_service},
    {"a question whose answer was not stored is asked again after a pause",
     a_question_is_asked_again_after_a_pause, ONLY_HERE | NOT_HTTP | ONE_DRIVE,
     of_a_service},
    {"a server that was fenced gets letters again", a_server_that_comes_back_gets_letters,
     ONLY_HERE | ONLY_HTTP | ONE_DRIVE, of_a_service},
};

/* Each server has its own store handle on one Redis. Threads of the stores deliver the
 * forwarded answers. */
static const scenario of_redis[] = {
    {"an answer at another server reaches its call by Redis",
     answers_that_come_to_the_other_server, ONLY_HERE | ONLY_HTTP | ONE_DRIVE,
     of_a_service},
    {"a task is answered at another server by Redis",
     a_task_is_answered_at_the_other_server, ONLY_HERE | ONLY_HTTP | ONE_DRIVE,
     of_a_service},
};

int main(void)
{
    int failed = scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
    failed += scenarios_run_prepared(leased, sizeof leased / sizeof *leased, with_leases);
    shared_place_free(place);
    assert_true(redis_server_start(NULL, &redis));
    failed +=
        scenarios_run_prepared(of_redis, sizeof of_redis / sizeof *of_redis, with_redis);
    redis_server_stop(redis);
    return failed;
}
