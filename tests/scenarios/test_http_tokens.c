/* A listener that requires one of the tokens in a file (tokens_file): which callers are
 * accepted, as whom, and which files are refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/bearer_kit.h"

/* the SHA-256 of "secret" and of "other" */
#define SECRET "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
#define OTHER "D9298A10D1B0735837DC4BD85DAC641B0F3CEF27A47E5D53A54F2F3F5B2FCFFA"

static char path[] = "/tmp/segue-tokens.XXXXXX";

static void write_file(const char *text, size_t len)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *text)
{
    write_file(text, strlen(text));
}

static void tell_principal(void *user, segue_call *call)
{
    const char *name = segue_call_principal(call);
    (void)user;
    segue_call_send_text(call, name, strlen(name), NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void add_who(segue_server *server)
{
    static const char tool[] = "{\"name\":\"who\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = tell_principal;
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, tool, strlen(tool), &options, NULL),
        SEGUE_OK);
}

static void begin(http_stage *s, http_caller *c, const char *text)
{
    write_text(text);
    s->listen.tokens_file = path;
    s->add = add_who;
    http_stage_open(s, c);
}

static void expect(http_caller *c, const char *token, int status, const char *what)
{
    http_reply reply;
    bearer_ask(c, http_call("1", "who", "{}"), token, status, &reply);
    const char *challenge = http_reply_header(&reply, "WWW-Authenticate");
    if (status == 200)
        assert_non_null(strstr(reply.body, what));
    else
        assert_string_equal(challenge, what);
    http_reply_free(&reply);
}

#define UNKNOWN                                                                          \
    "Bearer error=\"invalid_token\", error_description=\"The token is unknown\""

static void a_token_stands_for_its_principal(void **state)
{
    http_stage s = {.port = 0};
    http_caller c;
    (void)state;
    begin(&s, &c,
          "# who may call\n\n\tada  " SECRET " \r\nb\xc3\xb6\x62 " OTHER "\nada " OTHER);
    expect(&c, NULL, 401, "Bearer");
    expect(&c, "wrong", 401, UNKNOWN);
    expect(&c, "secre", 401, UNKNOWN);
    expect(&c, "secret", 200, "\"text\":\"ada\"");
    expect(&c, "other", 200, "\"text\":\"b\xc3\xb6\x62\"");
    expect(&c, NULL, 401, "Bearer");
    http_stage_close(&s, &c);
}

/* There is no authorization server that the metadata could name. */
static void there_is_no_metadata(void **state)
{
    http_stage s = {.port = 0};
    http_caller c;
    (void)state;
    begin(&s, &c, "ada " SECRET "\n");
    http_caller_say(&c, "GET /.well-known/oauth-protected-resource HTTP/1.1\r\n"
                        "Host: 127.0.0.1\r\n\r\n");
    assert_int_equal(http_caller_status(&c), 404);
    http_stage_close(&s, &c);
}

static void the_file_is_read_again(void **state)
{
    http_stage s = {.port = 0};
    http_caller c;
    (void)state;
    begin(&s, &c, "ada " SECRET "\n");
    write_text("ada " OTHER "\n");
    expect(&c, "secret", 200, "ada");
    assert_int_equal(segue_listener_reload(s.listener, NULL), SEGUE_OK);
    expect(&c, "secret", 401, UNKNOWN);
    expect(&c, "other", 200, "ada");
    write_text("ada\n");
    assert_int_equal(segue_listener_reload(s.listener, NULL), SEGUE_E_IO);
    expect(&c, "other", 200, "ada");
    write_text("# nobody\n");
    assert_int_equal(segue_listener_reload(s.listener, NULL), SEGUE_OK);
    expect(&c, "other", 401, UNKNOWN);
    http_stage_close(&s, &c);
}

/* ---- files ---- */

static segue_runtime *runtime;

static void refused(const char *file, segue_status status, const char *what)
{
    segue_error *error = NULL;
    assert_int_equal(segue_tokens_check(runtime, file, &error), status);
    const char *message = segue_error_read(error)->message;
    if (!strstr(message, file) || !strstr(message, what))
        fail_msg("%s\ninstead of\n%s", message, what);
    segue_error_free(error);
}

static void refused_text(const char *text, const char *what)
{
    write_text(text);
    refused(path, SEGUE_E_INVALID, what);
}

static void wrong_files_are_refused(void **state)
{
    static char large[4194304 + 2];
    (void)state;
    assert_int_equal(segue_runtime_new(NULL, &runtime, NULL), SEGUE_OK);
    refused_text("", "has no token");
    refused_text("# nobody\n", "has no token");
    refused_text("ada\n", "has a line 1 that is not");
    refused_text("\nada " SECRET " more\n", "has a line 2 that is not");
    refused_text("ada g" SECRET "\n", "has a line 1 that is not");
    refused_text("ada " SECRET "0\n", "has a line 1 that is not");
    refused_text("ada\xff " SECRET "\n", "is not a text");
    write_file("ada " SECRET "\n\0", sizeof "ada " SECRET "\n");
    refused(path, SEGUE_E_INVALID, "is not a text");
    memset(large, '#', sizeof large);
    write_file(large, sizeof large - 1);
    refused(path, SEGUE_E_INVALID, "is larger than 4194304 bytes");
    refused("/tmp", SEGUE_E_INVALID, "is not a regular file");
    refused("/dev/zero", SEGUE_E_INVALID, "is not a regular file");
    refused("/tmp/none/none", SEGUE_E_IO, "cannot be opened: ");
    refused("/tmp/none/none", SEGUE_E_IO, strerror(ENOENT));
    refused("/proc/self/mem", SEGUE_E_IO, "cannot be read: ");
    refused("/proc/self/mem", SEGUE_E_IO, strerror(EIO));
    assert_int_equal(segue_tokens_check(runtime, NULL, NULL), SEGUE_E_INVALID);
    segue_runtime_free(runtime);
}

/* Without memory no line is called wrong. */
static void a_lack_of_memory_is_told(void **state)
{
    test_mem mem;
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_status status = SEGUE_E_NOMEM;
    (void)state;
    test_mem_init(&mem);
    options.allocator = &mem.mem;
    assert_int_equal(segue_runtime_new(&options, &runtime, NULL), SEGUE_OK);
    write_text("ada " SECRET "\nbob " OTHER "\n");
    for (size_t at = 1; status == SEGUE_E_NOMEM; at++) {
        segue_error *error = NULL;
        mem.fail_at = mem.calls + at;
        status = segue_tokens_check(runtime, path, &error);
        if (at <= 2)
            assert_int_equal(status, SEGUE_E_NOMEM);
        if (status != SEGUE_OK)
            assert_non_null(strstr(segue_error_read(error)->message, "memory"));
        segue_error_free(error);
    }
    assert_int_equal(status, SEGUE_OK);
    segue_runtime_free(runtime);
    assert_int_equal(mem.live, 0);
}

static void a_listener_takes_tokens_or_bearer(void **state)
{
    segue_listen_options listen = SEGUE_LISTEN_OPTIONS_INIT;
    segue_bearer_options bearer = SEGUE_BEARER_OPTIONS_INIT;
    segue_server *server;
    segue_listener *listener;
    (void)state;
    assert_int_equal(segue_runtime_new(NULL, &runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(runtime, NULL, &server, NULL), SEGUE_OK);
    listen.tokens_file = path;
    write_text("");
    assert_int_equal(segue_server_listen(server, &listen, &listener, NULL),
                     SEGUE_E_INVALID);
    write_text("ada " SECRET "\n");
    listen.bearer = &bearer;
    assert_int_equal(segue_server_listen(server, &listen, &listener, NULL),
                     SEGUE_E_INVALID);
    segue_server_free(server);
    segue_runtime_free(runtime);
}

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_stands_for_its_principal),
        cmocka_unit_test(there_is_no_metadata),
        cmocka_unit_test(the_file_is_read_again),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(a_lack_of_memory_is_told),
        cmocka_unit_test(a_listener_takes_tokens_or_bearer),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
