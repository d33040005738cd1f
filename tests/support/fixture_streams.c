#include "support/fixture_job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    segue_status status = segue_call_send_text(j->call, line, len, NULL);
    if (status == SEGUE_E_WOULD_BLOCK) {
        j->due_ms = fixture_now(j->f) + 1000; /* a fallback; normally on_drain comes
                                               * earlier */
        return 0;
    }
    if (status != SEGUE_OK) {
        fixture_drop(j);
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
            j->due_ms = fixture_now(j->f) + j->delay_ms;
            return;
        }
    }
    segue_call_complete(j->call, NULL, NULL);
    fixture_drop(j);
}

static job *new_story(fixtures *f, segue_call *call)
{
    uint64_t last = 0;
    job *j = fixture_job(f, call, step_story, 0);
    segue_call_resumed(call, &last, NULL, NULL);
    j->at = (int64_t)last;
    j->total = fixture_int(call, "n", 3);
    j->delay_ms = fixture_int(call, "delayMs", 0);
    j->chunk = fixture_int(call, "chunk", 0);
    return j;
}

void fixture_story(fixtures *f, segue_call *call)
{
    job *j = new_story(f, call);
    j->step(j); /* sends the first line at once */
}

void fixture_signed_story(fixtures *f, segue_call *call)
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
            j->due_ms = fixture_now(j->f) + j->delay_ms;
            return;
        }
    }
    fixture_step_tool_error(j);
}

void fixture_fail_after(fixtures *f, segue_call *call)
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
    step_story(j); /* this is a run after a kill, so it completes */
}

void fixture_crash_after(fixtures *f, segue_call *call)
{
    int again = segue_call_resumed(call, NULL, NULL, NULL) == SEGUE_OK;
    job *j = new_story(f, call);
    j->step = again ? step_crash_soon : step_crash;
    if (again)
        j->total += 2;
    else
        j->due_ms += 100; /* gives the segment time to become durable and be sent */
}

static segue_status send_image(fixtures *f, segue_call *call)
{
    static const char image[] = "{\"type\":\"image\",\"data\":\"\","
                                "\"mimeType\":\"image/png\"}";
    segue_content *content;
    segue_content_new(f->runtime, &content);
    segue_content_add_json(content, image, sizeof image - 1, NULL);
    segue_status status = segue_call_send(call, content, NULL);
    segue_content_free(content);
    return status;
}

/* The texts that are sent, each with the index of the block that it extends; -1 = the
 * text is a separate block. The first four are the example of the proposal. */
static const struct part {
    int into;
    const char *text;
} parts[] = {{-1, "con"},   {0, "tent 1."}, {-1, "cont"},
             {1, "ent 2."}, {0, " Again."}, {-1, "end"}};

/* Sends an image, replaces it by a text and extends that text. */
static segue_status send_anew(job *j)
{
    if (j->at == 0)
        return send_image(j->f, j->call);
    if (j->at == 2)
        return segue_call_extend_text(j->call, 0, " more", 5, NULL);
    segue_status status = segue_call_replace(j->call, NULL);
    return status == SEGUE_OK ? segue_call_send_text(j->call, "draft", 5, NULL) : status;
}

static segue_status send_part(segue_call *call, const struct part *p)
{
    size_t len = strlen(p->text);
    return p->into < 0 ? segue_call_send_text(call, p->text, len, NULL)
                       : segue_call_extend_text(call, p->into, p->text, len, NULL);
}

/* Extends a block that does not exist. The library refuses this, and the tool sends the
 * reason as text. */
static void extend_badly(fixtures *f, segue_call *call, int64_t into)
{
    segue_error *error = NULL;
    char text[256];
    send_image(f, call);
    segue_status status = segue_call_extend_text(call, into, "x", 1, &error);
    snprintf(text, sizeof text, "%d: %s", (int)status,
             error ? segue_error_read(error)->message : "");
    segue_error_free(error);
    fixture_complete(f, call, text, 0);
}

static void step_two_texts(job *j)
{
    while (j->at < j->total) {
        segue_status status = j->chunk ? send_anew(j) : send_part(j->call, &parts[j->at]);
        if (status == SEGUE_E_WOULD_BLOCK) {
            j->due_ms = fixture_now(j->f) + 1000;
            return;
        }
        if (status != SEGUE_OK) {
            fixture_drop(j);
            return;
        }
        j->at++;
        if (j->delay_ms) {
            j->due_ms = fixture_now(j->f) + j->delay_ms;
            return;
        }
    }
    segue_call_complete(j->call, NULL, NULL);
    fixture_drop(j);
}

void fixture_two_texts(fixtures *f, segue_call *call)
{
    int64_t into = fixture_int(call, "into", INT64_MIN);
    if (into != INT64_MIN) {
        extend_badly(f, call, into);
        return;
    }
    job *j = new_story(f, call);
    j->step = step_two_texts;
    j->chunk = fixture_int(call, "anew", 0);
    j->total = j->chunk ? 3 : (int)(sizeof parts / sizeof *parts);
    j->step(j);
}

void fixture_big(fixtures *f, segue_call *call)
{
    int64_t bytes = fixture_int(call, "bytes", 1024);
    char *text = malloc((size_t)bytes + 1);
    memset(text, 'x', (size_t)bytes);
    text[bytes] = 0;
    fixture_complete(f, call, text, 0);
    free(text);
}

void fixture_chatty(fixtures *f, segue_call *call)
{
    int64_t n = fixture_int(call, "n", 3);
    segue_call_log(call, "info", "\"begin\"", 7, NULL);
    for (int64_t i = 1; i <= n; i++) {
        segue_call_progress(call, (double)i, (double)n, "working", NULL);
        segue_call_send_text(call, "piece", 5, NULL);
        segue_call_log(call, "debug", "{\"i\":1}", 7, NULL);
    }
    fixture_complete(f, call, "end", 0);
}

void fixture_chatty_task(fixtures *f, segue_call *call)
{
    int64_t n = fixture_int(call, "n", 3);
    char status[32];
    for (int64_t i = 1; i <= n; i++) {
        segue_call_progress(call, (double)i, (double)n, NULL, NULL);
        segue_call_send_text(call, "piece", 5, NULL);
        segue_call_log(call, "emergency", "{\"i\":1}", 7, NULL);
        snprintf(status, sizeof status, "%d of %d", (int)i, (int)n);
        segue_call_set_status(call, status, NULL);
        segue_call_checkpoint(call, &i, sizeof i, NULL);
    }
    fixture_complete(f, call, "end", 0);
}

/* Reports progress, a log message and a status, then sends a summary. */
static void step_report(job *j)
{
    static char status[65536];
    char json[32];
    if (j->at == j->total) {
        fixture_finish(j, "reported");
        return;
    }
    j->at++;
    size_t used = (size_t)snprintf(status, sizeof status, "step %d of %d", (int)j->at,
                                   (int)j->total);
    while (used < (size_t)j->chunk && used + 1 < sizeof status)
        status[used++] = '.';
    status[used] = 0;
    snprintf(json, sizeof json, "{\"step\":%d}", (int)j->at);
    segue_call_progress(j->call, (double)j->at, (double)j->total, NULL, NULL);
    segue_call_log(j->call, "info", json, strlen(json), NULL);
    segue_call_set_status(j->call, status, NULL);
    j->due_ms = fixture_now(j->f) + j->delay_ms;
}

void fixture_reporter(fixtures *f, segue_call *call)
{
    int64_t delay_ms = fixture_int(call, "delayMs", 20);
    job *j = fixture_job(f, call, step_report, delay_ms);
    j->total = fixture_int(call, "n", 2);
    j->delay_ms = delay_ms;
    j->chunk = fixture_int(call, "pad", 0);
}

void fixture_fields(fixtures *f, segue_call *call)
{
    (void)f;
    segue_call_send_text(call, "wrong", 5, NULL);
    segue_call_replace(call, NULL);
    segue_call_send_text(call, "right", 5, NULL);
    segue_call_set_field(call, "structuredContent", "{\"a\":1}", 7, NULL);
    segue_call_set_field(call, "structuredContent", "{\"a\":2}", 7, NULL);
    segue_call_set_field(call, "_meta", "{\"com.example/k\":true}", 22, NULL);
    segue_call_set_status(call, "almost", NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* A tool that replaces its segments before it has sent any. It has only reported
 * progress. */
void fixture_fresh_start(fixtures *f, segue_call *call)
{
    (void)f;
    segue_call_set_field(call, "structuredContent", "{\"a\":1}", 7, NULL);
    segue_call_set_status(call, "beginning", NULL);
    segue_call_replace(call, NULL);
    segue_call_send_text(call, "one", 3, NULL);
    segue_call_send_text(call, "two", 3, NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* Sends a block of a kind that no schema has between two text blocks, and a member beside
 * them. */
static void step_film(job *j)
{
    static const char *const blocks[] = {
        "{\"type\":\"text\",\"text\":\"before\"}",
        "{\"type\":\"video\",\"url\":\"http://x/y\",\"n\":1e400}",
        "{\"type\":\"text\",\"text\":\"after\"}"};
    segue_content *content;
    if (j->at == 3) {
        segue_call_complete(j->call, NULL, NULL);
        fixture_drop(j);
        return;
    }
    if (segue_content_new(j->f->runtime, &content) == SEGUE_OK) {
        segue_content_add_json(content, blocks[j->at], strlen(blocks[j->at]), NULL);
        segue_call_send(j->call, content, NULL);
        segue_content_free(content);
    }
    if (++j->at == 1)
        segue_call_set_field(j->call, "structuredContent", "{\"frames\":3}", 12, NULL);
    j->due_ms = fixture_now(j->f) + 10;
}

void fixture_film(fixtures *f, segue_call *call)
{
    step_film(fixture_job(f, call, step_film, 0));
}

void fixture_checkpoint(fixtures *f, segue_call *call)
{
    const void *data = NULL;
    size_t len = 0;
    char text[64];
    if (segue_call_resumed(call, NULL, &data, &len) == SEGUE_OK) {
        snprintf(text, sizeof text, "checkpoint %.*s", (int)len, (const char *)data);
        fixture_complete(f, call, text, 0);
        return;
    }
    segue_call_checkpoint(call, "one", 3, NULL);
    segue_call_checkpoint(call, "two", 3, NULL);
    segue_call_set_status(call, "marked",
                          NULL); /* the field is sent when it is durable, like the entries
                                  * before it */
    fixture_job(f, call, fixture_step_wait, 1000);
}

void fixture_give_up(fixtures *f, segue_call *call)
{
    (void)f;
    segue_call_free(call);
}
