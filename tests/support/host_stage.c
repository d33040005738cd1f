#include "support/host_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

segue_server_options hosting_host_options(void)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    return options;
}

segue_item_options hosting_item_options(int32_t task)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.task = task;
    return options;
}

void hosting_prepare(host_stage *s, const segue_session_options *session,
                     const segue_server_options *host, const segue_item_options *item)
{
    segue_session_options options = session ? *session : kit_legacy_options();
    kit_prepare(&s->k, 0);
    model_begin(&s->m, s->k.runtime, host, item);
    options.host = s->m.host;
    kit_connect(&s->k);
    kit_open(&s->k, &options);
}

void hosting_begin_with(host_stage *s, const segue_session_options *session,
                        const segue_server_options *host, const segue_item_options *item)
{
    hosting_prepare(s, session, host, item);
    kit_handshake_2025(&s->k, SERVER_2025_STREAMS);
    assert_int_equal(s->k.opened, 1);
}

void hosting_begin(host_stage *s)
{
    hosting_begin_with(s, NULL, NULL, NULL);
}

void hosting_end(host_stage *s)
{
    model_end(&s->m);
    kit_end(&s->k);
}

const char *hosting_assert_answer(host_stage *s, const char *id, const char *path,
                                  const char *value)
{
    const char *line = kit_heard(&s->k);
    assert_non_null(line);
    assert_at(line, "id", id);
    assert_at(line, "method", "");
    assert_at(line, path, value);
    return line;
}

void hosting_assert_refused(host_stage *s, const char *id, const char *code)
{
    hosting_assert_answer(s, id, "error.code", code);
}

/* Keeps the id of the task that the line names. */
static void hosting_take_task(host_stage *s, const char *line)
{
    const char *id = json_at(line, "result.task.taskId");
    snprintf(s->task, sizeof s->task, "%.*s", (int)strlen(id) - 2, id + 1);
    assert_int_equal(strlen(s->task), 29);
    assert_at(line, "result.task.status", "\"working\"");
    assert_at(line, "result.partial-content", "");
}

model_call *hosting_make_task(host_stage *s, const char *ask)
{
    kit_say(&s->k, "%s", ask);
    const char *line = kit_heard(&s->k);
    assert_non_null(line);
    hosting_take_task(s, line);
    assert_non_null(s->m.calls);
    return s->m.calls;
}

void hosting_ask_about(host_stage *s, const char *id, const char *method,
                       const char *more)
{
    kit_say(&s->k,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{\"taskId\":"
            "\"%s\"%s}}",
            id, method, s->task, more);
}

void hosting_assert_status(host_stage *s, const char *status)
{
    hosting_ask_about(s, "900", "tasks/get", "");
    hosting_assert_answer(s, "900", "result.status", status);
}

void hosting_assert_told(host_stage *s, const char *status)
{
    const char *line = kit_expect(&s->k, "notifications/tasks/status");
    assert_at(line, "params.status", status);
    assert_at(line, "params._meta", "");
}

void hosting_assert_related(const host_stage *s, const char *line)
{
    char related[128];
    snprintf(related, sizeof related,
             "{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}}", s->task);
    assert_at(line, "result._meta", related);
}

void hosting_assert_message(const char *line, const char *content)
{
    assert_at(line, "result.content", content);
    assert_at(line, "result.role", "\"assistant\"");
    assert_at(line, "result.model", "\"m-1\"");
    assert_at(line, "result.stopReason", "\"endTurn\"");
    assert_at(line, "result.isError", "");
    assert_at(line, "result.partial-content", "");
    assert_at(line, "result.isComplete", "");
}
