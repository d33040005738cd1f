/* The fixtures of the scenarios tasks-*: calls that may or must become tasks. Fixtures
 * that ask their client are in input_tools.c. */
#include "conformance/stage.h"

#include <segue/segue.h>
#include <stdio.h>

static const char *text_of(segue_call *call, const char *name, const char *otherwise)
{
    const char *text = otherwise;
    segue_call_argument_text(call, name, &text, NULL);
    return text;
}

static void run_greet(stage *s, segue_call *call)
{
    char text[256];
    snprintf(text, sizeof text, "Hello, %s!", text_of(call, "name", "World"));
    complete_text(s, call, text, 0);
}

static void step_computed(job *j)
{
    char text[256];
    segue_call *call = job_end(j);
    snprintf(text, sizeof text, "Computed: %s", text_of(call, "label", "done"));
    complete_text(j->s, call, text, 0);
}

static void run_slow_compute(stage *s, segue_call *call)
{
    int64_t seconds = 1;
    segue_call_argument_int(call, "seconds", &seconds);
    job_start(s, call, step_computed, seconds * 1000);
}

static void step_failed(job *j)
{
    complete_text(j->s, job_end(j), "The job failed", 1);
}

static void run_failing_job(stage *s, segue_call *call)
{
    job_start(s, call, step_failed, 1000);
}

static void step_broken(job *j)
{
    segue_call *call = job_end(j);
    segue_call_fail(call, -32603, "The job broke the protocol", NULL, 0, NULL);
    segue_call_free(call);
}

static void run_protocol_error_job(stage *s, segue_call *call)
{
    job_start(s, call, step_broken, 100);
}

segue_status task_tools_add(stage *s)
{
    static const tool tools[] = {
        {TOOL("greet", "Says hello",
              "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}"),
         run_greet, SEGUE_TASK_NEVER},
        {TOOL("slow_compute", "Computes for some seconds; can be cancelled",
              "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"integer\"},"
              "\"label\":{\"type\":\"string\"}}}"),
         run_slow_compute, SEGUE_TASK_MAY},
        {TOOL("failing_job", "Ends with a tool error after a second", NO_ARGUMENTS),
         run_failing_job, SEGUE_TASK_MUST},
        {TOOL("protocol_error_job", "Ends with a JSON-RPC error", NO_ARGUMENTS),
         run_protocol_error_job, SEGUE_TASK_MUST},
    };
    return stage_add(s, tools, sizeof tools / sizeof *tools);
}
