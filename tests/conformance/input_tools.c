/* The fixtures that ask their client: as a task, or in rounds before the result of a
 * plain call. A call asks all its questions at once, or one after another, and reports
 * the answers. It leaves out questions whose capability the client has not declared. */
#include "conformance/stage.h"

#include <stdio.h>
#include <string.h>

#define NEVER_MS ((int64_t)24 * 3600 * 1000)

enum { IN_TURN = 1, THEN_TASK = 2 };

typedef struct question {
    const char *key; /* NULL = the library chooses */
    const char *method;
    const char *params;
} question;

#define FORM(message, property, type)                                                    \
    "{\"mode\":\"form\",\"message\":\"" message "\",\"requestedSchema\":{\"type\":"      \
    "\"object\",\"properties\":{\"" property "\":{\"type\":\"" type                      \
    "\"}},\"required\":[\"" property "\"]}}"
#define ELICIT(key, message, property, type)                                             \
    {                                                                                    \
        key, "elicitation/create", FORM(message, property, type)                         \
    }
#define SAMPLE                                                                           \
    {                                                                                    \
        "capital_question", "sampling/createMessage",                                    \
            "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":" \
            "\"What is the capital of France?\"}}],\"maxTokens\":50}"                    \
    }
#define ROOTS                                                                            \
    {                                                                                    \
        "client_roots", "roots/list", "{}"                                               \
    }

/* ---- asking ---- */

static void step_never(job *j)
{
    job_wait(j, NEVER_MS);
}

/* The suite wants to read "state-ok" when a state came back. */
static void step_tell(job *j)
{
    char text[320];
    int is_error = !j->answers[0];
    snprintf(text, sizeof text, "state-ok, answers:%s", is_error ? " none" : j->answers);
    complete_text(j->s, job_end(j), text, is_error);
}

static void finish(job *j)
{
    if (!(j->flags & THEN_TASK) || segue_call_defer(j->call, 0, NULL) != SEGUE_OK) {
        step_tell(j);
        return;
    }
    j->step = step_tell;
    job_wait(j, 100);
}

static void ask(job *j);

static void answered(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len)
{
    job *j = user;
    (void)call;
    if (!j->call)
        return;
    if (status != SEGUE_OK) {
        complete_text(j->s, job_end(j), segue_status_name(status), 1);
        return;
    }
    size_t used = strlen(j->answers);
    snprintf(j->answers + used, sizeof j->answers - used, " %.*s",
             (int)(len < 80 ? len : 80), json);
    if (--j->open == 0)
        ask(j);
}

static void ask(job *j)
{
    while (j->at < j->count && !(j->open && j->flags & IN_TURN)) {
        const question *q = &j->questions[j->at++];
        segue_status status =
            segue_call_require_input(j->call, q->key, q->method, q->params,
                                     strlen(q->params), answered, j, NULL, NULL);
        if (status == SEGUE_OK) {
            j->open++;
        } else if (status != SEGUE_E_UNSUPPORTED) {
            complete_text(j->s, job_end(j), segue_status_name(status), 1);
            return;
        }
    }
    if (!j->open)
        finish(j);
}

static void start_asking(stage *s, segue_call *call, const question *questions,
                         size_t count, int32_t flags)
{
    job *j = job_start(s, call, step_never, NEVER_MS);
    j->questions = questions;
    j->count = (int32_t)count;
    j->flags = flags;
    ask(j);
}

/* ---- tools ---- */

#define START(s, call, questions, flags)                                                 \
    start_asking(s, call, questions, sizeof(questions) / sizeof *(questions), flags)

static void run_one(stage *s, segue_call *call)
{
    static const question one[] = {ELICIT("confirm", "Please confirm", "ok", "boolean")};
    START(s, call, one, 0);
}

static void run_two(stage *s, segue_call *call)
{
    static const question two[] = {ELICIT(NULL, "Who are you?", "name", "string"),
                                   ELICIT(NULL, "Go on?", "confirm", "boolean")};
    START(s, call, two, 0);
}

static void run_turns(stage *s, segue_call *call)
{
    static const question turns[] = {
        ELICIT("step1", "Step 1: What is your name?", "name", "string"),
        ELICIT("step2", "Step 2: What is your favorite color?", "color", "string")};
    START(s, call, turns, IN_TURN);
}

static void run_name(stage *s, segue_call *call)
{
    static const question name[] = {
        ELICIT("user_name", "What is your name?", "name", "string")};
    START(s, call, name, 0);
}

static void run_name_then_task(stage *s, segue_call *call)
{
    static const question name[] = {
        ELICIT("user_name", "What is your name?", "name", "string")};
    START(s, call, name, THEN_TASK);
}

static void run_sampling(stage *s, segue_call *call)
{
    static const question sample[] = {SAMPLE};
    START(s, call, sample, 0);
}

static void run_roots(stage *s, segue_call *call)
{
    static const question roots[] = {ROOTS};
    START(s, call, roots, 0);
}

static void run_all_kinds(stage *s, segue_call *call)
{
    static const question kinds[] = {
        ELICIT("user_name", "What is your name?", "name", "string"), SAMPLE, ROOTS};
    START(s, call, kinds, 0);
}

/* Asks during the call: no request of the server may appear on the stream of the
 * answer. */
static void run_streaming(stage *s, segue_call *call)
{
    segue_call_progress(call, 1, 2, NULL, NULL);
    run_one(s, call);
}

/* SEP-1034: a default for each primitive type. */
static void run_defaults(stage *s, segue_call *call)
{
    static const question form[] = {
        {NULL, "elicitation/create",
         "{\"mode\":\"form\",\"message\":\"Please review\",\"requestedSchema\":{\"type\":"
         "\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"default\":\"John "
         "Doe\"},\"age\":{\"type\":\"integer\",\"default\":30},\"score\":{\"type\":"
         "\"number\",\"default\":95.5},\"status\":{\"type\":\"string\",\"enum\":["
         "\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},\"verified\":{"
         "\"type\":\"boolean\",\"default\":true}}}}"}};
    START(s, call, form, 0);
}

/* SEP-1330: each way to write a choice. */
static void run_enums(stage *s, segue_call *call)
{
    static const question form[] = {
        {NULL, "elicitation/create",
         "{\"mode\":\"form\",\"message\":\"Please choose\",\"requestedSchema\":{\"type\":"
         "\"object\",\"properties\":{\"untitledSingle\":{\"type\":\"string\",\"enum\":["
         "\"option1\",\"option2\",\"option3\"]},\"titledSingle\":{\"type\":\"string\","
         "\"oneOf\":[{\"const\":\"value1\",\"title\":\"First Option\"},{\"const\":"
         "\"value2\",\"title\":\"Second "
         "Option\"},{\"const\":\"value3\",\"title\":\"Third "
         "Option\"}]},\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\","
         "\"opt3\"],\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
         "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":["
         "\"option1\",\"option2\",\"option3\"]}},\"titledMulti\":{\"type\":\"array\","
         "\"items\":{\"anyOf\":[{\"const\":\"value1\",\"title\":\"First Choice\"},{"
         "\"const\":\"value2\",\"title\":\"Second Choice\"},{\"const\":\"value3\","
         "\"title\":\"Third Choice\"}]}}}}}"}};
    START(s, call, form, 0);
}

segue_status input_tools_add(stage *s)
{
    static const tool tools[] = {
        {TOOL(
             "confirm_delete", "Asks before it deletes",
             "{\"type\":\"object\",\"properties\":{\"filename\":{\"type\":\"string\"}}}"),
         run_one, SEGUE_TASK_MUST},
        {TOOL("multi_input", "Asks twice at once", NO_ARGUMENTS), run_two,
         SEGUE_TASK_MUST},
        {TOOL("test_tool_with_task", "Asks, then becomes a task", NO_ARGUMENTS),
         run_name_then_task, TASK_WHEN_DEFERRED},
        {TOOL("test_streaming_elicitation", "Asks in mid-call", NO_ARGUMENTS),
         run_streaming, 0},
        {TOOL("test_sampling", "Asks a model",
              "{\"type\":\"object\",\"properties\":{\"prompt\":{\"type\":\"string\"}}}"),
         run_sampling, 0},
        {TOOL("test_elicitation", "Asks a person",
              "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}}}"),
         run_name, 0},
        {TOOL("test_elicitation_sep1034_defaults", "Asks with defaults", NO_ARGUMENTS),
         run_defaults, 0},
        {TOOL("test_elicitation_sep1330_enums", "Asks to choose", NO_ARGUMENTS),
         run_enums, 0},
        {TOOL("test_input_required_result_elicitation", "Asks a person", NO_ARGUMENTS),
         run_name, 0},
        {TOOL("test_input_required_result_sampling", "Asks a model", NO_ARGUMENTS),
         run_sampling, 0},
        {TOOL("test_input_required_result_list_roots", "Asks for roots", NO_ARGUMENTS),
         run_roots, 0},
        {TOOL("test_input_required_result_request_state", "Asks once", NO_ARGUMENTS),
         run_one, 0},
        {TOOL("test_input_required_result_tampered_state", "Asks once", NO_ARGUMENTS),
         run_one, 0},
        {TOOL("test_input_required_result_multiple_inputs", "Asks all", NO_ARGUMENTS),
         run_all_kinds, 0},
        {TOOL("test_input_required_result_capabilities", "Asks who can", NO_ARGUMENTS),
         run_all_kinds, 0},
        {TOOL("test_input_required_result_multi_round", "Asks in turn", NO_ARGUMENTS),
         run_turns, 0},
    };
    return stage_add(s, tools, sizeof tools / sizeof *tools);
}
