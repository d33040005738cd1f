#include "support/fixtures.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A call under way: `step` says what happens when it is due. */
typedef struct job {
    struct job *next;
    fixtures *f;
    segue_call *call;
    void (*step)(struct job *job);
    int64_t due_ms;
    int64_t at;    /* segments sent */
    int64_t total; /* segments to send */
    int64_t delay_ms;
    int64_t chunk;
    int64_t bytes;
    int answers;
    int asks;
    char text[128];
    int stubborn;   /* goes on when it is cancelled */
    long signed_by; /* each line tells which process wrote it */
    int ended;
} job;

typedef struct tool_row {
    const char *json;
    void (*run)(fixtures *f, segue_call *call);
    int32_t flags;
    int32_t task;
    int32_t poll_ms;
    int32_t promote_ms;
    int32_t ttl_ms;
} tool_row;

#define MAX_TOOLS 48

typedef struct tool_user {
    fixtures *f;
    const tool_row *row;
    int runs;
    char name[64];
} tool_user;

struct fixtures {
    int64_t (*now_ms)(void *user);
    void *user;
    segue_runtime *runtime;
    job *jobs;
    tool_user tools[MAX_TOOLS];
    int tool_count;
};

/* ---- jobs ---- */

static int64_t now(fixtures *f)
{
    return f->now_ms(f->user);
}

static void drop_job(job *j)
{
    j->ended = 1;
    segue_call_free(j->call);
    j->call = NULL;
}

static void finish_text(job *j, const char *text)
{
    segue_content *content;
    if (segue_content_new(j->f->runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, text, strlen(text));
        segue_call_complete(j->call, content);
        segue_content_free(content);
    }
    drop_job(j);
}

static void on_cancel(void *user, segue_call *call)
{
    job *j = user;
    (void)call;
    j->due_ms = now(j->f); /* the next tick sees that it is cancelled */
}

static void on_drain(void *user, segue_call *call)
{
    job *j = user;
    (void)call;
    j->due_ms = now(j->f);
}

static void job_gone(void *user)
{
    job *j = user;
    job **at = &j->f->jobs;
    while (*at && *at != j)
        at = &(*at)->next;
    if (*at)
        *at = j->next;
    if (j->call) /* the runtime ends under a job that runs */
        segue_call_free(j->call);
    free(j);
}

static job *new_job(fixtures *f, segue_call *call, void (*step)(job *), int64_t delay_ms)
{
    job *j = calloc(1, sizeof *j);
    segue_call_events events;
    segue_struct_init(&events, sizeof events, SEGUE_STRUCT_CALL_EVENTS);
    j->f = f;
    j->call = call;
    j->step = step;
    j->due_ms = now(f) + delay_ms;
    j->next = f->jobs;
    f->jobs = j;
    events.user = j;
    events.free_user = job_gone;
    events.on_cancel = on_cancel;
    events.on_drain = on_drain;
    segue_call_watch(call, &events);
    return j;
}

int64_t fixtures_tick(fixtures *f)
{
    int64_t next = -1;
    for (job *j = f->jobs, *following; j; j = following) {
        following = j->next;
        if (j->ended)
            continue;
        if (segue_call_is_cancelled(j->call) && !j->stubborn) {
            drop_job(j);
            continue;
        }
        if (j->due_ms <= now(f))
            j->step(j);
        if (j->ended)
            continue;
        int64_t left = j->due_ms - now(f);
        left = left < 0 ? 0 : left;
        if (next < 0 || left < next)
            next = left;
    }
    return next;
}

int fixtures_jobs(const fixtures *f)
{
    int count = 0;
    for (const job *j = f->jobs; j; j = j->next)
        count += !j->ended;
    return count;
}

static int64_t int_arg(segue_call *call, const char *name, int64_t standard)
{
    int64_t value = standard;
    segue_call_argument_int(call, name, &value);
    return value;
}

static const char *text_arg(segue_call *call, const char *name, const char *standard)
{
    const char *text = standard;
    segue_call_argument_text(call, name, &text, NULL);
    return text;
}

static void complete_text(fixtures *f, segue_call *call, const char *text, int is_error)
{
    segue_content *content;
    if (segue_content_new(f->runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, text, strlen(text));
        segue_content_set_error(content, is_error);
        segue_call_complete(call, content);
        segue_content_free(content);
    }
    segue_call_free(call);
}

/* ---- tools ---- */

static void run_greet(fixtures *f, segue_call *call)
{
    char text[256];
    snprintf(text, sizeof text, "Hello, %s!", text_arg(call, "name", "World"));
    complete_text(f, call, text, 0);
}

static void run_echo(fixtures *f, segue_call *call)
{
    complete_text(f, call, text_arg(call, "text", ""), 0);
}

static void run_blocks(fixtures *f, segue_call *call)
{
    static const char link[] =
        "{\"type\":\"resource_link\",\"uri\":\"test://x\",\"name\":\"x\"}";
    static const char embedded[] =
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://x\","
        "\"mimeType\":\"text/plain\",\"text\":\"x\"}}";
    static const char video[] = "{\"type\":\"video\",\"url\":\"http://x/y\",\"n\":1e400}";
    segue_content *content;
    if (segue_content_new(f->runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, "a\0b", 3);
        segue_content_add_blob(content, "image", "image/png", "\x89PNG", 4);
        segue_content_add_blob(content, "audio", "audio/wav", "RIFF", 4);
        segue_content_add_json(content, embedded, sizeof embedded - 1);
        segue_content_add_json(content, link, sizeof link - 1);
        segue_content_add_json(content, video, sizeof video - 1);
        segue_content_set_structured(content, "{\"big\":18446744073709551616}", 28);
        segue_call_complete(call, content);
        segue_content_free(content);
    }
    segue_call_free(call);
}

static void step_finish(job *j)
{
    finish_text(j, j->text);
}

static void run_slow_compute(fixtures *f, segue_call *call)
{
    job *j = new_job(f, call, step_finish,
                     int_arg(call, "ms", int_arg(call, "seconds", 1) * 1000));
    snprintf(j->text, sizeof j->text, "Computed: %s", text_arg(call, "label", "done"));
}

static void run_stubborn(fixtures *f, segue_call *call)
{
    new_job(f, call, step_finish, int_arg(call, "ms", 100))->stubborn = 1;
}

static void run_defer(fixtures *f, segue_call *call)
{
    char text[64];
    segue_status status = segue_call_defer(call, int_arg(call, "ttl", 0));
    snprintf(text, sizeof text, "defer: %s", segue_status_name(status));
    job *j = new_job(f, call, step_finish, int_arg(call, "ms", 100));
    memcpy(j->text, text, sizeof text);
}

static void step_tool_error(job *j)
{
    fixtures *f = j->f;
    segue_call *call = j->call;
    j->call = NULL;
    j->ended = 1;
    complete_text(f, call, "The job failed", 1);
}

static void run_failing_job(fixtures *f, segue_call *call)
{
    new_job(f, call, step_tool_error, int_arg(call, "ms", 1000));
}

static void step_rpc_error(job *j)
{
    segue_call_fail(j->call, -32603, "Protocol level failure",
                    "{\"hint\":\"on purpose\"}", 21);
    drop_job(j);
}

static void run_protocol_error(fixtures *f, segue_call *call)
{
    new_job(f, call, step_rpc_error, 100);
}

static void step_wait(job *j)
{
    j->due_ms = now(j->f) + 1000;
}

static void run_hang(fixtures *f, segue_call *call)
{
    new_job(f, call, step_wait, 1000);
}

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
        finish_text(j, text);
        return;
    }
    size_t used = strlen(j->text);
    snprintf(j->text + used, sizeof j->text - used, "%.*s", (int)(len < 60 ? len : 60),
             json);
    if (++j->answers == j->asks)
        finish_text(j, j->text);
}

static const char ask_form[] =
    "{\"mode\":\"form\",\"message\":\"Are you sure?\",\"requestedSchema\":{\"type\":"
    "\"object\",\"properties\":{\"confirm\":{\"type\":\"boolean\"}}}}";

static void ask(job *j, const char *params)
{
    segue_status status = segue_call_require_input(
        j->call, NULL, "elicitation/create", params, strlen(params), on_answer, j, NULL);
    if (status != SEGUE_OK && !j->ended) {
        snprintf(j->text, sizeof j->text, "cannot ask: %s", segue_status_name(status));
        finish_text(j, j->text);
    } else {
        j->asks++;
    }
}

static void step_never(job *j)
{
    j->due_ms = now(j->f) + 3600 * 1000;
}

static void run_confirm_delete(fixtures *f, segue_call *call)
{
    job *j = new_job(f, call, step_never, 3600 * 1000);
    ask(j, ask_form);
}

static void run_multi_input(fixtures *f, segue_call *call)
{
    job *j = new_job(f, call, step_never, 3600 * 1000);
    j->asks = 1; /* so that the first answer does not end it */
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
    segue_call_progress(call, j->answers + 1, 3, NULL);
    if (status == SEGUE_OK && ++j->answers < 3)
        ask_in_turn(j);
    else
        finish_text(j, status == SEGUE_OK ? "asked 3 times" : "no answer");
}

static void ask_in_turn(job *j)
{
    segue_status status =
        segue_call_require_input(j->call, NULL, "elicitation/create", ask_form,
                                 strlen(ask_form), on_turn, j, NULL);
    if (status != SEGUE_OK) {
        snprintf(j->text, sizeof j->text, "cannot ask: %s", segue_status_name(status));
        finish_text(j, j->text);
    }
}

static void run_ask_in_turn(fixtures *f, segue_call *call)
{
    ask_in_turn(new_job(f, call, step_never, 3600 * 1000));
}

/* Does not wait for its answer. */
static void run_ask_hastily(fixtures *f, segue_call *call)
{
    job *j = new_job(f, call, step_finish, int_arg(call, "ms", 100));
    ask(j, ask_form);
    if (!j->ended)
        snprintf(j->text, sizeof j->text, "done without it");
}

/* Turns itself into a task while its question is out; says what came of that. */
static void step_defer_and_wait(job *j)
{
    segue_status status = segue_call_defer(j->call, 0);
    snprintf(j->text, sizeof j->text, "defer: %s ", segue_status_name(status));
    step_never(j);
}

static void run_ask_and_defer(fixtures *f, segue_call *call)
{
    ask(new_job(f, call, step_defer_and_wait, int_arg(call, "ms", 100)), ask_form);
}

static void on_name(void *user, segue_call *call, segue_status status, const char *json,
                    size_t len)
{
    job *j = user;
    if (j->ended)
        return;
    if (status != SEGUE_OK) {
        finish_text(j, "no answer");
        return;
    }
    snprintf(j->text, sizeof j->text, "Hello, %.*s", (int)(len < 100 ? len : 100), json);
    segue_call_defer(call, 0);
    j->step = step_finish;
    j->due_ms = now(j->f) + 100;
}

static void run_tool_with_task(fixtures *f, segue_call *call)
{
    static const char form[] =
        "{\"mode\":\"form\",\"message\":\"What is your name?\",\"requestedSchema\":"
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
        "\"default\":\"you\"}},\"required\":[\"name\"]}}";
    job *j = new_job(f, call, step_never, 3600 * 1000);
    segue_status status = segue_call_require_input(call, NULL, "elicitation/create", form,
                                                   sizeof form - 1, on_name, j, NULL);
    if (status != SEGUE_OK) {
        snprintf(j->text, sizeof j->text, "cannot ask: %s", segue_status_name(status));
        finish_text(j, j->text);
    }
}

/* ---- streams ---- */

size_t fixtures_story_line(int64_t n, int64_t chunk, char *buf, size_t size)
{
    int len = snprintf(buf, size, "segment %lld of the story", (long long)n);
    size_t used = len < 0 ? 0 : (size_t)len;
    while (used < (size_t)chunk && used + 1 < size)
        buf[used++] = '.';
    buf[used] = 0;
    return used;
}

static int send_line(job *j)
{
    char line[4096];
    size_t len = fixtures_story_line(j->at + 1, j->chunk, line, sizeof line);
    if (j->signed_by)
        len += (size_t)snprintf(line + len, sizeof line - len, " by %ld", j->signed_by);
    segue_status status = segue_call_send_text(j->call, line, len);
    if (status == SEGUE_E_WOULD_BLOCK) {
        j->due_ms = now(j->f) + 1000; /* on_drain comes first */
        return 0;
    }
    if (status != SEGUE_OK) {
        drop_job(j);
        return 0;
    }
    j->at++;
    return 1;
}

static void step_story(job *j)
{
    while (j->at < j->total) {
        if (!send_line(j))
            return;
        if (j->delay_ms) {
            j->due_ms = now(j->f) + j->delay_ms;
            return;
        }
    }
    segue_call_complete(j->call, NULL);
    drop_job(j);
}

static job *new_story(fixtures *f, segue_call *call)
{
    uint64_t last = 0;
    job *j = new_job(f, call, step_story, 0);
    segue_call_resumed(call, &last, NULL, NULL);
    j->at = (int64_t)last;
    j->total = int_arg(call, "n", 3);
    j->delay_ms = int_arg(call, "delayMs", 0);
    j->chunk = int_arg(call, "chunk", 0);
    return j;
}

static void run_story(fixtures *f, segue_call *call)
{
    job *j = new_story(f, call);
    j->step(j); /* the first line at once */
}

static void run_signed_story(fixtures *f, segue_call *call)
{
    job *j = new_story(f, call);
    j->signed_by = (long)getpid();
    j->step(j);
}

static void step_fail_after(job *j)
{
    while (j->at < j->total) {
        if (!send_line(j))
            return;
        if (j->delay_ms) {
            j->due_ms = now(j->f) + j->delay_ms;
            return;
        }
    }
    step_tool_error(j);
}

static void run_fail_after(fixtures *f, segue_call *call)
{
    job *j = new_story(f, call);
    j->step = step_fail_after;
    j->step(j);
}

static void step_crash(job *j)
{
    while (j->at < j->total)
        if (!send_line(j))
            return;
    kill(getpid(), SIGKILL);
}

static void step_crash_soon(job *j)
{
    step_story(j); /* completes: it ran before and was killed then */
}

static void run_crash_after(fixtures *f, segue_call *call)
{
    int again = segue_call_resumed(call, NULL, NULL, NULL) == SEGUE_OK;
    job *j = new_story(f, call);
    j->step = again ? step_crash_soon : step_crash;
    if (again)
        j->total += 2;
    else
        j->due_ms += 100; /* so that what was sent is durable, and seen */
}

static void run_big(fixtures *f, segue_call *call)
{
    int64_t bytes = int_arg(call, "bytes", 1024);
    char *text = malloc((size_t)bytes + 1);
    memset(text, 'x', (size_t)bytes);
    text[bytes] = 0;
    complete_text(f, call, text, 0);
    free(text);
}

static void run_chatty(fixtures *f, segue_call *call)
{
    int64_t n = int_arg(call, "n", 3);
    segue_call_log(call, "info", "\"begin\"", 7);
    for (int64_t i = 1; i <= n; i++) {
        segue_call_progress(call, (double)i, (double)n, "working");
        segue_call_send_text(call, "piece", 5);
        segue_call_log(call, "debug", "{\"i\":1}", 7);
    }
    complete_text(f, call, "end", 0);
}

static void run_chatty_task(fixtures *f, segue_call *call)
{
    int64_t n = int_arg(call, "n", 3);
    char status[32];
    for (int64_t i = 1; i <= n; i++) {
        segue_call_progress(call, (double)i, (double)n, NULL);
        segue_call_send_text(call, "piece", 5);
        segue_call_log(call, "emergency", "{\"i\":1}", 7);
        snprintf(status, sizeof status, "%d of %d", (int)i, (int)n);
        segue_call_set_status(call, status);
        segue_call_checkpoint(call, &i, sizeof i);
    }
    complete_text(f, call, "end", 0);
}

/* Tells in every way how far it is, then what it has done. */
static void step_report(job *j)
{
    static char status[65536];
    char json[32];
    if (j->at == j->total) {
        finish_text(j, "reported");
        return;
    }
    j->at++;
    size_t used = (size_t)snprintf(status, sizeof status, "step %d of %d", (int)j->at,
                                   (int)j->total);
    while (used < (size_t)j->chunk && used + 1 < sizeof status)
        status[used++] = '.';
    status[used] = 0;
    snprintf(json, sizeof json, "{\"step\":%d}", (int)j->at);
    segue_call_progress(j->call, (double)j->at, (double)j->total, NULL);
    segue_call_log(j->call, "info", json, strlen(json));
    segue_call_set_status(j->call, status);
    j->due_ms = now(j->f) + j->delay_ms;
}

static void run_reporter(fixtures *f, segue_call *call)
{
    int64_t delay_ms = int_arg(call, "delayMs", 20);
    job *j = new_job(f, call, step_report, delay_ms);
    j->total = int_arg(call, "n", 2);
    j->delay_ms = delay_ms;
    j->chunk = int_arg(call, "pad", 0);
}

static void run_fields(fixtures *f, segue_call *call)
{
    (void)f;
    segue_call_send_text(call, "wrong", 5);
    segue_call_replace(call);
    segue_call_send_text(call, "right", 5);
    segue_call_set_field(call, "structuredContent", "{\"a\":1}", 7);
    segue_call_set_field(call, "structuredContent", "{\"a\":2}", 7);
    segue_call_set_field(call, "_meta", "{\"com.example/k\":true}", 22);
    segue_call_set_status(call, "almost");
    segue_call_complete(call, NULL);
    segue_call_free(call);
}

/* Replaces before there is anything to replace, behind something that is no segment. */
static void run_fresh_start(fixtures *f, segue_call *call)
{
    (void)f;
    segue_call_set_field(call, "structuredContent", "{\"a\":1}", 7);
    segue_call_set_status(call, "beginning");
    segue_call_replace(call);
    segue_call_send_text(call, "one", 3);
    segue_call_send_text(call, "two", 3);
    segue_call_complete(call, NULL);
    segue_call_free(call);
}

/* A block of a kind that no schema has between two of text, and a member beside them. */
static void step_film(job *j)
{
    static const char *const blocks[] = {
        "{\"type\":\"text\",\"text\":\"before\"}",
        "{\"type\":\"video\",\"url\":\"http://x/y\",\"n\":1e400}",
        "{\"type\":\"text\",\"text\":\"after\"}"};
    segue_content *content;
    if (j->at == 3) {
        segue_call_complete(j->call, NULL);
        drop_job(j);
        return;
    }
    if (segue_content_new(j->f->runtime, &content) == SEGUE_OK) {
        segue_content_add_json(content, blocks[j->at], strlen(blocks[j->at]));
        segue_call_send(j->call, content);
        segue_content_free(content);
    }
    if (++j->at == 1)
        segue_call_set_field(j->call, "structuredContent", "{\"frames\":3}", 12);
    j->due_ms = now(j->f) + 10;
}

static void run_film(fixtures *f, segue_call *call)
{
    step_film(new_job(f, call, step_film, 0));
}

static void run_checkpoint(fixtures *f, segue_call *call)
{
    const void *data = NULL;
    size_t len = 0;
    char text[64];
    if (segue_call_resumed(call, NULL, &data, &len) == SEGUE_OK) {
        snprintf(text, sizeof text, "checkpoint %.*s", (int)len, (const char *)data);
        complete_text(f, call, text, 0);
        return;
    }
    segue_call_checkpoint(call, "one", 3);
    segue_call_checkpoint(call, "two", 3);
    new_job(f, call, step_wait, 1000);
}

static void run_give_up(fixtures *f, segue_call *call)
{
    (void)f;
    segue_call_free(call);
}

#define OBJECT "\"inputSchema\":{\"type\":\"object\"}"

static const tool_row rows[] = {
    {"{\"name\":\"greet\",\"description\":\"Says "
     "hello\",\"inputSchema\":{\"type\":\"object\","
     "\"properties\":{\"name\":{\"type\":\"string\"}}}}",
     run_greet, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"echo\"," OBJECT "}", run_echo, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"blocks\"," OBJECT "}", run_blocks, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"slow_compute\"," OBJECT "}", run_slow_compute, 0, SEGUE_TASK_MAY, 0, 0,
     0},
    {"{\"name\":\"failing_job\"," OBJECT "}", run_failing_job, 0, SEGUE_TASK_MUST, 0, 0,
     0},
    {"{\"name\":\"protocol_error_job\"," OBJECT "}", run_protocol_error, 0,
     SEGUE_TASK_MAY, 0, 0, 0},
    {"{\"name\":\"confirm_delete\"," OBJECT "}", run_confirm_delete,
     SEGUE_TOOL_RESTARTABLE, SEGUE_TASK_MUST, 0, 0, 0},
    {"{\"name\":\"multi_input\"," OBJECT "}", run_multi_input, 0, SEGUE_TASK_MUST, 0, 0,
     0},
    {"{\"name\":\"ask_in_turn\"," OBJECT "}", run_ask_in_turn, 0, SEGUE_TASK_MUST, 0, 0,
     0},
    {"{\"name\":\"story\"," OBJECT "}", run_story,
     SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"signed_story\"," OBJECT "}", run_signed_story,
     SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"fail_after\"," OBJECT "}", run_fail_after, SEGUE_TOOL_INCREMENTAL,
     SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"crash_after\"," OBJECT "}", run_crash_after,
     SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"big\"," OBJECT "}", run_big, 0, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"chatty\"," OBJECT "}", run_chatty, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"reporter\"," OBJECT "}", run_reporter, 0, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"fields\"," OBJECT "}", run_fields, 0, SEGUE_TASK_MAY, 100, 0, 0},
    {"{\"name\":\"fresh_start\"," OBJECT "}", run_fresh_start, 0, SEGUE_TASK_MAY, 100, 0,
     0},
    {"{\"name\":\"checkpoint\"," OBJECT "}", run_checkpoint, SEGUE_TOOL_RESTARTABLE,
     SEGUE_TASK_MUST, 100, 0, 0},
    {"{\"name\":\"hang\"," OBJECT "}", run_hang, 0, SEGUE_TASK_MAY, 0, 0, 0},
    {"{\"name\":\"hang_plain\"," OBJECT "}", run_hang, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"give_up\"," OBJECT "}", run_give_up, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"chatty_task\"," OBJECT "}", run_chatty_task, SEGUE_TOOL_INCREMENTAL,
     SEGUE_TASK_MUST, 100, 0, 0},
    {"{\"name\":\"stubborn\"," OBJECT "}", run_stubborn, 0, SEGUE_TASK_MAY, 0, 0, 0},
    {"{\"name\":\"defer\"," OBJECT "}", run_defer, 0, SEGUE_TASK_MAY, 0, 3600000, 0},
    {"{\"name\":\"promote\"," OBJECT "}", run_slow_compute, 0, SEGUE_TASK_MAY, 0, 500, 0},
    {"{\"name\":\"forever\"," OBJECT "}", run_hang, 0, SEGUE_TASK_MAY, 0, 0, -1},
    {"{\"name\":\"race\"," OBJECT "}", run_stubborn, 0, SEGUE_TASK_MAY, 0, 0, 5000},
    {"{\"name\":\"race_again\"," OBJECT "}", run_stubborn, SEGUE_TOOL_RESTARTABLE,
     SEGUE_TASK_MAY, 0, 0, 5000},
    {"{\"name\":\"brief\"," OBJECT "}", run_hang, 0, SEGUE_TASK_MAY, 0, 0, 5000},
    {"{\"name\":\"test_tool_with_task\"," OBJECT "}", run_tool_with_task, 0,
     SEGUE_TASK_MAY, 100, 3600000, 0},
    {"{\"name\":\"ask_once\"," OBJECT "}", run_confirm_delete, SEGUE_TOOL_RESTARTABLE,
     SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"ask_both\"," OBJECT "}", run_multi_input, 0, SEGUE_TASK_NEVER, 0, 0, 0},
    {"{\"name\":\"ask_rounds\"," OBJECT "}", run_ask_in_turn, 0, SEGUE_TASK_NEVER, 0, 0,
     0},
    {"{\"name\":\"ask_hastily\"," OBJECT "}", run_ask_hastily, 0, SEGUE_TASK_NEVER, 0, 0,
     0},
    {"{\"name\":\"ask_and_defer\"," OBJECT "}", run_ask_and_defer, 0, SEGUE_TASK_MAY, 100,
     3600000, 0},
    {"{\"name\":\"ask_promoted\"," OBJECT "}", run_confirm_delete, 0, SEGUE_TASK_MAY, 100,
     500, 0},
    {"{\"name\":\"film\"," OBJECT "}", run_film, SEGUE_TOOL_INCREMENTAL, SEGUE_TASK_MAY,
     100, 0, 0},
};

static void run_tool(void *user, segue_call *call)
{
    tool_user *tool = user;
    tool->runs++;
    tool->row->run(tool->f, call);
}

fixtures *fixtures_new(int64_t (*now_ms)(void *user), void *user)
{
    fixtures *f = calloc(1, sizeof *f);
    f->now_ms = now_ms;
    f->user = user;
    return f;
}

void fixtures_free(fixtures *f)
{
    free(f);
}

segue_status fixtures_add(fixtures *f, segue_runtime *runtime, segue_server *server)
{
    f->runtime = runtime;
    f->tool_count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        segue_item_options options;
        tool_user *tool = &f->tools[f->tool_count++];
        int runs = tool->runs;
        *tool = (tool_user){f, &rows[i], runs, ""};
        sscanf(rows[i].json, "{\"name\":\"%63[^\"]", tool->name);
        segue_struct_init(&options, sizeof options, SEGUE_STRUCT_ITEM_OPTIONS);
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
