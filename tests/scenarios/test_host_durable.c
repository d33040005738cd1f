/* A host with a file: the next process answers a server's question. It shakes hands only
 * after it has read its tasks. */
#include "support/host_stage.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define TURNS 2000 /* turns of at most 10 ms: another thread writes the file */

static char path[64];

static const char *wait_for(kit *k, const char *what)
{
    const char *line = NULL;
    for (int i = 0; i < TURNS; i++) {
        if ((line = kit_heard(k)) && strstr(line, what))
            return line;
        if (!line)
            segue_runtime_dispatch(k->runtime, 10, 0, NULL);
    }
    fail_msg("waited in vain for %s", what);
    return NULL;
}

static void begin(host_stage *s)
{
    segue_server_options host = hosting_host_options();
    memset(s, 0, sizeof *s);
    assert_int_equal(segue_store_sqlite(path, NULL, &host.store, NULL), SEGUE_OK);
    hosting_prepare(s, NULL, &host, NULL);
    segue_store_free(host.store);
    kit_result(&s->k, wait_for(&s->k, "initialize"),
               "\"protocolVersion\":\"2025-11-25\",\"capabilities\":" SERVER_2025_STREAMS
               ",\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}");
    wait_for(&s->k, "notifications/initialized");
}

static void keep_id(char id[64], const char *line)
{
    const char *quoted = json_at(line, "result.task.taskId");
    snprintf(id, 64, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    assert_int_equal(strlen(id), 29);
}

static void tasks_outlive_the_process(void **state)
{
    (void)state;
    host_stage s;
    char done[64], left[64];
    scratch_name(path, sizeof path, "/tmp/segue-host");
    begin(&s);
    kit_say(&s.k, ASK("1", STREAMED));
    keep_id(done, wait_for(&s.k, "\"task\""));
    model_say(s.m.calls, "kept");
    model_complete(s.m.calls);
    wait_for(&s.k, "\"status\":\"completed\"");
    kit_say(&s.k, ASK("2", ",\"task\":{}"));
    keep_id(left, wait_for(&s.k, "\"task\""));
    segue_runtime_stop(s.k.runtime);
    hosting_end(&s);

    begin(&s);
    snprintf(s.task, sizeof s.task, "%s", done);
    hosting_ask_about(&s, "1", "tasks/result", "");
    const char *line = wait_for(&s.k, "\"id\":1");
    hosting_assert_message(line, "[" TEXT("kept") "]");
    hosting_assert_related(&s, line);
    hosting_ask_about(&s, "2", "tasks/result", ",\"lastSeqNr\":1");
    line = wait_for(&s.k, "\"id\":2");
    assert_at(line, "result.partial-content", "[]");
    assert_at(line, "result.isComplete", "true");
    assert_at(line, "result.model", "\"m-1\"");
    snprintf(s.task, sizeof s.task, "%s", left);
    hosting_ask_about(&s, "3", "tasks/get", "");
    line = wait_for(&s.k, "\"id\":3");
    assert_at(line, "result.status", "\"failed\"");
    assert_int_equal(s.m.count, 0);
    hosting_end(&s);
    scratch_clear(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_outlive_the_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
