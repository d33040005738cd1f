/* Text that crosses a boundary keeps its length. A NUL from a peer does not hide the text
 * after it. Two different texts never become equal where they identify callers or
 * types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/error.h"
#include "support/client_kit.h"
#include "support/http_stage.h"

#define SHOWN "\xef\xbf\xbd" /* shown instead of a NUL */

/* ---- what a peer says to people ---- */

static record *begin_call(kit *k, const char *capabilities, char *line, size_t size)
{
    kit_begin_modern(k, NULL, capabilities);
    record *r = kit_call(k, "t");
    snprintf(line, size, "%s", kit_expect(k, "tools/call"));
    return r;
}

static void error_messages_are_whole(void **state)
{
    kit k = {0};
    char line[4096];
    (void)state;
    record *r = begin_call(&k, SERVER_PLAIN, line, sizeof line);
    const char *id = strstr(line, "\"id\":") + 5;
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":-32000,"
            "\"message\":\"\\u0000no room\\u0000 for a \\ud83d\\ude00\"}}",
            atoi(id));
    kit_run(&k);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_string_equal(r->message, SHOWN "no room" SHOWN " for a \xf0\x9f\x98\x80");
    kit_end(&k);
}

static void progress_is_whole(void **state)
{
    kit k = {0};
    char line[4096];
    (void)state;
    record *r = begin_call(&k, SERVER_PLAIN, line, sizeof line);
    const char *token = strstr(line, "\"progressToken\":") + 16;
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
            "\"progressToken\":%d,\"progress\":1,\"total\":2,\"message\":\"a\\u0000b\"}}",
            atoi(token));
    kit_result(&k, line, "\"resultType\":\"complete\",\"content\":[]");
    kit_run(&k);
    assert_non_null(strstr(r->log, "progress 1/2 a" SHOWN "b\n"));
    kit_end(&k);
}

static void status_messages_are_whole(void **state)
{
    kit k = {0};
    char line[4096];
    (void)state;
    record *r = begin_call(&k, SERVER_TASKS, line, sizeof line);
    kit_result(&k, line, CREATED("T") ",\"statusMessage\":\"a\\u0000b\"");
    kit_run(&k);
    assert_non_null(strstr(r->log, "status working a" SHOWN "b\n"));
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
    kit_run(&k);
    kit_end(&k);
}

/* The id of a task is text of the server. A log has its first 12 bytes, because the whole
 * id gives access to the task. The last of them is in the middle of a character. */
#define LETTERS "aaaaaaaaaaa"
#define LONG_ID LETTERS "\xc3\xa4zzz"

static void a_log_quotes_whole_characters(void **state)
{
    kit k = {0};
    char line[4096];
    (void)state;
    begin_call(&k, SERVER_STREAMS, line, sizeof line);
    kit_result(&k, line, CREATED(LONG_ID));
    kit_expect(&k, "tasks/stream");
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
            "\"taskId\":\"" LONG_ID "\",\"seq\":0,\"type\":"
            "\"dev.segue.content.partial\",\"payload\":7}}");
    kit_run(&k);
    assert_non_null(strstr(k.last_warning, "task " LETTERS " is invalid"));
    kit_end(&k);
}

static void a_message_has_whole_characters(void **state)
{
    static const char *const rows[][2] = {{"\xc3\xa4", "\xc3\xa4"},
                                          {"a\xe2\x82", "a"},
                                          {"\xf0\x9f\x98.", "."},
                                          {"\xc3", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        segue_error *error = sgi_error_new(&sgi_mem_libc, SEGUE_E_INVALID, 0,
                                           sgi_str_of(rows[i][0]), (sgi_str){0});
        assert_string_equal(segue_error_read(error)->message, rows[i][1]);
        segue_error_free(error);
    }
}

/* ---- types ---- */

typedef struct seen {
    char types[256];
    int ended;
} seen;

static void see_type(void *user, segue_request *request, const segue_segment *segment)
{
    seen *s = user;
    size_t len = strlen(s->types);
    (void)request;
    snprintf(s->types + len, sizeof s->types - len, "[%s]",
             segue_segment_read(segment)->type);
}

static void see_end(void *user, segue_request *request, segue_status status,
                    const char *json, size_t len, const segue_error *error)
{
    (void)request;
    (void)status;
    (void)json;
    (void)len;
    (void)error;
    ((seen *)user)->ended = 1;
}

static void a_type_with_a_nul_is_no_other_type(void **state)
{
    kit k = {0};
    seen s = {0};
    segue_request *request;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    (void)state;
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    events.user = &s;
    events.on_segment = see_type;
    events.on_complete = see_end;
    assert_int_equal(segue_request_start(k.session, "tools/call", "{\"name\":\"t\"}", 12,
                                         NULL, &events, &request, NULL),
                     SEGUE_OK);
    kit_run(&k);
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"resultType\":\"complete\",\"content\":["
               "{\"type\":\"text\\u0000x\",\"text\":\"a\"},"
               "{\"type\":\"te\\u0078t\",\"text\":\"b\"}]");
    kit_run(&k);
    assert_int_equal(s.ended, 1);
    assert_string_equal(s.types, "[][text]");
    segue_request_free(request);
    kit_end(&k);
}

/* ---- who calls ---- */

static segue_status name_caller(void *user, segue_transport *transport,
                                const char **principal)
{
    (void)user;
    *principal = segue_transport_header(transport, "X-User");
    return SEGUE_OK;
}

/* HTTP allows any byte above 127 in a header. A binding could not tell two such names
 * apart, so they are refused. */
static void a_principal_is_utf8(void **state)
{
    static const struct {
        const char *lines;
        int status;
    } rows[] = {{"X-User: ada\r\n", 200},
                {"X-User: \xc3\xa4\r\n", 200},
                {"X-User: \xff\r\n", 401},
                {"X-User: a\xed\xa0\x80\r\n", 401},
                {"X-User: a\xc0\x80\r\n", 401}};
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
        "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}";
    http_stage s = {.principal = name_caller};
    http_caller c;
    http_reply reply;
    (void)state;
    http_stage_begin(&s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        http_caller_open(&s, &c);
        http_caller_ask(&c, http_post(rows[i].lines, body), &reply);
        assert_int_equal(reply.status, rows[i].status);
        http_reply_free(&reply);
        http_caller_close(&c);
    }
    http_stage_end(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_messages_are_whole),
        cmocka_unit_test(progress_is_whole),
        cmocka_unit_test(status_messages_are_whole),
        cmocka_unit_test(a_log_quotes_whole_characters),
        cmocka_unit_test(a_message_has_whole_characters),
        cmocka_unit_test(a_type_with_a_nul_is_no_other_type),
        cmocka_unit_test(a_principal_is_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
