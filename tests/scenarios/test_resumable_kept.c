/* What a server keeps of requests that can be resumed (SEP-975): for how long, also over
 * a restart, and how little. */
#include "engine/server/server.h"
#include "support/fault_store.h"
#include "support/legacy_wire.h"
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

#define CAPS_Z "{\"resumableRequests\":{}}"
#define POLICY "notifications/requests/resumePolicy"
#define PIECES ",\"_meta\":{\"allowPartial\":true}"
#define SEQ "\"dev.segue/seq\":"
#define MAX_WAIT_MS 10000 /* maxWait of the fixtures */

static char token[128];

static void call_for_token(wire *c, const char *tool, const char *arguments,
                           const char *more)
{
    char params[512];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{%s}%s", tool,
             arguments, more);
    wire_ask_plain(c, "123", "tools/call", params);
    snprintf(token, sizeof token, "%s",
             json_at(wire_notification(c, POLICY), "params.resumeToken"));
}

/* Asks as a client that names how many segments it has. */
static void ask_behind(wire *c, int segments)
{
    char params[256];
    snprintf(params, sizeof params,
             "\"resumeToken\":%s,\"_meta\":{\"dev.segue/after\":%d}", token, segments);
    wire_ask_plain(c, "123", "requests/resume", params);
}

static void ask_resume(wire *c)
{
    char params[256];
    snprintf(params, sizeof params, "\"resumeToken\":%s", token);
    wire_ask_plain(c, "123", "requests/resume", params);
}

static const char *status_of(wire *c)
{
    static int next;
    char id[24], params[256];
    snprintf(id, sizeof id, "%d", 70000 + next++);
    snprintf(params, sizeof params, "\"requestId\":123,\"resumeToken\":%s", token);
    return wire_do_plain(c, id, "requests/getStatus", params);
}

/* ---- time ---- */

static void part_and_restart(world *w, int64_t before_ms, int64_t after_ms)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    call_for_token(c, "story", "\"n\":1000,\"delayMs\":1000", "");
    world_advance(w, 500);
    wire_cut(c);
    world_advance(w, before_ms);
    world_restart(w);
    world_jump(w, after_ms);
    world_advance(w, 10);
}

static void the_time_away_goes_on_over_a_restart(world *w)
{
    part_and_restart(w, 6000, 1000);
    world_restart(w); /* a restart does not extend the time */
    world_advance(w, MAX_WAIT_MS / 2);
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c);
    const char *answer = wire_response(c, "123");
    assert_code(answer, -32602);
    assert_at(answer, "error.data.reason", "\"expired\"");
}

static void who_comes_in_time_is_answered(world *w)
{
    part_and_restart(w, 6000, 2000);
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    assert_at(status_of(c), "result.status", "\"processing\""); /* the time starts anew */
    world_advance(w, MAX_WAIT_MS - 1000);
    c = legacy_connect(w, NULL, CAPS_Z);
    assert_at(status_of(c), "result.status", "\"processing\"");
}

/* A client that was connected when the server died counts as gone from then on. */
static void who_was_there_has_all_the_time(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    call_for_token(c, "story", "\"n\":1000,\"delayMs\":1000", "");
    wire_cut(c);
    world_advance(w, 5000);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c);
    world_advance(w, 20000);
    world_restart(w);
    world_advance(w, MAX_WAIT_MS - 1000);
    c = legacy_connect(w, NULL, CAPS_Z);
    assert_at(status_of(c), "result.status", "\"processing\"");
    world_restart(w);
    world_advance(w, 2 * MAX_WAIT_MS);
    c = legacy_connect(w, NULL, CAPS_Z);
    assert_at(status_of(c), "error.data.reason", "\"expired\"");
}

/* A client that lost its token repeats the call by its key: it counts as connected. */
static void who_repeats_it_by_key_is_there(world *w)
{
#define KEYED ",\"_meta\":{\"dev.segue/idempotencyKey\":\"0123456789abcdef\"}"
    wire *c = legacy_connect(w, "Ada", CAPS_Z);
    call_for_token(c, "story", "\"n\":20,\"delayMs\":1000", KEYED);
    world_advance(w, 500);
    wire_cut(c);
    world_advance(w, 1000);
    c = legacy_connect(w, "Ada", CAPS_Z);
    wire_ask_plain(c, "77", "tools/call",
                   "\"name\":\"story\",\"arguments\":{\"n\":20,\"delayMs\":1000}" KEYED);
    world_advance(w, 2 * MAX_WAIT_MS + 5000);
    assert_true(*json_at(wire_response(c, "77"), "result.content.19"));
    assert_int_equal(world_runs(w, "story"), 1);
}

static void long_while(world *w)
{
    w->clock_ms += 2 * MAX_WAIT_MS;
}

/* The time is over when the next server starts: nothing runs again, and an ended answer
 * is not delivered any more. */
static void nothing_runs_for_who_is_too_late(world *w)
{
    for (int ended = 0; ended < 2; ended++) {
        wire *c = legacy_connect(w, NULL, CAPS_Z);
        call_for_token(c, "story",
                       ended ? "\"n\":2,\"delayMs\":100" : "\"n\":1000,\"delayMs\":1000",
                       "");
        wire_cut(c);
        world_advance(w, 1500);
        w->between = long_while;
        world_restart(w);
        w->between = NULL;
        world_advance(w, 10);
        assert_int_equal(world_runs(w, "story"), 0);
        c = legacy_connect(w, NULL, CAPS_Z);
        assert_at(status_of(c), "error.data.reason", "\"expired\"");
        ask_resume(c);
        assert_at(wire_response(c, "123"), "error.data.reason", "\"expired\"");
    }
}

/* ---- room ---- */

static fault_store *faults;

static void with_faults(world *w)
{
    scratch_name(w->path, sizeof w->path, "/tmp/segue-kept");
    faults = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
}

static void tune_small(segue_server_options *options)
{
    options->max_log_bytes = 8192;
}

#define STORY 400
#define TURNS 40

static int64_t next_piece; /* number of the next segment */
static bool may_repeat;    /* the next response begins with earlier segments */

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* Takes the responses that have arrived; returns true when the last one is among them. */
static bool take_pieces(wire *c)
{
    const char *line;
    while ((line = wire_next(c))) {
        if (!*json_at(line, "result.content"))
            continue;
        const char *number = strstr(line, SEQ);
        int64_t told = number ? atoll(number + strlen(SEQ)) : next_piece;
        if (may_repeat && told <= next_piece)
            next_piece = told;
        may_repeat = false;
        assert_int_equal(told, next_piece);
        next_piece += count_of(line, "\"type\":\"text\"");
        if (!*json_at(line, "result._meta.hasMore"))
            return true;
    }
    return false;
}

/* Much more goes through the log than it has room for, because each connection confirms
 * what the one before it brought. In the middle the server restarts. */
static void confirmed_pieces_leave_the_store(world *w)
{
    char event[128];
    bool ended = false;
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    call_for_token(c, "story", "\"n\":400,\"delayMs\":10,\"chunk\":100", PIECES);
    next_piece = 1;
    for (int i = 0; i < TURNS && !ended; i++) {
        world_advance(w, 200);
        ended = take_pieces(c);
        snprintf(event, sizeof event, "%s", wire_last_event(c));
        if (ended)
            break;
        if (i == TURNS / 4)
            world_restart(w);
        else
            wire_cut(c);
        /* Content that was written before is not in the store (R-975-20). */
        may_repeat = i == TURNS / 4 && w->place != WORLD_HTTP;
        c = legacy_connect(w, NULL, CAPS_Z);
        if (w->place == WORLD_HTTP)
            wire_after(c, event);
        ask_resume(c);
    }
    assert_true(ended);
    assert_int_equal(next_piece, STORY + 1);
    assert_int_equal(w->log_count, 0);
    assert_true(fault_store_drops(faults) > 4);
}

/* The store dies, so the call ends, and its pieces cannot be read. The connection of who
 * resumes is closed, and nothing stays behind of the request (found by the
 * simulation). */
static void who_cannot_be_answered_leaves_nothing(world *w)
{
    static int died;
    died = 0;
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    call_for_token(c, "story", "\"n\":1000,\"delayMs\":1,\"chunk\":9000", PIECES);
    world_advance(w, 10);
    wire_cut(c);
    world_advance(w, 100);
    fault_store_die(faults, FAULT_BEFORE, 0, 1, &died);
    world_advance(w, 10);
    assert_true(died);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_behind(c, 1);
    world_run(w);
    fault_store_forget(faults);
}

/* ---- replacements ---- */

static segue_call *held;

static void hold(void *user, segue_call *call)
{
    (void)user;
    held = call;
}

static void add_holder(world *w)
{
    static const char tool[] = "{\"name\":\"held\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = hold;
    options.flags = SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESUMABLE;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
}

static void with_a_holder(world *w)
{
    w->furnish = add_holder;
}

/* The last delivered entry is a note behind the replacement, which no response has
 * mentioned yet: the next piece reports it. (test_composition.c found this case.) */
static void a_replacement_before_a_note_is_told(world *w)
{
    char event[128];
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    call_for_token(c, "held", "",
                   ",\"_meta\":{\"allowPartial\":true,\"progressToken\":7}");
    world_run(w);
    segue_call_send_text(held, "one", 3, NULL);
    world_run(w);
    assert_at(wire_response(c, "123"), "result._meta.hasMore", "true");
    segue_call_replace(held, NULL);
    segue_call_progress(held, 1, 2, NULL, NULL);
    world_run(w);
    wire_notification(c, "notifications/progress");
    snprintf(event, sizeof event, "%s", wire_last_event(c));
    wire_cut(c);
    c = legacy_connect(w, NULL, CAPS_Z);
    if (w->place == WORLD_HTTP)
        wire_after(c, event);
    ask_resume(c);
    world_run(w);
    segue_call_send_text(held, "two", 3, NULL);
    world_run(w);
    const char *piece = wire_response(c, "123");
    assert_at(piece, "result.content.0.text", "\"two\"");
    assert_at(piece, "result._meta.mergeStrategy", "\"replace\"");
    wire_cut(c); /* reported once: over a byte stream it was written */
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c);
    segue_call_send_text(held, "three", 5, NULL);
    segue_call_complete(held, NULL, NULL);
    segue_call_free(held);
    world_run(w);
    piece = wire_response(c, "123");
    assert_at(piece, "result._meta.mergeStrategy",
              w->place == WORLD_HTTP ? "\"replace\"" : "");
}

/* ---- another server ---- */

static world other; /* server B; the world of the scenario is server A, which runs the
                     * call */

#define NOTES 200

static void tell_notes(world *w, int from, int to)
{
    for (int i = from; i <= to; i++) {
        segue_call_progress(held, i, NOTES,
                            "a message of some forty bytes, or a few more", NULL);
        world_run(w);
        world_run(&other);
    }
}

/* B knows the call from its beginning. The owner drops notes from the log, which B has
 * read and does not keep. B makes the answer from what the store still has. */
static void a_log_is_shortened_by_another_server(world *w)
{
    other = (world){.tune = w->tune, .furnish = w->furnish};
    world_begin_beside(w, &other);
    wire *a = legacy_connect(w, NULL, CAPS_Z);
    wire *b = legacy_connect(&other, NULL, CAPS_Z);
    call_for_token(a, "held", "", ",\"_meta\":{\"progressToken\":7}");
    world_run(w);
    segue_call_send_text(held, "one", 3, NULL);
    tell_notes(w, 1, 10);
    wire_cut(a);
    assert_at(status_of(b), "result.status", "\"processing\"");
    tell_notes(w, 11, NOTES);
    segue_call_send_text(held, "two", 3, NULL);
    segue_call_complete(held, NULL, NULL);
    segue_call_free(held);
    world_run(w);
    world_run(&other);
    ask_resume(b);
    const char *r = wire_response(b, "123");
    assert_at(r, "result.content.0.text", "\"one\"");
    assert_at(r, "result.content.1.text", "\"two\"");
    assert_int_equal(other.log_count, 0);
    world_end(&other);
}

static void say_piece(world *w, const char *text)
{
    static char padded[3000];
    memset(padded, '.', sizeof padded - 1);
    memcpy(padded, text, strlen(text));
    segue_call_send_text(held, padded, strlen(padded), NULL);
    world_run(w);
    world_run(&other);
}

/* A client comes that has this number of pieces, over HTTP with the events up to this
 * one. */
static void go_on(wire *c, const char *event, int has)
{
    if (c->w->place != WORLD_HTTP) {
        ask_behind(c, has);
        return;
    }
    wire_after(c, event);
    ask_resume(c);
}

/* A replacement was reported with the piece behind it. The owner has dropped that piece,
 * because its client has it. The next piece, which B sends, must be added to it. */
static void a_replacement_is_not_told_again_by_another_server(world *w)
{
    char event[128];
    next_piece = 1;
    other = (world){.tune = w->tune, .furnish = w->furnish};
    world_begin_beside(w, &other);
    wire *a = legacy_connect(w, NULL, CAPS_Z);
    wire *b = legacy_connect(&other, NULL, CAPS_Z);
    call_for_token(a, "held", "", PIECES);
    world_run(w);
    say_piece(w, "one");
    segue_call_replace(held, NULL);
    say_piece(w, "two");
    assert_at(status_of(b), "result.status", "\"processing\"");
    take_pieces(a);
    snprintf(event, sizeof event, "%s", wire_last_event(a));
    wire_cut(a);
    a = legacy_connect(w, NULL, CAPS_Z);
    go_on(a, event, 2);
    world_run(w);
    say_piece(w, "three");
    take_pieces(a);
    snprintf(event, sizeof event, "%s", wire_last_event(a));
    say_piece(w, "four");
    wire_cut(a);
    world_run(w);
    go_on(b, event, 3);
    world_run(&other);
    const char *piece = wire_response(b, "123");
    if (strncmp(json_at(piece, "result.content.0.text"), "\"four.", 6) != 0)
        fail_msg("%s", piece);
    assert_at(piece, "result._meta.mergeStrategy", "");
    segue_call_complete(held, NULL, NULL);
    segue_call_free(held);
    world_run(w);
    world_end(&other);
}

/* ---- delivered to a client that died ---- */

/* Takes the pieces of one answer, up to the last; returns the number of the first. */
static int64_t first_piece(wire *c)
{
    const char *piece;
    int64_t first = 0;
    int64_t next = 0;
    do {
        piece = wire_response(c, "123");
        const char *number = strstr(piece, SEQ);
        if (number) {
            int64_t told = atoll(number + strlen(SEQ));
            if (!first)
                first = next = told;
            assert_int_equal(told, next);
        }
        next += count_of(piece, "\"type\":\"text\"");
    } while (!strcmp(json_at(piece, "result._meta.hasMore"), "true"));
    assert_int_equal(next, 7);
    return first;
}

/* The bytes were written to a byte stream, and their reader has died: they come again for
 * a client that names its position. */
static void what_was_written_comes_again(world *w)
{
    for (int has = 0; has < 4; has += 3) {
        wire *c = legacy_connect(w, NULL, CAPS_Z);
        call_for_token(c, "story", "\"n\":6,\"delayMs\":100", PIECES);
        world_advance(w, 450);
        wire_cut(c);
        c = legacy_connect(w, NULL, CAPS_Z);
        ask_behind(c, has);
        world_advance(w, 2000);
        assert_int_equal(first_piece(c), has + 1);
        wire_cut(c);
    }
}

/* An ended, delivered answer comes again, too, if its call has a key: it is kept for
 * that. */
static void what_has_a_key_comes_again(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    call_for_token(c, "story", "\"n\":6,\"delayMs\":0",
                   ",\"_meta\":{\"allowPartial\":true,\"dev.segue/idempotencyKey\":"
                   "\"0123456789abcdef\"}");
    world_advance(w, 100);
    first_piece(c);
    wire_cut(c);
    for (int i = 0; i < 2; i++) {
        c = legacy_connect(w, NULL, CAPS_Z);
        if (w->place != WORLD_HTTP) {
            ask_resume(c);
            assert_at(wire_response(c, "123"), "error.data.reason", "\"completed\"");
        }
        ask_behind(c, i ? 4 : 0);
        world_advance(w, 100);
        if (i)
            assert_int_equal(first_piece(c), 5);
        else
            assert_at(wire_response(c, "123"), "result.content.5.text",
                      "\"segment 6 of the story\"");
        wire_cut(c);
    }
    assert_int_equal(world_runs(w, "story"), 1);
}

/* The connection breaks, and the call ends. Many other calls end too, so the operation
 * leaves memory, while the first request of the call still waits for its client. The
 * client resumes the call in the same session: the newest request gets the result. */
static void what_left_memory_is_resumed(world *w)
{
    wire *a = legacy_connect(w, "Ada", CAPS_Z);
    call_for_token(a, "story", "\"n\":5,\"delayMs\":300", PIECES);
    world_advance(w, 700);
    wire_cut(a);
    world_advance(w, 3000);
    while (!TAILQ_EMPTY(&w->server->lingering.ops))
        sgi_server_take_from_maps(TAILQ_FIRST(&w->server->lingering.ops)->op);
    wire *b = legacy_connect(w, "Ada", CAPS_Z);
    free(b->session);
    b->session = strdup(a->session);
    ask_resume(b);
    world_advance(w, 1000);
    assert_null(strstr(wire_history(b), "\"error\""));
    assert_true(*json_at(wire_response(b, "123"), "result.content.4"));
}

static const scenario holders[] = {
    {"AS-110 R-776-11 a replacement before a note is announced",
     a_replacement_before_a_note_is_told, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-109 R-975-19 a log is shortened by another server",
     a_log_is_shortened_by_another_server, ONLY_HERE | ONE_DRIVE, tune_small},
    {"AS-110 R-776-11 a replacement is not announced again by another server",
     a_replacement_is_not_told_again_by_another_server, ONLY_HERE | ONE_DRIVE,
     tune_small},
};

static const scenario scenarios[] = {
    {"R-975-13 a call that left memory is resumed in its session",
     what_left_memory_is_resumed, ONLY_HERE | ONLY_HTTP | ONLY_SQLITE, NULL},
    {"AS-105 R-975-27 the time away goes on over a restart",
     the_time_away_goes_on_over_a_restart, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-105 R-975-5 R-975-24 a client that comes in time is answered",
     who_comes_in_time_is_answered, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-105 R-975-5 a client that repeats the call by key is connected",
     who_repeats_it_by_key_is_there, ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"AS-105 R-975-5 a client that was connected has the whole waiting time",
     who_was_there_has_all_the_time, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-105 R-975-27 nothing runs for a client that is too late",
     nothing_runs_for_who_is_too_late, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-110 R-975-20 written messages come again", what_was_written_comes_again,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-110 R-975-14 an answer with a key comes again", what_has_a_key_comes_again,
     ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
};

static const scenario rooms[] = {
    {"AS-109 R-975-19 confirmed pieces leave the store", confirmed_pieces_leave_the_store,
     ONLY_HERE | ONE_DRIVE, tune_small},
    {"AS-109 a resume that cannot be answered leaves nothing",
     who_cannot_be_answered_leaves_nothing, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    int failed = scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
    failed +=
        scenarios_run_prepared(holders, sizeof holders / sizeof *holders, with_a_holder);
    return failed +
           scenarios_run_prepared(rooms, sizeof rooms / sizeof *rooms, with_faults);
}
