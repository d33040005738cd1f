/* A client and the growing result of a plain call: responses that announce more (PR 776).
 * The test plays a server that also does what none should. */
#include "engine/client/request.h"
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
#define CONTENT(blocks) "\"content\":[" blocks "]"
#define PART(blocks) CONTENT(blocks) ",\"_meta\":{\"hasMore\":true}"
#define PLACED(blocks, index)                                                            \
    CONTENT(blocks) ",\"_meta\":{\"hasMore\":true,\"index\":" #index "}"

static record *begin(kit *k, const char **call)
{
    kit_begin_2025(k, NULL, SERVER_PLAIN);
    record *r = kit_call(k, "t");
    *call = kit_expect(k, "tools/call");
    assert_at(*call, "params._meta.allowPartial", "true");
    return r;
}

static void assert_ok(record *r, const char *content, const char *log)
{
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content", content);
    assert_non_null(strstr(r->log, log));
}

/* ---- P ---- */

static void pieces_make_one_result(void **state)
{
    kit k = {0};
    const char *call;
    (void)state;
    record *r = begin(&k, &call);
    kit_result(&k, call, PART(BLOCK("a")));
    kit_result(&k, call, PART(BLOCK("b") "," BLOCK("c")));
    assert_string_equal(r->log, "segment 1 a\nsegment 2 b\nsegment 3 c\n");
    kit_result(&k, call, CONTENT(BLOCK("d")) ",\"structuredContent\":{\"x\":1}");
    assert_ok(r, "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "," BLOCK("d") "]",
              "segment 4 d\n");
    assert_at(r->result, "structuredContent", "{\"x\":1}");
    assert_at(r->result, "_meta", "");
    kit_result(&k, call, PART(BLOCK("e"))); /* a late piece: no request waits for it */
    assert_int_equal(r->segments, 4);
    kit_end(&k);
}

/* R-776-22: a large result is accepted, although the application reads no segments. */
static void whoever_wants_no_segments_asks_for_pieces(void **state)
{
    static const char params[] = "{\"name\":\"t\"}";
    kit k = {0};
    segue_request_events events;
    (void)state;
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    record *r = kit_record(&k, &events);
    events.on_segment = NULL;
    assert_int_equal(segue_request_start(k.session, "tools/call", params,
                                         sizeof params - 1, NULL, &events, &r->request,
                                         NULL),
                     SEGUE_OK);
    kit_run(&k);
    const char *call = kit_expect(&k, "tools/call");
    assert_at(call, "params._meta.allowPartial", "true");
    kit_result(&k, call, PART(BLOCK("a")));
    kit_result(&k, call, CONTENT(BLOCK("b")));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 0);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
    kit_end(&k);
}

static void the_last_may_be_empty(void **state)
{
    kit k = {0};
    const char *call;
    (void)state;
    record *r = begin(&k, &call);
    kit_result(&k, call, PART(BLOCK("a")));
    kit_result(&k, call, CONTENT(""));
    assert_ok(r, "[" BLOCK("a") "]", "segment 1 a\n");
    kit_end(&k);
}

static void one_response_is_the_result(void **state)
{
    kit k = {0};
    const char *call;
    (void)state;
    record *r = begin(&k, &call);
    kit_result(&k, call, CONTENT(BLOCK("a")));
    assert_ok(r, "[" BLOCK("a") "]", "segment 1 a\n");
    kit_end(&k);
}

typedef struct places {
    char text[256];
} places;

static void note_place(void *user, segue_request *request, const segue_segment *segment)
{
    places *p = user;
    (void)request;
    size_t used = strlen(p->text);
    snprintf(p->text + used, sizeof p->text - used, "%d@%d%s ",
             (int)segue_segment_read(segment)->number,
             (int)segue_segment_read(segment)->index,
             segue_segment_read(segment)->replaces ? "!" : "");
}

/* Makes a call whose segments are noted with their indices. */
static segue_request *call_noted(kit *k, places *p)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    segue_request *request;
    events.user = p;
    events.on_segment = note_place;
    assert_int_equal(segue_request_start(k->session, "tools/call", "{\"name\":\"t\"}", 12,
                                         NULL, &events, &request, NULL),
                     SEGUE_OK);
    kit_run(k);
    return request;
}

static void pieces_have_places(void **state)
{
    kit k = {0};
    places p = {""};
    (void)state;
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    segue_request *request = call_noted(&k, &p);
    const char *call = kit_expect(&k, "tools/call");
    kit_result(&k, call, PLACED(BLOCK("con"), 0));
    kit_result(&k, call, PLACED(BLOCK("tent 1."), 0));
    kit_result(&k, call, PLACED(BLOCK("cont"), 1));
    kit_result(&k, call,
               CONTENT(BLOCK("new")) ",\"_meta\":{\"hasMore\":true,\"mergeStrategy\":"
                                     "\"replace\"}");
    kit_result(&k, call, CONTENT(BLOCK("end")));
    assert_string_equal(p.text, "1@0 2@0 3@1 4@0! 5@1 ");
    segue_request_free(request);
    kit_end(&k);
}

static void malformed(void **state)
{
    static const char *const bad[] = {
        PLACED(BLOCK("a"), 5),
        PLACED(BLOCK("a"), -1),
        PLACED(BLOCK("a"), "0"),
        PLACED(BLOCK("a"), 0.5),
        CONTENT(BLOCK("a")) ",\"_meta\":{\"hasMore\":true,\"mergeStrategy\":\"deep\"}",
        "\"content\":{},\"_meta\":{\"hasMore\":true}",
        "\"content\":[1],\"_meta\":{\"hasMore\":true}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kit k = {0};
        const char *call;
        record *r = begin(&k, &call);
        kit_result(&k, call, "%s", bad[i]);
        assert_int_equal(r->completed, 1);
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
        assert_at(kit_expect(&k, "notifications/cancelled"), "params.requestId",
                  json_at(call, "id"));
        record *next = kit_call(&k, "t"); /* the session stays usable */
        kit_result(&k, kit_expect(&k, "tools/call"), CONTENT(BLOCK("a")));
        assert_int_equal(next->status, SEGUE_OK);
        kit_end(&k);
    }
}

static void an_error_keeps_what_came(void **state)
{
    kit k = {0};
    const char *call;
    (void)state;
    record *r = begin(&k, &call);
    kit_result(&k, call, PART(BLOCK("a")));
    kit_result(&k, call, PART(BLOCK("b")));
    kit_error(&k, call, -32603, NULL);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32603);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
    uint64_t warnings = k.session->engine->warnings;
    kit_result(&k, call, PART(BLOCK("c")));
    assert_int_equal(k.session->engine->warnings, warnings + 1);
    assert_int_equal(r->segments, 2);
    kit_end(&k);
}

static void a_cut_leaves_what_came(void **state)
{
    kit k = {0};
    const char *call;
    (void)state;
    record *r = begin(&k, &call);
    kit_result(&k, call, PART(BLOCK("a")));
    kit_result(&k, call, PART(BLOCK("b")));
    kit_cut(&k);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
    kit_end(&k);
}

/* The call is sent again by its key and fails: the error comes with what came before. */
static void a_second_exchange_that_fails(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        kit k = {.can_reopen = 1};
        kit_begin_2025(&k, NULL, SERVER_2025_KEYS);
        kit_start(&k, "tools/list", NULL, NULL);
        kit_list_tools(&k);
        record *r = kit_call(&k, "p");
        const char *call = kit_expect(&k, "tools/call");
        kit_result(&k, call, PART(BLOCK("a")));
        kit_result(&k, call, PART(BLOCK("b")));
        kit_cut(&k);
        kit_handshake_2025(&k, SERVER_2025_KEYS);
        kit_list_tools(&k);
        call = kit_expect(&k, "tools/call");
        if (again)
            kit_result(&k, call, PART(BLOCK("a")));
        kit_error(&k, call, -32603, NULL);
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
        kit_end(&k);
    }
}

static void a_cancel_says_so(void **state)
{
    kit k = {0};
    const char *call;
    (void)state;
    record *r = begin(&k, &call);
    kit_result(&k, call, PART(BLOCK("a")));
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_run(&k);
    kit_expect(&k, "notifications/cancelled");
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    assert_at(r->result, "content", "[" BLOCK("a") "]");
    kit_result(&k, call, PART(BLOCK("b")));
    assert_int_equal(r->segments, 1);
    kit_end(&k);
}

#define TOO_LARGE(limit)                                                                 \
    "the result is too large: max_result_bytes is " limit                                \
    "; raise the limit in the session's options, or read the segments as they come and " \
    "do not collect them"

/* R-776-29: the total size is limited. */
static void more_than_may_be(void **state)
{
    kit k = {0};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    char block[400];
    (void)state;
    options.max_result_bytes = 1000;
    kit_begin_2025(&k, &options, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    memset(block, 'x', sizeof block);
    block[sizeof block - 1] = 0;
    for (int i = 0; i < 4 && !r->completed; i++)
        kit_result(&k, call,
                   "\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],"
                   "\"_meta\":{\"hasMore\":true}",
                   block);
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    assert_string_equal(r->message, TOO_LARGE("1000"));
    kit_expect(&k, "notifications/cancelled");
    kit_end(&k);
}

/* Segments that are not collected do not count against the limit of collected ones. */
static void more_than_is_collected(void **state)
{
    static const char params[] = "{\"name\":\"t\"}";
    kit k = {0};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_request_options how = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events events;
    (void)state;
    options.max_result_bytes = 100;
    kit_begin_2025(&k, &options, SERVER_PLAIN);
    record *r = kit_record(&k, &events);
    how.discard = 1;
    assert_int_equal(segue_request_start(k.session, "tools/call", params,
                                         sizeof params - 1, &how, &events, &r->request,
                                         NULL),
                     SEGUE_OK);
    kit_run(&k);
    const char *call = kit_expect(&k, "tools/call");
    for (int i = 0; i < 9; i++)
        kit_result(&k, call,
                   "\"content\":[" BLOCK("a") "],"
                                              "\"_meta\":{\"hasMore\":true,\"index\":%d}",
                   i / 2);
    kit_result(&k, call, CONTENT(BLOCK("b")));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 10);
    assert_at(r->result, "content", "[]");
    kit_end(&k);
}

/* The same operation is sent again from its start (C-9): nothing comes twice. */
static void told_again(void **state)
{
    kit k = {0};
    const char *call;
    (void)state;
    record *r = begin(&k, &call);
    kit_result(&k, call,
               CONTENT(BLOCK("a") "," BLOCK("b")) ",\"_meta\":{\"hasMore\":true,"
                                                  "\"dev.segue/seq\":1}");
    kit_result(&k, call,
               CONTENT(BLOCK("a")) ",\"_meta\":{\"hasMore\":true,\"dev.segue/seq\":1,"
                                   "\"mergeStrategy\":\"replace\"}");
    kit_result(&k, call,
               CONTENT(BLOCK("b") "," BLOCK("c")) ",\"_meta\":{\"dev.segue/seq\":2}");
    assert_ok(r, "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]",
              "segment 1 a\nsegment 2 b\nsegment 3 c\n");
    assert_int_equal(r->segments, 3);
    kit_end(&k);
}

static void switched_off(void **state)
{
    kit k = {0};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    (void)state;
    options.dialects_off = SEGUE_DIALECT_PARTIAL;
    kit_begin_2025(&k, &options, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    assert_null(strstr(call, "allowPartial"));
    kit_result(&k, call, PART(BLOCK("a"))); /* not requested: the first response counts */
    assert_ok(r, "[" BLOCK("a") "]", "segment 1 a\n");
    kit_end(&k);
}

/* ---- pieces without content ---- */

/* R-776-29: a limited number of empty pieces may come in a row, and they do not keep a
 * call alive. */
static void empty_pieces(int bounded)
{
    kit k = {0};
    const char *call;
    record *r = begin(&k, &call);
    if (bounded)
        k.session->max_empty_pieces = 3;
    for (int i = 0; i < 40 && !r->completed; i++) {
        const char *content = i < 2 ? CONTENT(BLOCK("a")) : CONTENT("");
        kit_result(&k, call, "%s,\"_meta\":{\"hasMore\":true}", content);
        if (!bounded)
            kit_advance(&k, 10000);
    }
    assert_int_equal(r->status, bounded ? SEGUE_E_LIMIT : SEGUE_E_TIMEOUT);
    if (bounded)
        assert_non_null(strstr(r->message, "no content: at most 3"));
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("a") "]");
    kit_expect(&k, "notifications/cancelled");
    kit_end(&k);
}

static void empty_pieces_have_a_bound(void **state)
{
    (void)state;
    empty_pieces(1);
}

static void empty_pieces_are_silence(void **state)
{
    (void)state;
    empty_pieces(0);
}

/* ---- P of other requests ---- */

static record *ask(kit *k, const char *method, const char *params, const char **request)
{
    segue_request_events events;
    record *r = kit_record(k, &events);
    events.on_segment = NULL;
    assert_int_equal(segue_request_start(k->session, method, params, strlen(params), NULL,
                                         &events, &r->request, NULL),
                     SEGUE_OK);
    kit_run(k);
    *request = kit_expect(k, method);
    return r;
}

/* Every request whose result is a list asks for pieces; the pieces become one list. */
static void lists_come_in_pieces(void **state)
{
    static const struct {
        const char *method, *list, *params;
    } methods[] = {{"tools/list", "tools", "{}"},
                   {"resources/list", "resources", "{}"},
                   {"resources/templates/list", "resourceTemplates", "{}"},
                   {"prompts/list", "prompts", "{}"},
                   {"resources/read", "contents", "{\"uri\":\"test://x\"}"},
                   {"prompts/get", "messages", "{\"name\":\"p\"}"}};
    kit k = {0};
    (void)state;
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const char *request;
        char piece[128];
        record *r = ask(&k, methods[i].method, methods[i].params, &request);
        assert_at(request, "params._meta.allowPartial", "true");
        snprintf(piece, sizeof piece, "\"%s\":[{\"n\":1}],\"_meta\":{\"hasMore\":true}",
                 methods[i].list);
        kit_result(&k, request, piece);
        assert_int_equal(r->completed, 0);
        snprintf(piece, sizeof piece, "\"%s\":[{\"n\":2},{\"n\":3}],\"nextCursor\":\"c\"",
                 methods[i].list);
        kit_result(&k, request, piece);
        assert_int_equal(r->status, SEGUE_OK);
        assert_at(r->result, methods[i].list, "[{\"n\":1},{\"n\":2},{\"n\":3}]");
        assert_at(r->result, "nextCursor", "\"c\"");
        assert_at(r->result, "_meta", "");
    }
    kit_end(&k);
}

#define CONTENTS(members) "\"contents\":[{\"uri\":\"test://x\"," members "}]"
#define AT(index) ",\"_meta\":{\"hasMore\":true,\"index\":" index "}"

/* A text at a place that has one goes on there; a blob is replaced. */
static void the_text_of_a_resource_goes_on(void **state)
{
    kit k = {0};
    const char *request;
    (void)state;
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    record *r = ask(&k, "resources/read", "{\"uri\":\"test://x\"}", &request);
    kit_result(&k, request, CONTENTS("\"mimeType\":\"text/x\",\"text\":\"con\"") AT("0"));
    kit_result(&k, request, CONTENTS("\"blob\":\"AA==\"") AT("1"));
    kit_result(&k, request, CONTENTS("\"text\":\"tent\"") AT("0"));
    kit_result(&k, request, CONTENTS("\"blob\":\"AQ==\"") AT("1"));
    kit_result(&k, request, "\"contents\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "contents.0.uri", "\"test://x\"");
    assert_at(r->result, "contents.0.mimeType", "\"text/x\"");
    assert_at(r->result, "contents.0.text", "\"content\"");
    assert_at(r->result, "contents.1.blob", "\"AQ==\"");
    kit_end(&k);
}

static void a_text_of_a_resource_is_bounded(void **state)
{
    kit k = {0};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    const char *request;
    int pieces = 0;
    (void)state;
    options.max_result_bytes = 100;
    kit_begin_2025(&k, &options, SERVER_PLAIN);
    record *r = ask(&k, "resources/read", "{\"uri\":\"test://x\"}", &request);
    for (; pieces < 9 && !r->completed; pieces++)
        kit_result(&k, request, CONTENTS("\"text\":\"twenty bytes of a text\"") AT("0"));
    assert_in_range(pieces, 2, 8);
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    kit_expect(&k, "notifications/cancelled");
    kit_end(&k);
}

/* A request whose result is no list does not ask for pieces, and neither does one of
 * 2026-07-28. */
static void others_do_not_ask(void **state)
{
    kit k = {0};
    const char *request;
    (void)state;
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    ask(&k, "ping", "{}", &request);
    assert_null(strstr(request, "allowPartial"));
    kit_result(&k, request, "\"_meta\":{}");
    ask(&k, "completion/complete",
        "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},"
        "\"argument\":{\"name\":\"a\",\"value\":\"\"}}",
        &request);
    assert_null(strstr(request, "allowPartial"));
    kit_result(&k, request, "\"_meta\":{}");
    kit_end(&k);
    k = (kit){0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    ask(&k, "tools/list", "{}", &request);
    assert_null(strstr(request, "allowPartial"));
    kit_result(&k, request, "\"tools\":[]");
    kit_end(&k);
}

static void a_cut_leaves_a_part_of_the_list(void **state)
{
    kit k = {0};
    const char *request;
    (void)state;
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    record *r = ask(&k, "prompts/list", "{}", &request);
    kit_result(&k, request,
               "\"prompts\":[{\"name\":\"a\"}],\"_meta\":{\"hasMore\":true}");
    kit_cut(&k);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_at(r->result, "prompts", "[{\"name\":\"a\"}]");
    kit_end(&k);
}

#define SCHEMA(name)                                                                     \
    "{\"name\":\"" name "\",\"inputSchema\":{},\"outputSchema\":{\"type\":\"object\"}}"

/* Everything that a list says of tools is learnt from all of its pieces. */
static void all_pieces_are_learnt_from(void **state)
{
    kit k = {0};
    const char *request;
    (void)state;
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    k.session->tools.schemas.on = true;
    ask(&k, "tools/list", "{}", &request);
    kit_result(&k, request, "\"tools\":[" SCHEMA("a") "],\"_meta\":{\"hasMore\":true}");
    kit_result(&k, request, "\"tools\":[" SCHEMA("b") "]");
    assert_true(sgi_tool_schemas_find(&k.session->tools.schemas, SGI_STR("a")).n > 0);
    assert_true(sgi_tool_schemas_find(&k.session->tools.schemas, SGI_STR("b")).n > 0);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("R-776-31 lists come in pieces", lists_come_in_pieces),
        NAMED("R-776-31 others do not ask for pieces", others_do_not_ask),
        NAMED("R-776-32 the text of a resource goes on", the_text_of_a_resource_goes_on),
        NAMED("R-776-32 R-776-29 the text of a resource is bounded",
              a_text_of_a_resource_is_bounded),
        NAMED("R-776-31 R-776-27 a cut leaves a part of the list",
              a_cut_leaves_a_part_of_the_list),
        NAMED("R-776-31 tools are learnt from all pieces of their list",
              all_pieces_are_learnt_from),
        NAMED("AS-79 R-776-23 pieces make one result", pieces_make_one_result),
        NAMED("R-776-22 whoever wants no segments asks for pieces",
              whoever_wants_no_segments_asks_for_pieces),
        NAMED("AS-81 the last response may be empty", the_last_may_be_empty),
        NAMED("AS-81 one response is the result, as one segment",
              one_response_is_the_result),
        NAMED("AS-82 pieces have indices", pieces_have_places),
        NAMED("AS-82 AS-83 malformed indices and strategies end the call", malformed),
        NAMED("AS-85 an error keeps the pieces that came", an_error_keeps_what_came),
        NAMED("AS-88 a cut keeps the pieces that came", a_cut_leaves_what_came),
        NAMED("AS-85 an error of a second exchange keeps the pieces of the first",
              a_second_exchange_that_fails),
        NAMED("AS-87 a cancel is sent, and late pieces are dropped", a_cancel_says_so),
        cmocka_unit_test(more_than_may_be),
        NAMED("R-776-22 more than may be collected is only looked at",
              more_than_is_collected),
        cmocka_unit_test(told_again),
        cmocka_unit_test(switched_off),
        NAMED("R-776-29 empty pieces have a bound", empty_pieces_have_a_bound),
        NAMED("R-776-29 empty pieces are silence", empty_pieces_are_silence),
    };
    return cmocka_run_group_tests_name("client_partial", tests, NULL, NULL);
}
