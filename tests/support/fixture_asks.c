#include "support/fixture_job.h"

#include <stdio.h>
#include <string.h>

static void on_answer(void *user, segue_call *call, segue_status status, const char *json,
                      size_t len)
{
    job *j = user;
    char text[200];
    (void)call;
    if (j->ended)
        return;
    if (status != SEGUE_OK) {
        snprintf(text, sizeof text, "no answer: %s", segue_status_name(status));
        fixture_finish(j, text);
        return;
    }
    size_t used = strlen(j->text);
    snprintf(j->text + used, sizeof j->text - used, "%.*s", (int)(len < 60 ? len : 60),
             json);
    if (++j->answers == j->asks)
        fixture_finish(j, j->text);
}

static const char ask_form[] =
    "{\"mode\":\"form\",\"message\":\"Are you sure?\",\"requestedSchema\":{\"type\":"
    "\"object\",\"properties\":{\"confirm\":{\"type\":\"boolean\"}}}}";

static void ask(job *j, const char *params)
{
    segue_status status =
        segue_call_require_input(j->call, NULL, "elicitation/create", params,
                                 strlen(params), on_answer, j, NULL, NULL);
    if (status != SEGUE_OK && !j->ended) {
        snprintf(j->text, sizeof j->text, "cannot ask: %s", segue_status_name(status));
        fixture_finish(j, j->text);
    } else {
        j->asks++;
    }
}

static void step_never(job *j)
{
    j->due_ms = fixture_now(j->f) + 3600 * 1000;
}

void fixture_confirm_delete(fixtures *f, segue_call *call)
{
    job *j = fixture_job(f, call, step_never, 3600 * 1000);
    ask(j, ask_form);
}

void fixture_multi_input(fixtures *f, segue_call *call)
{
    job *j = fixture_job(f, call, step_never, 3600 * 1000);
    j->asks = 1; /* keeps the first answer from ending the job */
    ask(j, ask_form);
    if (!j->ended)
        ask(j, "{\"mode\":\"form\",\"message\":\"Name?\",\"requestedSchema\":{\"type\":"
               "\"object\",\"properties\":{}}}");
    j->asks = 2;
}

static void ask_in_turn(job *j);

static void on_turn(void *user, segue_call *call, segue_status status, const char *json,
                    size_t len)
{
    job *j = user;
    (void)json;
    (void)len;
    if (j->ended)
        return;
    segue_call_progress(call, j->answers + 1, 3, NULL, NULL);
    if (status == SEGUE_OK && ++j->answers < 3)
        ask_in_turn(j);
    else
        fixture_finish(j, status == SEGUE_OK ? "asked 3 times" : "no answer");
}

static void ask_in_turn(job *j)
{
    segue_status status =
        segue_call_require_input(j->call, NULL, "elicitation/create", ask_form,
                                 strlen(ask_form), on_turn, j, NULL, NULL);
    if (status != SEGUE_OK) {
        snprintf(j->text, sizeof j->text, "cannot ask: %s", segue_status_name(status));
        fixture_finish(j, j->text);
    }
}

void fixture_ask_in_turn(fixtures *f, segue_call *call)
{
    ask_in_turn(fixture_job(f, call, step_never, 3600 * 1000));
}

/* A tool that asks a question and ends without waiting for the answer. */
void fixture_ask_hastily(fixtures *f, segue_call *call)
{
    job *j = fixture_job(f, call, fixture_step_finish, fixture_int(call, "ms", 100));
    ask(j, ask_form);
    if (!j->ended)
        snprintf(j->text, sizeof j->text, "done without it");
}

/* Turns the call into a task while its question is open; reports the outcome as text. */
static void step_defer_and_wait(job *j)
{
    segue_status status = segue_call_defer(j->call, 0, NULL);
    snprintf(j->text, sizeof j->text, "defer: %s ", segue_status_name(status));
    step_never(j);
}

void fixture_ask_and_defer(fixtures *f, segue_call *call)
{
    ask(fixture_job(f, call, step_defer_and_wait, fixture_int(call, "ms", 100)),
        ask_form);
}

static void on_name(void *user, segue_call *call, segue_status status, const char *json,
                    size_t len)
{
    job *j = user;
    if (j->ended)
        return;
    if (status != SEGUE_OK) {
        fixture_finish(j, "no answer");
        return;
    }
    snprintf(j->text, sizeof j->text, "Hello, %.*s", (int)(len < 100 ? len : 100), json);
    segue_call_defer(call, 0, NULL);
    j->step = fixture_step_finish;
    j->due_ms = fixture_now(j->f) + 100;
}

void fixture_tool_with_task(fixtures *f, segue_call *call)
{
    static const char form[] =
        "{\"mode\":\"form\",\"message\":\"What is your name?\",\"requestedSchema\":"
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
        "\"default\":\"you\"}},\"required\":[\"name\"]}}";
    job *j = fixture_job(f, call, step_never, 3600 * 1000);
    segue_status status = segue_call_require_input(
        call, NULL, "elicitation/create", form, sizeof form - 1, on_name, j, NULL, NULL);
    if (status != SEGUE_OK) {
        snprintf(j->text, sizeof j->text, "cannot ask: %s", segue_status_name(status));
        fixture_finish(j, j->text);
    }
}
