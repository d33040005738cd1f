/* easy.h without memory: each allocation of malloc fails once, then each one and all
 * later ones. The functions report it, give nothing, leak nothing, and work afterwards.
 * The linker puts the functions below in place of malloc, calloc, realloc and free
 * (CMakeLists.txt). The runtime has an allocator of its own, so only easy.h and what the
 * library takes from malloc for it fail here. */
#include <segue/easy.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void __real_free(void *ptr);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void __wrap_free(void *ptr);

static bool is_counting;
static size_t calls, fail_at, fail_from;
static long live;

static bool fails(void)
{
    if (!is_counting)
        return false;
    calls++;
    return calls == fail_at || (fail_from && calls >= fail_from);
}

static void *note(void *ptr)
{
    if (is_counting && ptr)
        live++;
    return ptr;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : note(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : note(__real_calloc(count, size));
}

void *__wrap_realloc(void *ptr, size_t size)
{
    if (fails())
        return NULL;
    return ptr ? __real_realloc(ptr, size) : note(__real_realloc(ptr, size));
}

void __wrap_free(void *ptr)
{
    if (is_counting && ptr)
        live--;
    __real_free(ptr);
}

/* ---- the allocator of the runtime, which never fails ---- */

static void *get(void *user, size_t size)
{
    (void)user;
    return __real_malloc(size);
}

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    return __real_realloc(ptr, new_size);
}

static void give_back(void *user, void *ptr, size_t size)
{
    (void)user;
    (void)size;
    __real_free(ptr);
}

/* ---- what is tried ---- */

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    segue_session *session;
    segue_status printed, sent;
} stage;

static stage s;

/* Sends more than the room on the stack of segue_call_printf. */
static void on_call(void *user, segue_call *call)
{
    char large[400];
    (void)user;
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = 0;
    s.printed = segue_call_printf(call, "%s", large);
    s.sent = segue_call_send_lossy(call, "a\xff", 2, NULL, NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* Calls the tool. Returns the first status that is not SEGUE_OK. */
static segue_status call(void)
{
    char *result = NULL;
    segue_error *error = NULL;
    s.printed = s.sent = SEGUE_OK;
    segue_status status =
        segue_call_tool(s.session, "t", "{\"n\":1}", 0, &result, &error);
    assert_int_equal(status == SEGUE_OK, result != NULL);
    if (status != SEGUE_OK)
        assert_int_equal(segue_error_read(error)->status, status);
    segue_error_free(error);
    free(result);
    return status != SEGUE_OK ? status : s.printed != SEGUE_OK ? s.printed : s.sent;
}

static segue_status fail_call(void)
{
    char *result = NULL;
    segue_error *error = NULL;
    segue_status status = segue_call_tool(s.session, "none", NULL, 0, &result, &error);
    assert_null(result);
    if (status == SEGUE_E_REMOTE)
        status =
            segue_error_read(error)->status == SEGUE_E_REMOTE ? SEGUE_OK : SEGUE_E_NOMEM;
    segue_error_free(error);
    return status;
}

static segue_status pairs(void)
{
    char *json = NULL, large[300];
    memset(large, 'x', sizeof large);
    segue_status status =
        segue_json_pairs(&json, "a=%.*s b=%d c=%f d:%s", 300, large, 1, 0.1, "[]");
    assert_int_equal(status == SEGUE_OK, json != NULL);
    free(json);
    return status;
}

static segue_status texts(void)
{
    static const char result[] = "{\"content\":[{\"type\":\"text\",\"text\":\"ab\"},"
                                 "{\"type\":\"text\",\"text\":\"c\"}]}";
    char *text = NULL;
    segue_status status = segue_result_text(result, SEGUE_TO_NUL, &text);
    assert_int_equal(status == SEGUE_OK, text != NULL);
    if (text)
        assert_string_equal(text, "abc");
    free(text);
    return status;
}

/* ---- the stage ---- */

static int set_up(void **state)
{
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    segue_allocator allocator = {.alloc = get, .resize = resize, .release = give_back};
    segue_transport *near, *far;
    (void)state;
    options.allocator = &allocator;
    item.on_call = on_call;
    assert_int_equal(segue_runtime_new(&options, &s.runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(s.runtime, NULL, &s.server, NULL), SEGUE_OK);
    assert_int_equal(
        segue_server_add(s.server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL),
        SEGUE_OK);
    assert_int_equal(segue_transport_pair(s.runtime, &near, &far), SEGUE_OK);
    assert_int_equal(segue_server_attach(s.server, far, NULL), SEGUE_OK);
    assert_int_equal(segue_session_open(s.runtime, near, NULL, NULL, &s.session, NULL),
                     SEGUE_OK);
    assert_int_equal(call(), SEGUE_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    segue_session_free(s.session);
    segue_server_free(s.server);
    segue_runtime_free(s.runtime);
    return 0;
}

static segue_status try(segue_status (*what)(void), size_t at, size_t from)
{
    calls = 0;
    live = 0;
    fail_at = at;
    fail_from = from;
    is_counting = true;
    segue_status status = what();
    is_counting = false;
    assert_int_equal(live, 0);
    return status;
}

static void try_all(segue_status (*what)(void))
{
    assert_int_equal(try(what, 0, 0), SEGUE_OK);
    size_t count = calls;
    assert_true(count > 0);
    for (size_t n = 1; n <= count; n++)
        for (int once = 0; once < 2; once++) {
            segue_status status = try(what, once ? n : 0, once ? 0 : n);
            if (status != SEGUE_E_NOMEM)
                fail_msg("allocation %zu of %zu: %s", n, count,
                         segue_status_name(status));
        }
    assert_int_equal(try(what, 0, 0), SEGUE_OK);
}

static void a_call_that_waits(void **state)
{
    (void)state;
    try_all(call);
}

static void a_call_that_fails(void **state)
{
    (void)state;
    try_all(fail_call);
}

static void writing(void **state)
{
    (void)state;
    try_all(pairs);
}

static void reading(void **state)
{
    (void)state;
    try_all(texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_that_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_that_fails, set_up, tear_down),
        cmocka_unit_test(writing),
        cmocka_unit_test(reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
