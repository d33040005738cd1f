/* R-2557-1: the same task as tasks/get shows it in 2025-11-25 (L), in DRAFT-2026-v1 (D)
 * and in 2026-07-28 (X). This file tests all renderings side by side, also of states that
 * a client of L cannot cause by itself. Scenarios test how a task gets into a state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/dialect/rows.h"
#include "engine/dialect/tasks_2025/tasks_2025.h"
#include "engine/server/task.h"
#include "support/fake_host.h"
#include "support/test_mem.h"
#include "support/world.h"

static test_mem tm;
static fake_host host;
static segue_server *server;
static sgi_op *op;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 31);
    server = fake_server_new(&host);
    op = fake_task_new(server);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_op_unref(op);
    fake_server_end(server);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void append(sgi_entry_kind kind, const char *payload)
{
    assert_int_equal(sgi_op_append(op, kind, sgi_str_of(payload)), SEGUE_OK);
}

typedef struct rendering {
    const char *dialect;
    char text[4096];
} rendering;

static void render(void *user, sgi_op *task, const sgi_fold *fold, segue_status status)
{
    (void)status;
    rendering *r = user;
    sgi_buf out;
    sgi_buf_init(&out, &tm.mem);
    sgi_jw w = sgi_jw_to(&out);
    sgi_buf_add_lit(&out, "{\"jsonrpc\":\"2.0\",\"id\":6,\"result\":");
    sgi_jw_open(&w, '{');
    if (*r->dialect == 'L') {
        sgi_tasks_2025_write_task(&w, task, NULL);
    } else if (*r->dialect == 'D') {
        sgi_jw_member_string(&w, "resultType", SGI_STR("task"));
        sgi_srv_tasks_draft.write(&w, task, fold);
    } else {
        sgi_jw_member_string(&w, "resultType", SGI_STR("complete"));
        sgi_srv_tasks_ext.write(&w, task, fold);
    }
    sgi_jw_close(&w, '}');
    sgi_buf_add_char(&out, '}');
    assert_false(out.failed);
    snprintf(r->text, sizeof r->text, "%.*s", (int)out.len, out.p);
    sgi_buf_free(&out);
}

/* Returns the answer to tasks/get; dialect: "L", "D" or "X". The text lives until the
 * next call. */
static const char *rendered(const char *dialect)
{
    static rendering r;
    r.dialect = dialect;
    render(&r, op, NULL, SEGUE_OK);
    return r.text;
}

/* Returns the answer with the result in it, if there is one. */
static const char *rendered_whole(const char *dialect)
{
    static rendering r;
    if (sgi_op_state(op) != SGI_STATE_COMPLETED)
        return rendered(dialect);
    r = (rendering){.dialect = dialect};
    sgi_op_fold(op, render, &r);
    fake_store_settle(&host);
    assert_true(r.text[0]);
    return r.text;
}

#define ASK                                                                              \
    "{\"key\":\"input-1\",\"method\":\"elicitation/create\",\"params\":{\"mode\":"       \
    "\"form\"}}"

static void a_question_is_a_status_in_one_and_a_request_in_the_other(void **state)
{
    (void)state;
    append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"Are you there?\"}");
    append(SGI_ENTRY_INPUT_ASK, ASK);
    fake_store_settle(&host);
    const char *text = rendered("L");
    assert_golden(text, "tasks_2025_get_input_required");
    assert_at(text, "result.status", "\"input_required\"");
    assert_at(text, "result.inputRequests", "");
    text = rendered("X");
    assert_at(text, "result.status", "\"input_required\"");
    assert_at(text, "result.inputRequests.input-1.method", "\"elicitation/create\"");
    assert_at(text, "result.ttl", "");
    text = rendered("D");
    assert_at(text, "result.status", "\"input_required\"");
    assert_at(text, "result.inputRequests.input-1.method", "\"elicitation/create\"");
}

static void names_of_numbers_differ(void **state)
{
    char ttl[32], poll[32];
    (void)state;
    fake_store_settle(&host);
    snprintf(ttl, sizeof ttl, "%lld", (long long)op->ttl_ms);
    snprintf(poll, sizeof poll, "%lld", (long long)op->served->poll_ms);
    const char *text = rendered("L");
    assert_at(text, "result.ttl", ttl);
    assert_at(text, "result.pollInterval", poll);
    assert_false(json_mentions(text, "ttlMs") || json_mentions(text, "pollIntervalMs") ||
                 json_mentions(text, "resultType"));
    text = rendered("X");
    assert_at(text, "result.ttlMs", ttl);
    assert_at(text, "result.pollIntervalMs", poll);
    assert_false(json_mentions(text, "ttl") || json_mentions(text, "pollInterval"));
    snprintf(ttl, sizeof ttl, "%lld", (long long)(op->ttl_ms / 1000));
    text = rendered("D");
    assert_at(text, "result.ttl", ttl);
    assert_at(text, "result.pollInterval", poll);
    assert_false(json_mentions(text, "ttlMs") || json_mentions(text, "pollIntervalMs"));
    op->ttl_ms = -1;
    assert_at(rendered("L"), "result.ttl", "null");
    assert_at(rendered("D"), "result.ttl", "null");
    assert_at(rendered("X"), "result.ttlMs", "null");
}

static void each_end_has_its_word(void **state)
{
    static const struct {
        sgi_entry_kind kind;
        const char *payload;
        const char *in_l, *in_x;
    } ends[] = {
        {SGI_ENTRY_RESULT, "{}", "\"completed\"", "\"completed\""},
        {SGI_ENTRY_RESULT, "{\"isError\":true}", "\"failed\"", "\"completed\""},
        /* This result was the immediate answer, so the task of L is completed
         * (R-1905-13). */
        {SGI_ENTRY_RESULT, "{\"isError\":true,\"immediate\":true}", "\"completed\"",
         "\"completed\""},
        {SGI_ENTRY_ERROR, "{\"code\":-32603,\"message\":\"No\"}", "\"failed\"",
         "\"failed\""},
        {SGI_ENTRY_EXPIRED, "{\"code\":-32603,\"message\":\"Task TTL expired\"}",
         "\"failed\"", "\"failed\""},
        {SGI_ENTRY_CANCELLED, "{}", "\"cancelled\"", "\"cancelled\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        sgi_op_unref(op);
        op = fake_task_new(server);
        assert_int_equal(sgi_op_end(op, ends[i].kind, sgi_str_of(ends[i].payload)),
                         SEGUE_OK);
        /* the end of the task is not durable yet */
        assert_at(rendered("L"), "result.status", "\"working\"");
        fake_store_settle(&host);
        assert_at(rendered("L"), "result.status", ends[i].in_l);
        assert_at(rendered("L"), "result.error", "");
        assert_at(rendered("X"), "result.status", ends[i].in_x);
        assert_at(rendered("D"), "result.status", ends[i].in_x);
    }
}

/* Checks which members the text has; 1 = the text must have the member. */
static void assert_members(const char *text, const char *members)
{
    static const char *const all[] = {
        "resultType",     "ttl",          "ttlMs",         "pollInterval",
        "pollIntervalMs", "requestState", "inputRequests", "result",
        "error",          "task",         "_meta"};
    char path[64];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char quoted[64];
        snprintf(path, sizeof path, "result.%s", all[i]);
        snprintf(quoted, sizeof quoted, " %s ", all[i]);
        bool wanted = strstr(members, quoted) != NULL;
        if (wanted != (*json_at(text, path) != 0))
            fail_msg("%s %s in %s", all[i], wanted ? "is not" : "is", text);
    }
}

static void bring_about(const char *status)
{
    append(SGI_ENTRY_SEGMENT, "{\"type\":\"text\",\"text\":\"a\"}");
    if (!strcmp(status, "input_required"))
        append(SGI_ENTRY_INPUT_ASK, ASK);
    else if (!strcmp(status, "completed"))
        assert_int_equal(sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_OK);
    else if (!strcmp(status, "failed"))
        assert_int_equal(sgi_op_end(op, SGI_ENTRY_ERROR,
                                    SGI_STR("{\"code\":-32603,\"message\":\"No\"}")),
                         SEGUE_OK);
    else if (!strcmp(status, "cancelled"))
        assert_int_equal(sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}")), SEGUE_OK);
    fake_store_settle(&host);
}

/* One stored task, three renderings of each of its states (AS-40). */
static void one_store_three_renderings(void **state)
{
    static const struct {
        const char *status, *in_l, *in_d, *in_x;
    } rows[] = {
        {"working", "", "", ""},
        {"input_required", "", " inputRequests ", " inputRequests "},
        {"completed", "", " result ", " result "},
        {"failed", "", " error ", " error "},
        {"cancelled", "", "", ""},
    };
    static const char *const always[] = {" ttl  pollInterval ",
                                         " resultType  ttl  pollInterval  requestState ",
                                         " resultType  ttlMs  pollIntervalMs "};
    static const char *const dialects[] = {"L", "D", "X"};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const more[] = {rows[i].in_l, rows[i].in_d, rows[i].in_x};
        sgi_op_unref(op);
        op = fake_task_new(server);
        bring_about(rows[i].status);
        for (size_t d = 0; d < 3; d++) {
            char members[160], name[64];
            const char *text = rendered_whole(dialects[d]);
            snprintf(members, sizeof members, "%s%s", always[d], more[d]);
            assert_members(text, members);
            snprintf(name, sizeof name, "three_%s_%s", rows[i].status, dialects[d]);
            assert_golden(text, name);
        }
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_question_is_a_status_in_one_and_a_request_in_the_other),
        CASE(names_of_numbers_differ),
        CASE(each_end_has_its_word),
        CASE(one_store_three_renderings),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
