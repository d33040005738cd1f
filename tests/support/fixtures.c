#include "support/fixture_job.h"

#include <segue/segue.h>
#include <stdio.h>
#include <string.h>

static void fixture_greet(fixtures *f, segue_call *call)
{
    char text[256];
    snprintf(text, sizeof text, "Hello, %s!", fixture_text(call, "name", "World"));
    fixture_complete(f, call, text, 0);
}

static void fixture_echo(fixtures *f, segue_call *call)
{
    fixture_complete(f, call, fixture_text(call, "text", ""), 0);
}

static void fixture_blocks(fixtures *f, segue_call *call)
{
    static const char link[] =
        "{\"type\":\"resource_link\",\"uri\":\"test://x\",\"name\":\"x\"}";
    static const char embedded[] =
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://x\","
        "\"mimeType\":\"text/plain\",\"text\":\"x\"}}";
    static const char video[] = "{\"type\":\"video\",\"url\":\"http://x/y\",\"n\":1e400}";
    segue_content *content;
    if (segue_content_new(f->runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, "a\0b", 3, NULL);
        segue_content_add_blob(content, "image", "image/png", "\x89PNG", 4, NULL);
        segue_content_add_blob(content, "audio", "audio/wav", "RIFF", 4, NULL);
        segue_content_add_json(content, embedded, sizeof embedded - 1, NULL);
        segue_content_add_json(content, link, sizeof link - 1, NULL);
        segue_content_add_json(content, video, sizeof video - 1, NULL);
        segue_content_set_structured(content, "{\"big\":18446744073709551616}", 28, NULL);
        segue_call_complete(call, content, NULL);
        segue_content_free(content);
    }
    segue_call_free(call);
}

void fixture_step_finish(job *j)
{
    fixture_finish(j, j->text);
}

static void fixture_slow_compute(fixtures *f, segue_call *call)
{
    job *j = fixture_job(f, call, fixture_step_finish,
                         fixture_int(call, "ms", fixture_int(call, "seconds", 1) * 1000));
    snprintf(j->text, sizeof j->text, "Computed: %s",
             fixture_text(call, "label", "done"));
}

static void fixture_stubborn(fixtures *f, segue_call *call)
{
    fixture_job(f, call, fixture_step_finish, fixture_int(call, "ms", 100))->stubborn = 1;
}

static void fixture_defer(fixtures *f, segue_call *call)
{
    char text[64];
    segue_status status = segue_call_defer(call, fixture_int(call, "ttl", 0), NULL);
    snprintf(text, sizeof text, "defer: %s", segue_status_name(status));
    job *j = fixture_job(f, call, fixture_step_finish, fixture_int(call, "ms", 100));
    memcpy(j->text, text, sizeof text);
}

void fixture_step_tool_error(job *j)
{
    fixtures *f = j->f;
    segue_call *call = j->call;
    j->call = NULL;
    j->ended = 1;
    fixture_complete(f, call, "The job failed", 1);
}

static void fixture_failing_job(fixtures *f, segue_call *call)
{
    fixture_job(f, call, fixture_step_tool_error, fixture_int(call, "ms", 1000));
}

static void step_rpc_error(job *j)
{
    segue_call_fail(j->call, -32603, "Protocol level failure",
                    "{\"hint\":\"on purpose\"}", 21, NULL);
    fixture_drop(j);
}

static void fixture_protocol_error(fixtures *f, segue_call *call)
{
    fixture_job(f, call, step_rpc_error, 100);
}

void fixture_step_wait(job *j)
{
    j->due_ms = fixture_now(j->f) + 1000;
}

static void fixture_hang(fixtures *f, segue_call *call)
{
    fixture_job(f, call, fixture_step_wait, 1000);
}

#define OBJECT "\"inputSchema\":{\"type\":\"object\"}"

static const tool_row rows[] = {
    {"{\"name\":\"greet\",\"description\":\"Says "
     "hello\",\"inputSchema\":{\"type\":\"object\","
     "\"properties\":{\"name\":{\"type\":\"string\"}}}}",
     fixture_greet, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"echo\"," OBJECT "}", fixture_echo, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"blocks\"," OBJECT "}", fixture_blocks, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"slow_compute\"," OBJECT "}", fixture_slow_compute, 0, SEGUE_TASK_MAY, 0,
     0, 0},
    {"{\"name\":\"failing_job\"," OBJECT "}", fixture_failing_job, 0, SEGUE_TASK_MUST, 0,
     0, 0},
    {"{\"name\":\"protocol_error_job\"," OBJECT "}", fixture_protocol_error, 0,
     SEGUE_TASK_MAY, 0, 0, 0},
    {"{\"name\":\"confirm_delete\"," OBJECT "}", fixture_confirm_delete,
     SEGUE_TOOL_RESTARTABLE, SEGUE_TASK_MUST, 0, 0, 0},
    {"{\"name\":\"multi_input\"," OBJECT "}", fixture_multi_input, 0, SEGUE_TASK_MUST, 0,
     0, 0},
    {"{\"name\":\"ask_in_turn\"," OBJECT "}", fixture_ask_in_turn, 0, SEGUE_TASK_MUST, 0,
     0, 0},
    {"{\"name\":\"story\"," OBJECT "}", fixture_story,
     SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"signed_story\"," OBJECT "}", fixture_signed_story,
     SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"fail_after\"," OBJECT "}", fixture_fail_after, SEGUE_TOOL_INCREMENTAL,
     SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"crash_after\"," OBJECT "}", fixture_crash_after,
     SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"two_texts\"," OBJECT "}", fixture_two_texts,
     SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"big\"," OBJECT "}", fixture_big, 0, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"chatty\"," OBJECT "}", fixture_chatty, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"reporter\"," OBJECT "}", fixture_reporter, 0, SEGUE_TASK_MAY, 100, 0,
     0},
    {"{\"name\":\"fields\"," OBJECT "}", fixture_fields, 0, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"fresh_start\"," OBJECT "}", fixture_fresh_start, 0, SEGUE_TASK_MAY, 100,
     0, 0},
    {"{\"name\":\"checkpoint\"," OBJECT "}", fixture_checkpoint, SEGUE_TOOL_RESTARTABLE,
     SEGUE_TASK_MUST, 100, 0, 0},
    {"{\"name\":\"hang\"," OBJECT "}", fixture_hang, 0, SEGUE_TASK_MAY, 0, 0, 0},
    {"{\"name\":\"hang_plain\"," OBJECT "}", fixture_hang, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"give_up\"," OBJECT "}", fixture_give_up, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"chatty_task\"," OBJECT "}", fixture_chatty_task, SEGUE_TOOL_INCREMENTAL,
     SEGUE_TASK_MUST, 100, 0, 0},
    {"{\"name\":\"stubborn\"," OBJECT "}", fixture_stubborn, 0, SEGUE_TASK_MAY, 0, 0, 0},
    {"{\"name\":\"defer\"," OBJECT "}", fixture_defer, 0, SEGUE_TASK_MAY, 0, 3600000, 0},
    {"{\"name\":\"promote\"," OBJECT "}", fixture_slow_compute, 0, SEGUE_TASK_MAY, 0, 500,
     0},
    {"{\"name\":\"forever\"," OBJECT "}", fixture_hang, 0, SEGUE_TASK_MAY, 0, 0, -1},
    {"{\"name\":\"race\"," OBJECT "}", fixture_stubborn, 0, SEGUE_TASK_MAY, 0, 0, 5000},
    {"{\"name\":\"race_again\"," OBJECT "}", fixture_stubborn, SEGUE_TOOL_RESTARTABLE,
     SEGUE_TASK_MAY, 0, 0, 5000},
    {"{\"name\":\"brief\"," OBJECT "}", fixture_hang, 0, SEGUE_TASK_MAY, 0, 0, 5000},
    {"{\"name\":\"test_tool_with_task\"," OBJECT "}", fixture_tool_with_task, 0,
     SEGUE_TASK_MAY, 100, 3600000, 0},
    {"{\"name\":\"ask_once\"," OBJECT "}", fixture_confirm_delete, SEGUE_TOOL_RESTARTABLE,
     SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"ask_both\"," OBJECT "}", fixture_multi_input, 0, SEGUE_TASK_NEVER, 0, 0,
     0},
    {"{\"name\":\"ask_rounds\"," OBJECT "}", fixture_ask_in_turn, 0, SEGUE_TASK_NEVER, 0,
     0, 0},
    {"{\"name\":\"ask_hastily\"," OBJECT "}", fixture_ask_hastily, 0, SEGUE_TASK_NEVER, 0,
     0, 0},
    {"{\"name\":\"ask_and_defer\"," OBJECT "}", fixture_ask_and_defer, 0, SEGUE_TASK_MAY,
     100, 3600000, 0},
    {"{\"name\":\"ask_promoted\"," OBJECT "}", fixture_confirm_delete, 0, SEGUE_TASK_MAY,
     100, 500, 0},
    {"{\"name\":\"film\"," OBJECT "}", fixture_film, SEGUE_TOOL_INCREMENTAL,
     SEGUE_TASK_MAY, 100, 0, 0},
};

static void run_tool(void *user, segue_call *call)
{
    tool_user *tool = user;
    tool->runs++;
    tool->row->run(tool->f, call);
}

segue_status fixtures_add(fixtures *f, segue_runtime *runtime, segue_server *server)
{
    f->runtime = runtime;
    f->tool_count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
        tool_user *tool = &f->tools[f->tool_count++];
        int runs = tool->runs;
        *tool = (tool_user){f, &rows[i], runs, ""};
        sscanf(rows[i].json, "{\"name\":\"%63[^\"]", tool->name);
        options.user = tool;
        options.on_call = run_tool;
        options.flags = rows[i].flags | SEGUE_TOOL_RESUMABLE;
        options.resume_min_wait_ms = 1500;
        options.resume_max_wait_ms = 10000;
        options.task = rows[i].task;
        options.poll_ms = rows[i].poll_ms;
        options.promote_after_ms = rows[i].promote_ms;
        options.ttl_ms = rows[i].ttl_ms;
        segue_status status = segue_server_add(server, SEGUE_ITEM_TOOL, rows[i].json,
                                               strlen(rows[i].json), &options, NULL);
        if (status != SEGUE_OK)
            return status;
    }
    return SEGUE_OK;
}

int fixtures_runs(const fixtures *f, const char *tool)
{
    for (int i = 0; i < f->tool_count; i++)
        if (!strcmp(f->tools[i].name, tool))
            return f->tools[i].runs;
    return -1;
}
