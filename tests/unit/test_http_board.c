/* The task board of a listener: its page, its requests, who may send them, and its
 * limits. tests/board drives the page in a browser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thresholds.h"
#include "support/mount_stage.h"

#define HOST "Host: localhost\r\n"
#define JSON_TYPE "Content-Type: application/json\r\n"
/* a token, and its SHA-256 */
#define TOKEN "secret"
#define TOKEN_LINE                                                                       \
    "ada 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n"

static void begin(http_stage *s)
{
    s->listen.board_path = "/board";
    http_stage_begin(s);
}

/* Sends a request with these header lines and this body, and returns the body of the
 * answer, which the caller frees. */
static char *send_request(http_stage *s, const char *method, const char *path,
                          const char *lines, const char *body, int *status)
{
    http_caller c;
    http_reply reply;
    char text[2048];
    snprintf(text, sizeof text, "%s /board%s HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n%s",
             method, path, lines, strlen(body), body);
    http_caller_open(s, &c);
    http_caller_say(&c, text);
    http_caller_read(&c, &reply);
    http_caller_close(&c);
    *status = reply.status;
    return reply.body;
}

static void expect(http_stage *s, const char *method, const char *path, const char *lines,
                   const char *body, int wanted)
{
    int status;
    free(send_request(s, method, path, lines, body, &status));
    assert_int_equal(status, wanted);
}

static char *get(http_stage *s, const char *path)
{
    int status;
    char *body = send_request(s, "GET", path, HOST, "", &status);
    assert_int_equal(status, 200);
    return body;
}

static void expect_text(http_stage *s, const char *path, const char *part)
{
    char *body = get(s, path);
    if (!strstr(body, part))
        fail_msg("%s: no %s in %s", path, part, body);
    free(body);
}

static void expect_no_text(http_stage *s, const char *path, const char *part)
{
    char *body = get(s, path);
    if (strstr(body, part))
        fail_msg("%s: %s is in %s", path, part, body);
    free(body);
}

static const char *path_of(const char *name, const char *id, const char *more)
{
    static char path[256];
    snprintf(path, sizeof path, "/api/%s?id=%s%s", name, id, more);
    return path;
}

/* Starts a task that asks its client a question. */
static void start_asking(http_stage *s, char id[64])
{
    http_caller c;
    http_reply reply;
    http_caller_open(s, &c);
    http_caller_ask(&c,
                    http_request("1", "tools/call", "confirm_delete",
                                 "\"name\":\"confirm_delete\",\"arguments\":{\"path\":"
                                 "\"/private\"}",
                                 "{\"elicitation\":{\"form\":{}},\"extensions\":{"
                                 "\"io.modelcontextprotocol/tasks\":{}}}"),
                    &reply);
    assert_int_equal(
        sscanf(strstr(reply.body, "\"taskId\""), "\"taskId\":\"%63[^\"]", id), 1);
    http_reply_free(&reply);
    http_caller_close(&c);
    http_stage_advance(s, 1000);
}

/* ---- the page ---- */

static void the_page_is_guarded(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    begin(&s);
    http_caller_open(&s, &c);
    http_caller_say(&c, "GET /board HTTP/1.1\r\n" HOST "\r\n");
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 308);
    assert_string_equal(http_reply_header(&reply, "Location"), "board/");
    http_reply_free(&reply);
    http_caller_say(&c, "GET /board/ HTTP/1.1\r\n" HOST "\r\n");
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(http_reply_header(&reply, "Content-Type"),
                        "text/html; charset=utf-8");
    assert_string_equal(http_reply_header(&reply, "X-Frame-Options"), "DENY");
    assert_string_equal(http_reply_header(&reply, "X-Content-Type-Options"), "nosniff");
    assert_string_equal(http_reply_header(&reply, "Referrer-Policy"), "no-referrer");
    assert_non_null(strstr(http_reply_header(&reply, "Content-Security-Policy"),
                           "default-src 'none'; script-src 'self'"));
    assert_non_null(strstr(reply.body, "<segue-board>"));
    http_reply_free(&reply);
    http_caller_close(&c);
    expect_text(&s, "/board.js", "customElements.define");
    expect_text(&s, "/board.css", "prefers-color-scheme");
    expect(&s, "GET", "/nothing", HOST, "", 404);
    expect(&s, "POST", "/", HOST, "", 405);
    http_stage_end(&s);
}

static void a_board_at_the_root_leaves_the_other_paths(void **state)
{
    http_stage s = {.listen = {.board_path = "/"}};
    http_caller c;
    http_reply reply;
    (void)state;
    http_stage_begin(&s);
    http_caller_open(&s, &c);
    http_caller_say(&c, "GET / HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(http_caller_status(&c), 200);
    http_caller_say(&c, "GET /api/about HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(http_caller_status(&c), 200);
    http_caller_ask(&c, http_call("1", "greet", "{}"), &reply);
    assert_int_equal(reply.status, 200);
    http_reply_free(&reply);
    http_caller_close(&c);
    http_stage_end(&s);
}

static void there_is_none_without_the_option(void **state)
{
    http_stage s = {0};
    (void)state;
    http_stage_begin(&s);
    expect(&s, "GET", "/", HOST, "", 404);
    expect(&s, "GET", "/api/tasks", HOST, "", 404);
    http_stage_end(&s);
}

/* ---- who may ask ---- */

static void another_page_is_refused(void **state)
{
    http_stage s = {.listen = {.cors = 1, .origins = "*"}};
    (void)state;
    begin(&s);
    const char *tasks = "/api/tasks", *cancel = "/api/command?id=x";
    expect(&s, "GET", tasks, "Host: evil.example\r\n", "", 403);
    expect(&s, "GET", tasks, HOST "Origin: http://localhost:9\r\n", "", 403);
    expect(&s, "GET", tasks, HOST "Sec-Fetch-Site: cross-site\r\n", "", 403);
    expect(&s, "GET", tasks, HOST "Sec-Fetch-Site: same-site\r\n", "", 403);
    expect(&s, "GET", tasks, HOST "Sec-Fetch-Site: same-origin\r\n", "", 200);
    expect(&s, "GET", tasks, HOST "Origin: http://localhost\r\n", "", 200);
    /* a link to the page may be anywhere */
    expect(&s, "GET", "/", HOST "Sec-Fetch-Site: cross-site\r\n", "", 200);
    expect(&s, "GET", cancel, HOST, "", 405);
    expect(&s, "POST", cancel, HOST, "{\"cancel\":1}", 415);
    expect(&s, "POST", cancel, HOST "Content-Type: text/plain\r\n", "{\"cancel\":1}",
           415);
    expect(&s, "POST", cancel, HOST JSON_TYPE "Origin: http://localhost:9\r\n",
           "{\"cancel\":1}", 403);
    expect(&s, "POST", cancel, HOST JSON_TYPE "Origin: http://localhost\r\n",
           "{\"cancel\":1}", 404);
    http_stage_end(&s);
}

static void expect_for(http_stage *s, const char *peer, const char *principal, int status)
{
    mount_call c = {.peer = peer, .local = "192.0.2.1:80", .principal = principal};
    mount_ask(&c, s, strdup("GET /board/api/tasks HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n"),
              status);
    mount_free(&c);
}

static void strangers_are_refused(void **state)
{
    http_stage s = {.by_hand = true};
    (void)state;
    begin(&s);
    expect_for(&s, "192.0.2.7:4711", NULL, 403);
    expect_for(&s, "127.0.0.1:4711", NULL, 200);
    expect_for(&s, "192.0.2.7:4711", "ada", 200);
    mount_call page = {.peer = "127.0.0.1:4711", .local = "127.0.0.1:80"};
    mount_ask(&page, &s, strdup("GET /board/ HTTP/1.1\r\n" HOST "\r\n"), 200);
    mount_free(&page);
    http_stage_end(&s);
}

/* Asks for the list of tasks; returns what the answer says of their number. */
static int total_for(http_stage *s, const char *peer, const char *principal)
{
    int total = -1;
    mount_call c = {.peer = peer, .local = "192.0.2.1:80", .principal = principal};
    mount_ask(&c, s, strdup("GET /board/api/tasks HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n"),
              200);
    const char *at = strstr(c.body, "\"total\":");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"total\":%d", &total), 1);
    mount_free(&c);
    return total;
}

static void a_caller_elsewhere_sees_its_own_tasks(void **state)
{
    static const char *const verbs[] = {"GET /board/api/task?id=%s",
                                        "GET /board/api/entries?after=0&id=%s",
                                        "POST /board/api/command?id=%s"};
    http_stage s = {.by_hand = true};
    char id[64] = "", request[512];
    (void)state;
    begin(&s);
    mount_call make = {
        .peer = "192.0.2.7:1", .local = "192.0.2.1:80", .principal = "bob"};
    mount_ask(&make, &s,
              http_request("1", "tools/call", "hang",
                           "\"name\":\"hang\",\"arguments\":{}",
                           "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"),
              200);
    assert_int_equal(sscanf(strstr(make.body, "\"taskId\""), "\"taskId\":\"%63[^\"]", id),
                     1);
    mount_free(&make);
    http_stage_advance(&s, 1000);
    assert_int_equal(total_for(&s, "192.0.2.7:1", "bob"), 1);
    assert_int_equal(total_for(&s, "192.0.2.8:1", "ada"), 0);
    assert_int_equal(total_for(&s, "127.0.0.1:1", NULL), 1);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        int len = snprintf(request, sizeof request, verbs[i], id);
        const char *body = *verbs[i] == 'P' ? "{\"cancel\":1}" : "";
        snprintf(request + len, sizeof request - (size_t)len,
                 " HTTP/1.1\r\nHost: 192.0.2.1\r\n%sContent-Length: %zu\r\n\r\n%s",
                 *body ? JSON_TYPE "Origin: http://192.0.2.1\r\n" : "", strlen(body),
                 body);
        for (int own = 0; own < 2; own++) {
            mount_call c = {.peer = "192.0.2.7:1",
                            .local = "192.0.2.1:80",
                            .principal = own ? "bob" : "ada"};
            mount_ask(&c, &s, strdup(request), own ? 200 : 404);
            mount_free(&c);
        }
    }
    http_stage_end(&s);
}

static void a_request_through_a_proxy_is_refused(void **state)
{
    http_stage s = {0};
    (void)state;
    begin(&s);
    expect(&s, "GET", "/api/tasks", HOST "X-Forwarded-For: 192.0.2.1\r\n", "", 403);
    expect(&s, "GET", "/api/about", HOST "Forwarded: for=192.0.2.1\r\n", "", 403);
    http_stage_end(&s);
}

/* The page itself has no data, and asks for the token. */
static void a_listener_with_tokens_wants_one(void **state)
{
    http_stage s = {0};
    char tokens[] = "/tmp/segue-tokens-XXXXXX";
    int fd = mkstemp(tokens);
    (void)state;
    assert_int_equal(write(fd, TOKEN_LINE, sizeof TOKEN_LINE - 1), sizeof TOKEN_LINE - 1);
    close(fd);
    s.listen.tokens_file = tokens;
    begin(&s);
    expect(&s, "GET", "/", HOST, "", 200);
    expect(&s, "GET", "/api/about", HOST, "", 401);
    expect(&s, "GET", "/api/tasks", HOST "Authorization: Bearer wrong\r\n", "", 401);
    expect(&s, "GET", "/api/tasks", HOST "Authorization: Bearer " TOKEN "\r\n", "", 200);
    http_stage_end(&s);
    unlink(tokens);
}

static void a_board_with_a_token_wants_it(void **state)
{
    http_stage s = {.listen = {.board_token = "0123456789abcdef"}};
    (void)state;
    begin(&s);
    const char *right = HOST "Authorization: Bearer 0123456789abcdef\r\n";
    static const char *const wrong[] = {HOST,
                                        HOST "Authorization: Bearer 0123456789abcdeg\r\n",
                                        HOST "Authorization: Bearer 0123456789abcde\r\n",
                                        HOST "Authorization: Basic 0123456789abcdef\r\n"};
    expect(&s, "GET", "/", HOST, "", 200);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect(&s, "GET", "/api/about", wrong[i], "", 401);
        expect(&s, "GET", "/api/tasks", wrong[i], "", 401);
    }
    expect(&s, "POST", "/api/command?id=x", HOST JSON_TYPE, "{\"cancel\":1}", 401);
    expect(&s, "GET", "/api/about", right, "", 200);
    expect(&s, "GET", "/api/tasks", right, "", 200);
    http_stage_end(&s);
}

/* ---- looking ---- */

static void tasks_are_shown(void **state)
{
    http_stage s = {0};
    char id[64], part[128];
    (void)state;
    begin(&s);
    expect_text(&s, "/api/about",
                "\"readOnly\":false,\"redacted\":false,\"sources\":[\"/mcp\"]");
    expect_text(&s, "/api/tasks", "\"total\":0,\"tasks\":[]");
    http_stage_start_task(&s, "story", "{\"n\":3}", id);
    http_stage_advance(&s, 60000);
    snprintf(part, sizeof part, "\"tasks\":[[\"%s\",", id);
    expect_text(&s, "/api/tasks", part);
    expect_text(&s, "/api/tasks", ",1,\"story\",null]]");
    snprintf(part, sizeof part, "/api/summaries?ids=nothing,%s", id);
    expect_text(&s, part, "\"status\":\"completed\"");
    expect_text(&s, path_of("task", id, ""), "\"params\":{");
    expect_text(&s, path_of("entries", id, ""), "{\"entries\":[{\"seq\":1,");
    expect_text(&s, path_of("entries", id, "&after=1"), "{\"entries\":[{\"seq\":2,");
    expect_text(&s, path_of("entries", id, "&after=99"),
                "{\"entries\":[],\"more\":false,\"ended\":true}");
    expect(&s, "GET", path_of("entries", id, "&after=-1"), HOST, "", 400);
    expect(&s, "GET", path_of("entries", id, "&after="), HOST, "", 400);
    expect(&s, "GET", path_of("entries", id, "&after=1x"), HOST, "", 400);
    expect(&s, "GET", path_of("entries", id, "&after=99999999999999999999"), HOST, "",
           400);
    expect(&s, "GET", "/api/task?id=nothing", HOST, "", 404);
    expect(&s, "GET", "/api/task", HOST, "", 400);
    expect(&s, "GET", "/api/summaries", HOST, "", 400);
    expect(&s, "GET", "/api/tasks?source=1", HOST, "", 404);
    http_stage_end(&s);
}

/* Each look reads only what is new, and says the same as a look at the whole log. */
static void a_growing_task_is_summed_up(void **state)
{
    http_stage s = {0};
    char id[64], path[96], part[64];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "story", "{\"n\":60,\"delayMs\":100}", id);
    snprintf(path, sizeof path, "/api/summaries?ids=%s", id);
    for (int i = 0; i < 5; i++) {
        http_stage_advance(&s, 1000);
        char *body = get(&s, path_of("entries", id, ""));
        int segments = 0;
        for (const char *at = body; (at = strstr(at, "\"kind\":\"segment\"")); at++)
            segments++;
        free(body);
        assert_true(segments > 5 * i);
        snprintf(part, sizeof part, "\"segments\":%d,", segments);
        expect_text(&s, path, part);
        expect_text(&s, path, part);
    }
    http_stage_advance(&s, 60000);
    expect_text(&s, path, "\"status\":\"completed\"");
    expect_text(&s, path, "\"segments\":60,");
    http_stage_end(&s);
}

static void an_unchanged_list_is_not_sent_again(void **state)
{
    http_stage s = {0};
    char id[64], path[96];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "hang", "{}", id);
    char *list = get(&s, "/api/tasks");
    assert_int_equal(sscanf(list, "{\"tag\":\"%16[0-9a-f]\"", id), 1);
    free(list);
    snprintf(path, sizeof path, "/api/tasks?tag=%s", id);
    expect_text(&s, path, "\"total\":1}");
    http_stage_start_task(&s, "hang", "{}", id);
    expect_text(&s, path, "\"total\":2,\"tasks\":[[");
    http_stage_end(&s);
}

static void what_is_redacted_is_not_shown(void **state)
{
    http_stage s = {.listen = {.board_redact = 1}};
    char id[64];
    (void)state;
    begin(&s);
    start_asking(&s, id);
    expect_text(&s, "/api/about", "\"redacted\":true");
    expect_text(&s, path_of("task", id, ""), "\"status\":\"input_required\"");
    expect_no_text(&s, path_of("task", id, ""), "private");
    expect_no_text(&s, path_of("task", id, ""), "sure");
    expect_text(&s, path_of("entries", id, ""), "\"kind\":\"question\"");
    expect_no_text(&s, path_of("entries", id, ""), "sure");
    http_stage_end(&s);
}

/* ---- changing ---- */

static void expect_change(http_stage *s, const char *path, const char *body, int status)
{
    expect(s, "POST", path, HOST JSON_TYPE, body, status);
}

static void a_task_is_cancelled_and_removed(void **state)
{
    http_stage s = {0};
    char id[64];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "hang", "{}", id);
    http_stage_advance(&s, 1000);
    expect_change(&s, path_of("remove", id, ""), "{}", 409);
    expect_change(&s, path_of("command", id, ""), "{\"cancel\":2}", 400);
    expect_change(&s, path_of("command", id, ""), "{\"cancel\":1}", 200);
    http_stage_advance(&s, 60000);
    expect_text(&s, path_of("task", id, ""), "\"status\":\"cancelled\"");
    expect_change(&s, path_of("command", id, ""), "{\"cancel\":1}", 409);
    expect_change(&s, path_of("remove", id, ""), "{}", 200);
    expect(&s, "GET", path_of("task", id, ""), HOST, "", 404);
    expect_change(&s, path_of("remove", id, ""), "{}", 404);
    http_stage_end(&s);
}

static void a_question_is_answered(void **state)
{
    http_stage s = {0};
    char id[64];
    (void)state;
    begin(&s);
    start_asking(&s, id);
    expect_text(&s, path_of("task", id, ""), "\"key\":\"input-1\"");
    expect_change(&s, path_of("command", id, ""),
                  "{\"answer\":{\"key\":\"input-9\",\"response\":{}}}", 404);
    expect_change(&s, path_of("command", id, ""),
                  "{\"answer\":{\"key\":\"input-1\",\"response\":{\"action\":\"accept\","
                  "\"content\":{\"confirm\":true}}}}",
                  200);
    http_stage_advance(&s, 60000);
    expect_text(&s, path_of("task", id, ""), "\"status\":\"completed\"");
    http_stage_end(&s);
}

static void a_read_only_board_changes_nothing(void **state)
{
    http_stage s = {.listen = {.board_read_only = 1}};
    char id[64];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "hang", "{}", id);
    expect_text(&s, "/api/about", "\"readOnly\":true");
    expect_change(&s, path_of("command", id, ""), "{\"cancel\":1}", 403);
    expect_change(&s, path_of("remove", id, ""), "{}", 403);
    expect_text(&s, path_of("task", id, ""), "\"status\":\"working\"");
    http_stage_end(&s);
}

/* ---- stores ---- */

static void each_server_has_its_tasks(void **state)
{
    http_stage s = {0};
    segue_server *other = NULL;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    char id[64];
    (void)state;
    options.name = "other";
    options.version = "1";
    begin(&s);
    http_stage_start_task(&s, "hang", "{}", id);
    assert_int_equal(segue_server_new(s.rt, &options, &other, NULL), SEGUE_OK);
    assert_int_equal(segue_listener_add(s.listener, other, "/board", NULL),
                     SEGUE_E_EXISTS);
    assert_int_equal(segue_listener_add(s.listener, other, "/other", NULL), SEGUE_OK);
    http_stage_run(&s);
    expect_text(&s, "/api/about", "\"sources\":[\"/mcp\",\"/other\"]");
    expect_text(&s, "/api/tasks?source=0", "\"total\":1");
    expect_text(&s, "/api/tasks?source=1", "\"total\":0");
    segue_server_close(other);
    segue_server_free(other);
    http_stage_end(&s);
}

/* The listener keeps the store, whose handle is freed. */
static void another_store_is_shown(void **state)
{
    http_stage s = {0};
    segue_store *store = NULL;
    char id[64];
    (void)state;
    assert_int_equal(segue_store_memory(NULL, &store), SEGUE_OK);
    s.listen.board_store = store;
    begin(&s);
    segue_store_free(store);
    http_stage_start_task(&s, "hang", "{}", id);
    expect_text(&s, "/api/about", "\"sources\":[\"\"]");
    expect_text(&s, "/api/tasks", "\"total\":0");
    http_stage_end(&s);
}

static void expect_invalid(http_stage *s, const segue_listen_options *options)
{
    segue_listener *listener = NULL;
    assert_int_equal(segue_server_listen(s->server, options, &listener, NULL),
                     SEGUE_E_INVALID);
}

static void the_options_are_checked(void **state)
{
    http_stage s = {0};
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    (void)state;
    http_stage_begin(&s);
    static const char *const paths[] = {"board", "/mcp", "/board/", "/a?b", "/health"};
    options.health_path = "/health";
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        options.board_path = paths[i];
        expect_invalid(&s, &options);
    }
    options.board_path = NULL;
    options.board_read_only = 1;
    expect_invalid(&s, &options);
    options.board_read_only = 0;
    options.board_redact = 1;
    expect_invalid(&s, &options);
    options.board_redact = 0;
    options.board_token = "0123456789abcdef";
    expect_invalid(&s, &options);
    options.board_path = "/board";
    options.board_token = "0123456789abcde";
    expect_invalid(&s, &options);
    options.board_token = "0123456789abcdef with blanks";
    expect_invalid(&s, &options);
    options.board_token = "0123456789=abcdef";
    expect_invalid(&s, &options);
    options.board_token = "0123456789abcdef";
    options.tokens_file = "/nowhere";
    expect_invalid(&s, &options);
    http_stage_end(&s);
}

/* ---- ends and limits ---- */

/* A connection that leaves before its answer, and a runtime that ends before. */
static void an_answer_that_nobody_awaits_is_dropped(void **state)
{
    http_stage s = {0};
    http_caller c, other;
    (void)state;
    begin(&s);
    for (int i = 0; i < 20; i++) {
        http_caller_open(&s, &c);
        http_caller_say(&c, "GET /board/api/tasks HTTP/1.1\r\n" HOST "\r\n");
        http_stage_run(&s);
        http_caller_reset(&c);
        http_stage_run(&s);
    }
    http_caller_open(&s, &other);
    http_caller_say(&other, "GET /board/api/tasks HTTP/1.1\r\n" HOST "\r\n");
    http_stage_run(&s);
    http_stage_end(&s);
    http_caller_close(&other);
}

static int status_without(http_stage *s, size_t at)
{
    http_caller c;
    http_caller_open(s, &c);
    test_mem_rearm(&s->mem);
    s->mem.fail_at = at;
    http_caller_say(&c,
                    "GET /board/api/tasks HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    while (!c.ended) {
        http_stage_run(s);
        http_caller_look(&c);
    }
    int status = c.len ? atoi(c.in + strlen("HTTP/1.1 ")) : 0;
    http_caller_close(&c);
    return status;
}

static void without_memory_a_request_is_refused(void **state)
{
    http_stage s = {0};
    int refused = 0, status;
    size_t at = 0;
    char id[64];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "hang", "{}", id);
    do {
        status = status_without(&s, ++at);
        refused += status == 503;
        assert_true(status == 200 || status == 503 || status == 0);
    } while (s.mem.failed);
    assert_int_equal(status, 200);
    assert_true(refused > 0);
    test_mem_rearm(&s.mem);
    http_stage_end(&s);
}

#ifdef SGI_KNOBS
static void each_answer_is_bounded(void **state)
{
    http_stage s = {0};
    char ids[3][64], path[256];
    sgi_threshold_values usual = sgi_thresholds;
    (void)state;
    begin(&s);
    for (size_t i = 0; i < 3; i++) {
        http_stage_start_task(&s, "story", "{\"n\":3}", ids[i]);
        http_stage_advance(&s, 10000);
    }
    sgi_thresholds.board_tasks = 2;
    expect_text(&s, "/api/tasks", "\"total\":3");
    expect_text(&s, "/api/tasks", ids[2]);
    expect_text(&s, "/api/tasks", ids[1]);
    expect_no_text(&s, "/api/tasks", ids[0]);
    snprintf(path, sizeof path, "/api/summaries?ids=%s,%s", ids[0], ids[1]);
    expect_text(&s, path, "\"more\":false}");
    sgi_thresholds.board_summaries = 1;
    expect_text(&s, path, "\"more\":true}");
    expect_no_text(&s, path, ids[1]);
    sgi_thresholds.board_summaries = 64;
    sgi_thresholds.board_fold_bytes = 1;
    expect_text(&s, path, "\"more\":true}");
    expect_no_text(&s, path, ids[1]);
    sgi_thresholds.board_page_bytes = 1;
    expect_text(&s, path_of("entries", ids[0], ""), "\"more\":true,");
    expect_no_text(&s, path_of("entries", ids[0], ""), "\"seq\":2");
    sgi_thresholds = usual;
    http_stage_end(&s);
}

/* Two tasks take turns in the only place for a summary. */
static void summaries_that_have_no_place_are_made_anew(void **state)
{
    http_stage s = {0};
    char ids[2][64], path[96];
    sgi_threshold_values usual = sgi_thresholds;
    (void)state;
    sgi_thresholds.board_cached = 1;
    begin(&s);
    for (size_t i = 0; i < 2; i++)
        http_stage_start_task(&s, "story", "{\"n\":60,\"delayMs\":1000}", ids[i]);
    http_stage_advance(&s, 5500);
    for (size_t i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "/api/summaries?ids=%s", ids[i % 2]);
        expect_text(&s, path, "\"segments\":6,");
    }
    sgi_thresholds = usual;
    http_stage_end(&s);
}

static void a_full_queue_is_said(void **state)
{
    http_stage s = {0};
    sgi_threshold_values usual = sgi_thresholds;
    (void)state;
    begin(&s);
    sgi_thresholds.helper_jobs_max = 0;
    expect(&s, "GET", "/api/tasks", HOST, "", 503);
    sgi_thresholds = usual;
    expect(&s, "GET", "/api/tasks", HOST, "", 200);
    http_stage_end(&s);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_guarded),
        cmocka_unit_test(a_board_at_the_root_leaves_the_other_paths),
        cmocka_unit_test(there_is_none_without_the_option),
        cmocka_unit_test(another_page_is_refused),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(a_request_through_a_proxy_is_refused),
        cmocka_unit_test(a_caller_elsewhere_sees_its_own_tasks),
        cmocka_unit_test(a_listener_with_tokens_wants_one),
        cmocka_unit_test(a_board_with_a_token_wants_it),
        cmocka_unit_test(tasks_are_shown),
        cmocka_unit_test(a_growing_task_is_summed_up),
        cmocka_unit_test(an_unchanged_list_is_not_sent_again),
        cmocka_unit_test(what_is_redacted_is_not_shown),
        cmocka_unit_test(a_task_is_cancelled_and_removed),
        cmocka_unit_test(a_question_is_answered),
        cmocka_unit_test(a_read_only_board_changes_nothing),
        cmocka_unit_test(each_server_has_its_tasks),
        cmocka_unit_test(another_store_is_shown),
        cmocka_unit_test(the_options_are_checked),
        cmocka_unit_test(an_answer_that_nobody_awaits_is_dropped),
        cmocka_unit_test(without_memory_a_request_is_refused),
#ifdef SGI_KNOBS
        cmocka_unit_test(each_answer_is_bounded),
        cmocka_unit_test(summaries_that_have_no_place_are_made_anew),
        cmocka_unit_test(a_full_queue_is_said),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
