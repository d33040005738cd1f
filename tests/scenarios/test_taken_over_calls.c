/* Several servers on one store, and one of them ends or is away. Calls go on that clients
 * resume (SEP-975) or repeat by their keys, at whichever server the clients come to. */
#include "support/take_over.h"
#include "support/legacy_wire.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/server/server.h"

#define CAPS_Z "{\"resumableRequests\":{}}"
#define CAPS_ASKED "{\"resumableRequests\":{},\"elicitation\":{}}"
#define POLICY "notifications/requests/resumePolicy"
#define KEY "\"dev.segue/idempotencyKey\":\"0123456789abcdef\""

/* ---- Z ---- */

static char token[128];

static void ask_resume(wire *c)
{
    char params[256];
    snprintf(params, sizeof params, "\"resumeToken\":%s", token);
    wire_ask_plain(c, "123", "requests/resume", params);
}

static wire *resumable_call_at(world *w, const char *params)
{
    wire *a = legacy_connect(w, "Ada", CAPS_Z);
    wire_ask_plain(a, "123", "tools/call", params);
    snprintf(token, sizeof token, "%s",
             json_at(wire_notification(a, POLICY), "params.resumeToken"));
    return a;
}

static wire *resumable_at(world *w)
{
    return resumable_call_at(
        w, "\"name\":\"story\",\"arguments\":{\"n\":5,\"delayMs\":300}");
}

/* Resumed live at B, while A runs it; the channel at A gets nothing more. */
static void a_request_is_resumed_there(world *w)
{
    take_over_begin(w);
    wire *a = resumable_at(w);
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    world_advance(w, 650);
    ask_resume(b);
    world_advance(w, 1500);
    assert_true(*json_at(wire_response(b, "123"), "result.content.4"));
    assert_null(strstr(wire_history(a), "\"content\""));
    assert_int_equal(world_runs(&take_over_other, "story"), 0);
    take_over_end();
}

/* A client gives its call up and cannot reach its server. It resumes the call at B and
 * cancels it at once. B is still looking the call up when the cancel comes. */
static void a_request_is_cancelled_there(world *w)
{
    char line[512];
    take_over_begin(w);
    resumable_at(w);
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    world_advance(w, 650);
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":123,\"method\":\"requests/resume\","
             "\"params\":{\"resumeToken\":%s}}\n",
             token);
    wire_feed(b, line, strlen(line));
    if (w->place == WORLD_HTTP)
        world_run(w); /* over HTTP the two messages may overtake each other */
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
             "\"params\":{\"requestId\":123}}\n");
    wire_feed(b, line, strlen(line));
    world_advance(w, 2500);
    ask_resume(b);
    assert_at(wire_response(b, "123"), "error.data.reason", "\"cancelled\"");
    take_over_end();
}

/* The resumed request goes on at B on the same channel when A ends. */
static void a_resumed_request_is_taken_over(world *w)
{
    take_over_begin(w);
    resumable_at(w);
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    world_advance(w, 650);
    ask_resume(b);
    world_run(w);
    world_stop(w);
    world_advance(&take_over_other, 2500);
    assert_true(*json_at(wire_response(b, "123"), "result.content.4"));
    assert_int_equal(world_runs(&take_over_other, "story"), 1);
    take_over_end();
}

/* The client of the resumed request has lost its connection when A ends. The request
 * goes on at B, and the client gets its result when it comes again. */
static void a_resumed_request_without_its_client_is_taken_over(world *w)
{
    take_over_begin(w);
    resumable_call_at(w, "\"name\":\"story\",\"arguments\":{\"n\":2,\"delayMs\":900}");
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    ask_resume(b);
    world_run(w);
    wire_cut(b);
    world_run(w);
    world_stop(w);
    world_advance(&take_over_other, 400);
    b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    ask_resume(b);
    world_advance(&take_over_other, 4000);
    assert_true(*json_at(wire_response(b, "123"), "result.content.1"));
    take_over_end();
}

/* A server is closed and its handlers give up, while their process goes on. The next
 * server runs what can run again, and reports the rest as lost. */
static void a_closed_server_lets_requests_go(world *w)
{
    static const char *const calls[] = {
        "\"name\":\"story\",\"arguments\":{\"n\":5,\"delayMs\":300}",
        "\"name\":\"slow_compute\",\"arguments\":{\"ms\":60000}"};
    for (int parked = 0; parked < 2; parked++) {
        for (size_t i = 0; i < 2; i++) {
            take_over_begin(w);
            wire *a = resumable_call_at(w, calls[i]);
            world_advance(w, 650);
            if (parked)
                wire_cut(a);
            take_over_let_all_go(w);
            world_run(w);
            assert_null(strstr(wire_history(a), "\"error\""));
            if (!parked)
                assert_true(wire_is_closed(a));
            assert_int_equal(w->server->calls.count, 0);
            wire *b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
            ask_resume(b);
            world_advance(&take_over_other, 2500);
            if (i == 0)
                assert_true(*json_at(wire_response(b, "123"), "result.content.4"));
            else
                assert_at(wire_response(b, "123"), "error.data.reason",
                          "\"server_restarted\"");
            take_over_end();
            world_restart(w);
        }
    }
}

/* The same for a call with a key: a client that sends it again joins the new run, or is
 * told. */
static void a_closed_server_lets_keyed_calls_go(world *w)
{
    static const char *const calls[] = {
        "\"name\":\"story\",\"arguments\":{\"n\":5,\"delayMs\":300},"
        "\"_meta\":{" KEY "}",
        "\"name\":\"slow_compute\",\"arguments\":{\"ms\":60000},"
        "\"_meta\":{\"dev.segue/idempotencyKey\":\"fedcba9876543210\"}"};
    for (size_t i = 0; i < 2; i++) {
        take_over_begin(w);
        wire *a = legacy_connect(w, "Ada", NULL);
        wire_ask_plain(a, "7", "tools/call", calls[i]);
        world_advance(w, 650);
        take_over_let_all_go(w);
        assert_null(strstr(wire_history(a), "\"error\""));
        assert_true(wire_is_closed(a));
        wire *b = legacy_connect(&take_over_other, "Ada", NULL);
        wire_ask_plain(b, "8", "tools/call", calls[i]);
        world_advance(&take_over_other, 2500);
        if (i == 0)
            assert_true(*json_at(wire_response(b, "8"), "result.content.4"));
        else
            assert_at(wire_response(b, "8"), "error.message", "\"Server restarted\"");
        take_over_end();
        world_restart(w);
    }
}

/* Two requests with the key of a call that A runs come to B at once. The second request
 * joins the operation that the first one makes. The store then refuses that operation,
 * because A has the key, and both requests join the call of A. */
static void two_requests_join_the_call_of_another_server(world *w)
{
    static const char line[] =
        "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"story\",\"arguments\":{\"n\":5,\"delayMs\":300},\"_meta\":{" KEY "}}}\n";
    take_over_begin(w);
    resumable_call_at(w, "\"name\":\"story\",\"arguments\":{\"n\":5,\"delayMs\":300},"
                         "\"_meta\":{" KEY "}");
    wire *first = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    wire *second = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    wire_feed(first, line, sizeof line - 1);
    wire_feed(second, line, sizeof line - 1);
    world_advance(w, 2500);
    assert_true(*json_at(wire_response(first, "8"), "result.content.4"));
    assert_true(*json_at(wire_response(second, "8"), "result.content.4"));
    assert_int_equal(world_runs(&take_over_other, "story"), 0);
    take_over_end();
}

/* A learns of the client at B: A's clock stands still while that is connected, and runs
 * when it has gone (R-975-5). */
static void its_clock_hears_of_the_other_server(world *w)
{
    take_over_begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_Z);
    wire_ask_plain(a, "123", "tools/call",
                   "\"name\":\"story\",\"arguments\":{\"n\":100,\"delayMs\":1000}");
    snprintf(token, sizeof token, "%s",
             json_at(wire_notification(a, POLICY), "params.resumeToken"));
    wire_cut(a);
    world_run(w);
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    ask_resume(b);
    world_advance(w, 30000); /* maxWait of the fixtures is 10 s */
    const size_t boxes = w->server->mailbox.box != NULL;
    assert_int_equal(w->server->cluster.by_task.count, 1 + boxes);
    assert_null(strstr(wire_history(b), "\"error\""));
    wire_cut(b);
    world_advance(w, 15000);
    b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    ask_resume(b);
    assert_at(wire_response(b, "123"), "error.data.reason", "\"expired\"");
    take_over_end();
}

/* ---- a store with leases, made by an application ---- */

/* A commit whose answer was lost is repeated. The log then gets no entry for the second
 * time that the first commit has already dropped. */
static void no_dropped_entry_is_appended_again(world *w)
{
    take_over_begin(w);
    shared_place_drop(take_over_place);
    for (int lost = 1; lost <= 4; lost++) {
        wire *a = resumable_at(w);
        world_run(w);
        shared_store_fail(take_over_instance, lost, 1);
        wire_cut(a);
        world_run(w);
        a = legacy_connect(w, "Ada", CAPS_Z);
        ask_resume(a);
        world_run(w);
        wire_cut(a);
        world_run(w);
        a = legacy_connect(w, "Ada", CAPS_Z);
        ask_resume(a);
        world_advance(w, 6000);
        assert_true(*json_at(wire_response(a, "123"), "result.content.4"));
    }
    take_over_end();
}

/* A client of A answers a question while A cannot reach its store, and B takes the call
 * over. So the answer is never stored. A asks its client again, and the new answer
 * reaches the handler at B. */
static void who_answers_a_server_that_is_away_is_asked_again(world *w)
{
    char answer[256];
    take_over_begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_ASKED);
    wire_ask_plain(a, "123", "tools/call", "\"name\":\"ask_once\"");
    snprintf(answer, sizeof answer,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":" ACCEPT "}",
             json_at(wire_request(a, "elicitation/create"), "id"));
    legacy_connect(&take_over_other, "Ada", CAPS_Z); /* makes B open its store */
    shared_store_away(take_over_instance, 1);
    wire_send(a, answer);
    world_advance(w, 2 * LEASE_MS);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    shared_store_away(take_over_instance, 0);
    world_advance(w, LEASE_MS);
    wire_request(a, "elicitation/create");
    wire_send(a, answer);
    world_advance(w, LEASE_MS);
    assert_true(*json_at(wire_response(a, "123"), "result.content.0"));
    take_over_end();
}

/* A is out of reach for longer than its lease, and B continues the call of a client of A.
 * The client resumes the call at A in its old session, where the call's first request
 * still waits. The newest request gets the result. */
static void who_resumes_where_the_first_request_waits(world *w)
{
    take_over_begin(w);
    wire *a = resumable_call_at(
        w, "\"name\":\"story\",\"arguments\":{\"n\":12,\"delayMs\":300}");
    legacy_connect(&take_over_other, "Ada", CAPS_Z); /* makes B open its store */
    world_advance(w, 400);
    shared_store_away(take_over_instance, 1);
    world_advance(w, 2 * LEASE_MS);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    shared_store_away(take_over_instance, 0);
    world_advance(w, LEASE_MS);
    assert_int_equal(w->server->cluster.counts.fenced, 1);
    ask_resume(a);
    world_advance(w, 5000);
    assert_null(strstr(wire_history(a), "\"error\""));
    assert_int_equal(take_over_count_of(wire_history(a), "\"id\":123,\"result\""), 1);
    take_over_end();
}

/* The client resumes at B while A cannot reach its store, and returns to A. Then A reads
 * what B has reported, and knows that this is older than the client's return. */
static void an_old_report_does_not_end_the_request(world *w)
{
    take_over_begin(w);
    wire *a = resumable_call_at(
        w, "\"name\":\"story\",\"arguments\":{\"n\":5,\"delayMs\":300}");
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    world_advance(w, 400);
    wire_cut(a);
    world_run(w);
    shared_store_away(take_over_instance, 1);
    ask_resume(b);
    world_run(&take_over_other);
    wire_cut(b);
    world_run(&take_over_other);
    a = legacy_connect(w, "Ada", CAPS_Z);
    shared_store_away(take_over_instance, 0);
    ask_resume(a);
    world_advance(w, 5000);
    assert_true(*json_at(wire_response(a, "123"), "result.content.4"));
    assert_int_equal(world_runs(&take_over_other, "story"), 0);
    take_over_end();
}

/* The client resumes at B, which dies before anyone reads its report. Then the client
 * resumes at C, and C takes the request over. C reads the report of B, and knows that it
 * is older than the client's arrival. */
static void a_report_of_a_dead_server_does_not_end_the_request(world *w)
{
    world third;
    take_over_begin(w);
    wire *a = resumable_call_at(
        w, "\"name\":\"story\",\"arguments\":{\"n\":5,\"delayMs\":300}");
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_Z);
    world_advance(w, 400);
    wire_cut(a);
    world_run(w);
    shared_store_away(take_over_instance, 1);
    ask_resume(b);
    world_run(&take_over_other);
    take_over_end();
    third = (world){.tune = w->tune};
    take_over_open_instance(&third.custom, NULL);
    world_begin_beside(w, &third);
    wire *c = legacy_connect(&third, "Ada", CAPS_Z);
    ask_resume(c);
    world_advance(w, 5 * LEASE_MS);
    assert_int_equal(third.server->counts.taken_over, 1);
    assert_true(*json_at(wire_response(c, "123"), "result.content.4"));
    world_end(&third);
}

static const char ask_once[] = "\"name\":\"ask_once\",\"_meta\":{" KEY "}";

/* Returns a client of A whose call has asked its question. */
static wire *asked_at(world *w)
{
    take_over_begin(w);
    wire *a = legacy_connect(w, "Ada", CAPS_ASKED);
    wire_ask_plain(a, "123", "tools/call", ask_once);
    wire_request(a, "elicitation/create");
    return a;
}

/* A is away. Its client repeats the call by its key at B, which takes the call over
 * later. The question of the new run reaches the client. */
static void a_repeated_call_is_asked_by_the_new_owner(world *w)
{
    asked_at(w);
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_ASKED);
    shared_store_away(take_over_instance, 1);
    wire_ask_plain(b, "124", "tools/call", ask_once);
    world_advance(w, 2 * LEASE_MS);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    wire_request(b, "elicitation/create");
    take_over_end();
}

/* The owner goes on, and its client has left it. The question comes where the client has
 * repeated its call. */
static void ask_beside_the_owner(world *w, int leaves_first)
{
    wire *a = asked_at(w);
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_ASKED);
    if (leaves_first)
        wire_cut(a);
    world_advance(w, 500);
    wire_ask_plain(b, "124", "tools/call", ask_once);
    world_advance(w, 500);
    if (!leaves_first)
        wire_cut(a);
    world_advance(w, 500);
    wire_request(b, "elicitation/create");
    assert_int_equal(take_over_other.server->counts.taken_over, 0);
    take_over_end();
}

static void who_left_is_asked_beside_the_owner(world *w)
{
    ask_beside_the_owner(w, 1);
}

static void who_leaves_is_asked_beside_the_owner(world *w)
{
    ask_beside_the_owner(w, 0);
}

/* The connection of the first repeated request is lost before the take-over. The client
 * repeats the call once more, and the question comes there. */
static void the_newest_repeated_call_is_asked(world *w)
{
    asked_at(w);
    wire *b = legacy_connect(&take_over_other, "Ada", CAPS_ASKED);
    wire *c = legacy_connect(&take_over_other, "Ada", CAPS_ASKED);
    shared_store_away(take_over_instance, 1);
    wire_ask_plain(b, "124", "tools/call", ask_once);
    world_advance(w, 10);
    wire_cut(b);
    wire_ask_plain(c, "125", "tools/call", ask_once);
    world_advance(w, 2 * LEASE_MS);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    wire_request(c, "elicitation/create");
    take_over_end();
}

static const scenario scenarios[] = {
    {"R-975-29 a request is resumed at another server", a_request_is_resumed_there,
     ONLY_HERE, NULL},
    {"R-975-12 a request is cancelled at another server", a_request_is_cancelled_there,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-975-29 a resumed request is taken over", a_resumed_request_is_taken_over,
     ONLY_HERE, NULL},
    {"R-975-29 a resumed request without its client is taken over",
     a_resumed_request_without_its_client_is_taken_over, ONLY_HERE | ONE_DRIVE, NULL},
    {"R-975-29 a closed server lets requests go", a_closed_server_lets_requests_go,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a closed server lets keyed calls go", a_closed_server_lets_keyed_calls_go,
     ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"R-975-29 two requests join the call of another server",
     two_requests_join_the_call_of_another_server, ONLY_HERE | ONE_DRIVE | ONLY_KEYED,
     NULL},
    {"R-975-5 its clock hears of the other server", its_clock_hears_of_the_other_server,
     ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario leases[] = {
    {"AS-114 no dropped entry is appended again", no_dropped_entry_is_appended_again,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-975-13 a request is resumed in the session where its first request waits",
     who_resumes_where_the_first_request_waits, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a repeated call is asked by the new owner",
     a_repeated_call_is_asked_by_the_new_owner, ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"AS-38 a client that left the owner is asked beside it",
     who_left_is_asked_beside_the_owner, ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"AS-38 a client that leaves the owner is asked beside it",
     who_leaves_is_asked_beside_the_owner, ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"AS-38 the newest repeated call is asked by the new owner",
     the_newest_repeated_call_is_asked, ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"R-975-16 who answers a server that is away is asked again",
     who_answers_a_server_that_is_away_is_asked_again, ONLY_HERE | ONE_DRIVE, NULL},
    {"R-975-13 an old report of another server does not end a request",
     an_old_report_does_not_end_the_request, ONLY_HERE | ONE_DRIVE, NULL},
    {"R-975-13 a report of a dead server does not end a request",
     a_report_of_a_dead_server_does_not_end_the_request, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    int failed = scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
    failed += scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                     take_over_with_shared);
    failed += scenarios_run_prepared(leases, sizeof leases / sizeof *leases,
                                     take_over_with_shared);
    shared_place_free(take_over_place);
    return failed;
}
