/* Requests that are not MCP but reach public servers: HEAD of a monitor, and nonsense
 * behind a good request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define HOST "Host: localhost\r\n"

/* Returns everything that arrives until the connection is quiet or closed. */
static const char *all_of(http_caller *c, const char *request)
{
    free(c->in);
    c->in = NULL;
    c->len = 0;
    http_caller_say(c, request);
    for (int i = 0; i < 100; i++) {
        http_stage_run(c->s);
        http_caller_look(c);
    }
    return c->in ? c->in : "";
}

/* An answer to HEAD has the headers of GET and no body; otherwise a client would read a
 * body as the next answer (RFC 9110 9.3.2). */
static void head_is_answered_without_a_body(void **state)
{
    static const char *const paths[] = {"/mcp", "/nothing", "/health"};
    static const int lengths[] = {117, 92, 3};
    http_stage s = {.listen = {.health_path = "/health"}};
    http_caller c;
    (void)state;
    http_stage_begin(&s);
    http_caller_open(&s, &c);
    for (size_t i = 0; i < 3; i++) {
        char request[200], length[40];
        snprintf(request, sizeof request,
                 "HEAD %s HTTP/1.1\r\n" HOST "\r\nGET /health HTTP/1.1\r\n" HOST "\r\n",
                 paths[i]);
        snprintf(length, sizeof length, "Content-Length: %d\r\n", lengths[i]);
        const char *text = all_of(&c, request);
        const char *end = strstr(text, "\r\n\r\n");
        const char *said = strstr(text, length);
        assert_non_null(end);
        assert_true(said && said < end);
        assert_memory_equal(end + 4, "HTTP/1.1 200 OK\r\n", 17);
        assert_string_equal(strstr(end + 4, "\r\n\r\n"), "\r\n\r\nok\n");
    }
    http_caller_close(&c);
    http_stage_end(&s);
}

/* The buffer of a large head, which holds Origin, is freed after its request. */
static void a_fault_says_nothing_of_the_request_before(void **state)
{
    http_stage s = {.listen = {.origins = "http://a.example", .cors = 1}};
    http_caller c;
    char request[8000];
    (void)state;
    http_stage_begin(&s);
    http_caller_open(&s, &c);
    snprintf(request, sizeof request,
             "GET /nothing HTTP/1.1\r\n" HOST
             "X-Long: %06000d\r\nOrigin: http://a.example\r\n\r\n",
             0);
    const char *text = all_of(&c, request);
    assert_non_null(strstr(text, "Access-Control-Allow-Origin: http://a.example\r\n"));
    text = all_of(&c, "nonsense\r\n\r\n");
    assert_non_null(strstr(text, "HTTP/1.1 400 "));
    assert_null(strstr(text, "Access-Control-"));
    http_caller_close(&c);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_is_answered_without_a_body),
        cmocka_unit_test(a_fault_says_nothing_of_the_request_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
