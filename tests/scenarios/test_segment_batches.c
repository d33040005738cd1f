/* Segments that reach the application in batches (on_segments). The test plays the
 * server. */
#include "base/thresholds.h"
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define FIVE                                                                             \
    "\"content\":[" BLOCK("a") "," BLOCK("b\\n") "," BLOCK("c") "," BLOCK(               \
        "d") "," BLOCK("e") "]"

typedef struct reading {
    record *record;
    char seen[512]; /* the batches as text: "[1:a 2:b][3:c]" */
    int most;       /* number of segments that are taken from each batch; 0 = all */
    void (*inside)(struct reading *reading, segue_request *request);
} reading;

static void add(reading *r, const char *text)
{
    assert_true(strlen(r->seen) + strlen(text) < sizeof r->seen);
    strcat(r->seen, text);
}

static void take_batch(void *user, segue_request *request, segue_segment_batch *batch)
{
    record *owner = user;
    reading *r = owner->user;
    const segue_segment *segment;
    char item[64];
    int count = 0;
    add(r, "[");
    while ((!r->most || count < r->most) && (segment = segue_segment_batch_next(batch))) {
        snprintf(item, sizeof item, "%s%d:%s", count ? " " : "",
                 (int)segue_segment_read(segment)->number,
                 segue_segment_text(segment, NULL));
        assert_string_equal(segue_segment_read(segment)->type, "text");
        add(r, item);
        count++;
        if (r->inside)
            r->inside(r, request);
    }
    assert_true(count > 0);
    if (!r->most)
        assert_null(segue_segment_batch_next(batch));
    add(r, "]");
}

static void never(void *user, segue_request *request, const segue_segment *segment)
{
    (void)user;
    (void)request;
    (void)segment;
    fail_msg("a request with on_segments called on_segment");
}

/* Calls the tool; the segments come in batches. Returns the message of the call. */
static const char *begin(kit *k, reading *r, const segue_request_options *options)
{
    static const char params[] = "{\"name\":\"t\"}";
    segue_request_events events;
    kit_begin_2025(k, NULL, SERVER_PLAIN);
    r->record = kit_record(k, &events);
    r->record->user = r;
    events.on_segment = never;
    events.on_segments = take_batch;
    assert_int_equal(segue_request_start(k->session, "tools/call", params,
                                         sizeof params - 1, options, &events,
                                         &r->record->request, NULL),
                     SEGUE_OK);
    kit_run(k);
    return kit_expect(k, "tools/call");
}

static void segments_that_are_due_come_together(void **state)
{
    kit k = {0};
    reading r = {0};
    (void)state;
    const char *call = begin(&k, &r, NULL);
    kit_result(&k, call, FIVE);
    assert_string_equal(r.seen, "[1:a 2:b\n 3:c 4:d 5:e]");
    assert_int_equal(r.record->status, SEGUE_OK);
    kit_end(&k);
}

#ifdef SGI_KNOBS
static void a_batch_has_a_limit(void **state)
{
    kit k = {0};
    reading r = {0};
    sgi_threshold_values usual = sgi_thresholds;
    (void)state;
    sgi_thresholds.segment_batch = 2;
    const char *call = begin(&k, &r, NULL);
    kit_result(&k, call, FIVE);
    sgi_thresholds = usual;
    assert_string_equal(r.seen, "[1:a 2:b\n][3:c 4:d][5:e]");
    assert_int_equal(r.record->completed, 1);
    kit_end(&k);
}
#endif

static void credit_bounds_a_batch(void **state)
{
    kit k = {0};
    reading r = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    (void)state;
    options.credit = 2;
    const char *call = begin(&k, &r, &options);
    kit_result(&k, call, FIVE);
    assert_string_equal(r.seen, "[1:a 2:b\n]");
    assert_int_equal(r.record->completed, 0);
    assert_int_equal(segue_request_grant(r.record->request, 1), SEGUE_OK);
    kit_run(&k);
    assert_string_equal(r.seen, "[1:a 2:b\n][3:c]");
    assert_int_equal(segue_request_grant(r.record->request, 9), SEGUE_OK);
    kit_run(&k);
    assert_string_equal(r.seen, "[1:a 2:b\n][3:c][4:d 5:e]");
    assert_int_equal(r.record->status, SEGUE_OK);
    kit_end(&k);
}

static void grant_one(reading *r, segue_request *request)
{
    (void)r;
    assert_int_equal(segue_request_grant(request, 1), SEGUE_OK);
}

static void credit_that_a_batch_grants_counts_for_the_next(void **state)
{
    kit k = {0};
    reading r = {.inside = grant_one};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    (void)state;
    options.credit = 2;
    const char *call = begin(&k, &r, &options);
    kit_result(&k, call, FIVE);
    assert_string_equal(r.seen, "[1:a 2:b\n][3:c 4:d][5:e]");
    assert_int_equal(r.record->status, SEGUE_OK);
    kit_end(&k);
}

static void what_a_batch_leaves_is_gone(void **state)
{
    kit k = {0};
    reading r = {.most = 2};
    (void)state;
    const char *call = begin(&k, &r, NULL);
    kit_result(&k, call, FIVE);
    assert_string_equal(r.seen, "[1:a 2:b\n]");
    assert_int_equal(r.record->status, SEGUE_OK);
    kit_end(&k);
}

static void other_events_keep_their_place(void **state)
{
    kit k = {0};
    reading r = {0};
    (void)state;
    const char *call = begin(&k, &r, NULL);
    char *id = strdup(json_at(call, "id"));
    kit_say(
        &k,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[" BLOCK("a") "," BLOCK(
            "b") "],\"_meta\":{\"hasMore\":true}}}\n"
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                 "\"params\":{\"progressToken\":%s,\"progress\":1}}\n"
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[" BLOCK(
                     "c") "]}}",
        id, json_at(call, "params._meta.progressToken"), id);
    free(id);
    assert_string_equal(r.seen, "[1:a 2:b][3:c]");
    assert_non_null(strstr(r.record->log, "progress 1/0 -\ncomplete SEGUE_OK\n"));
    kit_end(&k);
}

static void cancel(reading *r, segue_request *request)
{
    if (!strcmp(r->seen, "[1:a"))
        assert_int_equal(segue_request_cancel(request), SEGUE_OK);
}

static void cancelled_in_a_batch_the_request_ends_once(void **state)
{
    kit k = {0};
    reading r = {.inside = cancel};
    (void)state;
    const char *call = begin(&k, &r, NULL);
    kit_result(
        &k, call,
        "\"content\":[" BLOCK("a") "," BLOCK("b") "],\"_meta\":{\"hasMore\":true}");
    assert_string_equal(r.seen, "[1:a 2:b]");
    kit_expect(&k, "notifications/cancelled");
    kit_run(&k);
    assert_int_equal(r.record->completed, 1);
    assert_int_equal(r.record->status, SEGUE_E_CANCELLED);
    kit_end(&k);
}

static void an_error_comes_after_the_batch(void **state)
{
    kit k = {0};
    reading r = {0};
    (void)state;
    const char *call = begin(&k, &r, NULL);
    char *id = strdup(json_at(call, "id"));
    kit_say(
        &k,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[" BLOCK("a") "," BLOCK(
            "b") "],\"_meta\":{\"hasMore\":true}}}\n"
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,"
                 "\"message\":\"m\"}}",
        id, id);
    free(id);
    assert_string_equal(r.seen, "[1:a 2:b]");
    assert_int_equal(r.record->status, SEGUE_E_REMOTE);
    assert_at(r.record->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("segments that are due come together", segments_that_are_due_come_together),
#ifdef SGI_KNOBS
        NAMED("a batch has a limit", a_batch_has_a_limit),
#endif
        NAMED("credit bounds a batch", credit_bounds_a_batch),
        NAMED("credit that a batch grants counts for the next",
              credit_that_a_batch_grants_counts_for_the_next),
        NAMED("what a batch leaves is gone", what_a_batch_leaves_is_gone),
        NAMED("other events keep their place in the order",
              other_events_keep_their_place),
        NAMED("cancelled in the middle of a batch, the request ends once",
              cancelled_in_a_batch_the_request_ends_once),
        NAMED("an error comes after the batch, with what had arrived",
              an_error_comes_after_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
