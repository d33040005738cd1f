/* The error of a client whose operation the server's store refuses: data.reason, one
 * value for each refusal of a store (core/api/reasons.def). */
#include "support/draft_wire.h"
#include "support/fault_store.h"
#include "support/scratch.h"
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

static fault_store *faults;

static void with_faults(world *w)
{
    scratch_name(w->path, sizeof w->path, "/tmp/segue-refusals");
    faults = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
}

typedef struct told {
    segue_status status;
    const char *reason;
    const char *message;
} told;

#define UNSTORED "The server cannot store the operation: "
static const told all[] = {
    {SEGUE_E_STORE, "store_failed", UNSTORED "the store fails"},
    {SEGUE_E_STORE_FULL, "store_full", UNSTORED "the store is full"},
    {SEGUE_E_STORE_CORRUPT, "store_corrupt", UNSTORED "the store is damaged"},
    {SEGUE_E_NOT_FOUND, "store_lost", UNSTORED "the store has lost the operation"},
    {SEGUE_E_STATE, "store_torn", UNSTORED "the store has lost a part of the operation"},
    {SEGUE_E_EXISTS, "store_exists", UNSTORED "the store already has this operation"},
    {SEGUE_E_TOO_LARGE, "store_too_large",
     UNSTORED "the operation is too large to store"},
    {SEGUE_E_NOMEM, "out_of_memory", UNSTORED "the server is out of memory"},
    {SEGUE_E_INVALID, "store_failed", UNSTORED "the store fails"},
};

static void must_say(const char *r, const char *path, const told *t)
{
    char at[80], quoted[160];
    snprintf(at, sizeof at, "%s.data.reason", path);
    snprintf(quoted, sizeof quoted, "\"%s\"", t->reason);
    assert_at(r, at, quoted);
    snprintf(at, sizeof at, "%s.message", path);
    snprintf(quoted, sizeof quoted, "\"%s\"", t->message);
    assert_at(r, at, quoted);
    snprintf(at, sizeof at, "%s.code", path);
    assert_at(r, at, "-32603");
}

static void a_creation_that_is_refused(world *w)
{
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fault_store_refuse(faults, all[i].status, 1);
        const char *r = wire_do(c, "1", "tools/call", "\"name\":\"hang\"", CAPS_TASKS);
        must_say(r, "error", &all[i]);
    }
    assert_int_equal(w->warn_count, sizeof all / sizeof *all);
}

static void an_end_that_is_refused(world *w)
{
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *id = wire_make_task(c, "1", "story", "\"n\":5,\"delayMs\":10", NULL);
        fault_store_refuse(faults, all[i].status, 1);
        const char *r = wire_get_until(c, id, "failed", NULL);
        must_say(r, "result.error", &all[i]);
    }
}

#define ANSWER "\"inputResponses\":{\"input-1\":{\"action\":\"accept\",\"content\":{}}}"

/* What is acknowledged is in the store. The store does not have this answer, so a server
 * that continues the task asks again, and only the client can send the answer again. */
static void an_answer_that_is_refused(world *w)
{
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *id = wire_make_task(c, "1", "confirm_delete", NULL, CAPS_ALL);
        wire_get_until_asked(c, id, "input-1");
        fault_store_refuse(faults, all[i].status, 1000);
        must_say(wire_task(c, "2", "tasks/update", id, ANSWER), "error", &all[i]);
        must_say(wire_get_until(c, id, "failed", NULL), "result.error", &all[i]);
        /* the store does not have the end either */
        assert_at(wire_task(c, "3", "tasks/update", id, ANSWER), "error.code", "-32603");
        fault_store_refuse(faults, SEGUE_OK, 0);
        world_advance(w, 60000);
        /* a store that only failed for a while takes the end */
        if (all[i].status == SEGUE_E_STORE || all[i].status == SEGUE_E_STORE_FULL)
            assert_at(wire_task(c, "4", "tasks/update", id, ANSWER), "result.resultType",
                      "\"complete\"");
    }
}

static void a_cancel_that_is_refused(world *w)
{
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
        fault_store_refuse(faults, all[i].status, 1);
        must_say(wire_task(c, "2", "tasks/cancel", id, NULL), "error", &all[i]);
        must_say(wire_get_until(c, id, "failed", NULL), "result.error", &all[i]);
    }
}

/* Clients see that the task has failed, but the store does not have this end. A server
 * that continues the task does not know of it, so a cancel is not refused because of the
 * end, as long as the store does not have it. */
static void an_end_that_is_not_stored_stops_no_cancel(world *w)
{
    for (int draft = 0; draft < 2; draft++) {
        char id[64], more[160] = "";
        wire *c = draft ? draft_connect(w, NULL, NULL) : legacy_connect(w, NULL, NULL);
        snprintf(id, sizeof id, "%s",
                 draft ? draft_make_task(c, "1", "hang", NULL)
                       : legacy_make_task(c, "1", "hang", NULL, NULL));
        if (draft)
            snprintf(more, sizeof more, "\"requestState\":%s",
                     draft_state_of(legacy_task(c, "2", "tasks/get", id, NULL)));
        const char *state = draft ? more : NULL;
        fault_store_refuse(faults, SEGUE_E_STORE_FULL, 1000);
        assert_code(legacy_task(c, "3", "tasks/cancel", id, state), -32603);
        assert_at(legacy_task(c, "4", "tasks/get", id, state), "result.status",
                  "\"failed\"");
        assert_code(legacy_task(c, "5", "tasks/cancel", id, state), -32603);
        fault_store_refuse(faults, SEGUE_OK, 0);
        world_advance(w, 60000);
        assert_code(legacy_task(c, "6", "tasks/cancel", id, state), -32602);
    }
}

/* The same call with the same key, in another process: it finds its operation, and no
 * warning is logged. */
static void a_retry_by_its_key(world *w)
{
    for (int run = 0; run < 3; run++) {
        wire *c = world_connect(w, NULL);
        char *line = wire_line("1", "tools/call", "\"name\":\"hang\"", CAPS_TASKS);
        char *meta = strstr(line, "\"_meta\":{") + 9;
        char *keyed = malloc(strlen(line) + 64);
        sprintf(keyed, "%.*s\"dev.segue/idempotencyKey\":\"0123456789abcdef\",%s",
                (int)(meta - line), line, meta);
        wire_send(c, keyed);
        assert_at(wire_response(c, "1"), "result.resultType", "\"task\"");
        free(line);
        free(keyed);
        world_restart(w);
    }
    assert_null(fault_store_task(faults, 1));
    assert_int_equal(w->warn_count, 0);
}

static void must_run_or_have_ended(void *user, sgi_index_node *node)
{
    const sgi_op *op = sgi_op_of_task_node(node);
    int *ended = user;
    assert_true(sgi_op_has_ended(op) || op->served->call);
    *ended += sgi_op_has_ended(op);
}

/* From some allocation on the server has no memory. The call may be stored by then,
 * although its handler cannot start: it ends as soon as there is memory. */
static void a_call_without_memory(world *w)
{
    int ended = 0;
    size_t failed = 1;
    for (size_t k = 1; failed && k < 200; k++) {
        wire *c = world_connect(w, NULL);
        char *text = wire_line("1", "tools/call", "\"name\":\"hang\"", CAPS_TASKS);
        char *line = malloc(strlen(text) + 2);
        sprintf(line, "%s\n", text);
        world_run(w);
        test_mem_rearm(&w->mem);
        w->mem.fail_from = k;
        tap_bytes(c->tap, TAP_IN, line, strlen(line));
        segue_transport_feed(c->transport, line, strlen(line)); /* may fail */
        world_run(w);
        failed = w->mem.failed;
        test_mem_rearm(&w->mem);
        world_advance(w, 1000);
        sgi_index_each(&w->server->cluster.by_task, must_run_or_have_ended, &ended);
        wire_drop(c);
        free(text);
        free(line);
    }
    assert_true(ended > 0);
}

/* A slow reader has the first pieces of a result. The store then fails once to read the
 * next ones. The client gets an error, because it would add a whole result to the pieces
 * that it has. When it asks again by its key, it gets all. */
static void a_piece_that_cannot_be_read(world *w)
{
    static const char call[] =
        "\"name\":\"story\",\"arguments\":{\"n\":1000,\"chunk\":3000,\"delayMs\":1},"
        "\"_meta\":{\"allowPartial\":true,"
        "\"dev.segue/idempotencyKey\":\"0123456789abcdef\"}";
    const char *r;
    wire *c = legacy_connect(w, NULL, NULL);
    wire_ask_plain(c, "1", "tools/call", call);
    world_advance(w, 10);
    assert_at(wire_response(c, "1"), "result._meta.hasMore", "true");
    wire_stall(c, 1);
    world_advance(w, 2000);
    fault_store_fail_reads(faults, SEGUE_E_STORE, 1);
    wire_stall(c, 0);
    do
        r = wire_response(c, "1");
    while (!strcmp(json_at(r, "result._meta.hasMore"), "true"));
    assert_at(r, "error.data.reason", "\"store_failed\"");
    assert_true(*json_at(r, "error.data.retryAfterMs"));
    int segments = 0;
    wire_ask_plain(c, "2", "tools/call", call);
    do {
        r = wire_response(c, "2");
        for (const char *at = r; (at = strstr(at, "segment ")); at++)
            assert_int_equal(atoi(at + strlen("segment ")), ++segments);
    } while (!strcmp(json_at(r, "result._meta.hasMore"), "true"));
    assert_int_equal(segments, 1000);
}

/* A task has ended, and the store has lost it. The error says so and is no reason to come
 * again. A store that fails now is one. */
static void a_lost_result_is_said_to_be_lost(world *w)
{
    static const char args[] = "\"n\":1000,\"chunk\":3000";
    static const struct {
        segue_status status;
        const char *reason;
        bool passes;
    } reads[] = {{SEGUE_E_STORE, "\"store_failed\"", true},
                 {SEGUE_E_NOMEM, "\"out_of_memory\"", true},
                 {SEGUE_E_NOT_FOUND, "\"store_lost\"", false},
                 {SEGUE_E_STORE_CORRUPT, "\"store_corrupt\"", false}};
    wire *old = legacy_connect(w, NULL, NULL), *now = world_connect(w, NULL);
    const char *answers[2],
        *ids[] = {legacy_make_task(old, "1", "story", args, "{}"),
                  wire_make_task(now, "1", "story", args, CAPS_TASKS)};
    world_advance(w, 5000);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        fault_store_fail_reads(faults, reads[i].status, 2);
        answers[0] = legacy_task(old, "2", "tasks/result", ids[0], NULL);
        answers[1] = wire_task(now, "2", "tasks/get", ids[1], NULL);
        for (int j = 0; j < 2; j++) {
            assert_at(answers[j], "error.data.reason", reads[i].reason);
            assert_true(!*json_at(answers[j], "error.data.retryAfterMs") ==
                        !reads[i].passes);
        }
    }
}

/* A client resumes a call that has ended (SEP-975), and the store cannot read the result.
 * The client has not received the end of the call, so it gets the result when it asks
 * again. */
static void an_unread_result_is_not_delivered(world *w)
{
    char resume[256];
    wire *c = legacy_connect(w, NULL, "{\"resumableRequests\":{}}");
    wire_ask_plain(
        c, "123", "tools/call",
        "\"name\":\"story\",\"arguments\":{\"n\":200,\"chunk\":3000,\"delayMs\":10}");
    snprintf(resume, sizeof resume, "\"resumeToken\":%s",
             json_at(wire_notification(c, "notifications/requests/resumePolicy"),
                     "params.resumeToken"));
    wire_cut(c);
    world_advance(w, 5000);
    c = legacy_connect(w, NULL, "{\"resumableRequests\":{}}");
    fault_store_fail_reads(faults, SEGUE_E_STORE, 2);
    wire_ask_plain(c, "123", "requests/resume", resume);
    assert_at(wire_response(c, "123"), "error.data.reason", "\"store_failed\"");
    world_run(w);
    wire_ask_plain(c, "123", "requests/resume", resume);
    assert_true(*json_at(wire_response(c, "123"), "result.content.199"));
}

/* The same with a client that gets the result in pieces, and the store has lost the
 * pieces. The client is told, because asking again would fail in the same way. */
static void a_lost_piece_is_told_to_who_resumes(world *w)
{
    static const char caps[] = "{\"resumableRequests\":{}}";
    char resume[320];
    wire *c = legacy_connect(w, NULL, caps);
    wire_ask_plain(
        c, "123", "tools/call",
        "\"name\":\"story\",\"arguments\":{\"n\":1000,\"chunk\":3000,\"delayMs\":1},"
        "\"_meta\":{\"allowPartial\":true}");
    snprintf(resume, sizeof resume,
             "\"resumeToken\":%s,\"_meta\":{\"allowPartial\":true}",
             json_at(wire_notification(c, "notifications/requests/resumePolicy"),
                     "params.resumeToken"));
    wire_cut(c);
    world_advance(w, 5000);
    c = legacy_connect(w, NULL, caps);
    wire_stall(c, 1);
    wire_ask_plain(c, "123", "requests/resume", resume);
    world_run(w);
    fault_store_fail_reads(faults, SEGUE_E_STORE_CORRUPT, 1);
    wire_stall(c, 0);
    const char *r;
    do
        r = wire_response(c, "123");
    while (!strcmp(json_at(r, "result._meta.hasMore"), "true"));
    assert_at(r, "error.data.reason", "\"store_corrupt\"");
}

static const scenario scenarios[] = {
    {"R-975-14 a result that cannot be read is not delivered",
     an_unread_result_is_not_delivered, ONLY_HERE | ONE_DRIVE, NULL},
    {"R-975-14 a lost piece is told to a client that resumes",
     a_lost_piece_is_told_to_who_resumes, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 a lost result is said to be lost", a_lost_result_is_said_to_be_lost,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-79 AS-114 a piece that cannot be read ends the call",
     a_piece_that_cannot_be_read, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 a creation that is refused says why", a_creation_that_is_refused,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 an end that is refused says why", an_end_that_is_refused,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 an answer that is refused is not acknowledged", an_answer_that_is_refused,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 a cancel that is refused is not acknowledged", a_cancel_that_is_refused,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 an end that is not stored stops no cancel",
     an_end_that_is_not_stored_stops_no_cancel, ONLY_HERE | ONE_DRIVE, draft_on},
    {"AS-38a a retry by its key causes no warning", a_retry_by_its_key,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 a call without memory is not left in the store", a_call_without_memory,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, NULL}, /* HTTP fails before the call is read */
};

int main(void)
{
    return scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                  with_faults);
}
