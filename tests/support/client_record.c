/* Records the callbacks of requests and checks their order. */
#include "support/client_kit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void note(record *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note(record *r, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    assert_true(vasprintf(&text, format, args) >= 0);
    va_end(args);
    if (r->completed || r->freed)
        fail_msg("after the end: %s", text);
    size_t n = strlen(text);
    if (r->k->quiet) {
        free(text);
        return;
    }
    r->log = realloc(r->log, r->log_len + n + 2);
    memcpy(r->log + r->log_len, text, n);
    r->log_len += n;
    r->log[r->log_len++] = '\n';
    r->log[r->log_len] = 0;
    free(text);
}

static void take_token(record *r, segue_request *request)
{
    size_t len = sizeof r->token;
    if (segue_request_token(request, r->token, &len) != SEGUE_OK)
        r->token[0] = 0;
}

static void rec_segment(void *user, segue_request *request, const segue_segment *segment)
{
    record *r = user;
    size_t len;
    const char *text = segue_segment_text(segment, &len);
    const char *data = segue_segment_read(segment)->data;
    if (segue_segment_read(segment)->number <= r->last_segment && !r->unordered)
        fail_msg("segment %d came after %d", (int)segue_segment_read(segment)->number,
                 (int)r->last_segment);
    r->last_segment = segue_segment_read(segment)->number;
    if (segue_segment_read(segment)->replaces)
        r->replaced_by = r->last_segment;
    r->segments++;
    note(r, "segment %d %s", (int)r->last_segment, text ? text : data);
    take_token(r, request);
    if (r->on_segment)
        r->on_segment(r);
}

static void rec_progress(void *user, segue_request *request, double progress,
                         double total, const char *message)
{
    (void)request;
    note(user, "progress %g/%g %s", progress, total, message ? message : "-");
}

static void rec_log(void *user, segue_request *request, const char *json, size_t len)
{
    (void)request;
    note(user, "log %.*s", (int)len, json);
}

static void rec_input(void *user, segue_request *request, const char *key,
                      const char *method, const char *params, size_t len)
{
    record *r = user;
    (void)request;
    note(r, "input %s %s %.*s", key, method, (int)len, params);
    free(r->last_key);
    r->last_key = strdup(key);
    if (r->on_input)
        r->on_input(r, key);
}

static void rec_task(void *user, segue_request *request, const char *task_id)
{
    record *r = user;
    note(r, "task %s", task_id);
    take_token(r, request);
    if (r->on_task)
        r->on_task(r);
}

static void rec_resumable(void *user, segue_request *request)
{
    record *r = user;
    take_token(r, request);
    note(r, "resumable");
}

static void rec_status(void *user, segue_request *request, const char *status,
                       const char *message)
{
    (void)request;
    note(user, "status %s %s", status, message ? message : "-");
}

static void rec_complete(void *user, segue_request *request, segue_status status,
                         const char *json, size_t len, const segue_error *error)
{
    record *r = user;
    (void)request;
    note(r, "complete %s", segue_status_name(status));
    r->completed++;
    r->status = status;
    r->rpc_code = segue_error_read(error)->rpc_code;
    r->result = json ? strndup(json, len) : NULL;
    r->message = strdup(segue_error_read(error)->message);
    r->retryable = segue_error_read(error)->retryable;
    assert_int_equal(segue_error_read(error)->status, status);
    if (r->on_complete)
        r->on_complete(r);
}

static void rec_free(void *user)
{
    record *r = user;
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->freed, 0);
    r->freed++;
}

record *kit_record(kit *k, segue_request_events *events)
{
    record *r = calloc(1, sizeof *r);
    r->k = k;
    r->next = k->records;
    k->records = r;
    *events = SEGUE_REQUEST_EVENTS_INIT;
    events->user = r;
    events->free_user = rec_free;
    events->on_segment = rec_segment;
    events->on_progress = rec_progress;
    events->on_log = rec_log;
    events->on_input = rec_input;
    events->on_task = rec_task;
    events->on_resumable = rec_resumable;
    events->on_status = rec_status;
    events->on_complete = rec_complete;
    return r;
}

record *kit_start(kit *k, const char *method, const char *params,
                  const segue_request_options *options)
{
    segue_request_events events;
    record *r = kit_record(k, &events);
    assert_int_equal(segue_request_start(k->session, method, params,
                                         params ? strlen(params) : 0, options, &events,
                                         &r->request, NULL),
                     SEGUE_OK);
    kit_run(k);
    return r;
}

record *kit_call(kit *k, const char *tool)
{
    char params[128];
    snprintf(params, sizeof params, "{\"name\":\"%s\"}", tool);
    return kit_start(k, "tools/call", params, NULL);
}

record *kit_take_input(kit *k)
{
    segue_request_events events;
    record *r = kit_record(k, &events);
    assert_int_equal(segue_session_take_input(k->session, &events, &r->request, NULL),
                     SEGUE_OK);
    kit_run(k);
    return r;
}

record *kit_resume(kit *k, const char *token, const segue_request_options *options)
{
    segue_request_events events;
    record *r = kit_record(k, &events);
    assert_int_equal(
        segue_request_resume(k->session, token, options, &events, &r->request, NULL),
        SEGUE_OK);
    kit_run(k);
    return r;
}

void record_drop(record *r)
{
    segue_request_free(r->request);
    r->request = NULL;
}

static void free_record(record *r)
{
    free(r->log);
    free(r->result);
    free(r->message);
    free(r->last_key);
    free(r);
}

void records_end(kit *k)
{
    while (k->records) {
        record *r = k->records;
        k->records = r->next;
        if (r->request)
            segue_request_free(r->request);
        assert_int_equal(r->completed, 1);
        assert_int_equal(r->freed, 1);
        free_record(r);
    }
}

segue_status record_answer(record *r, const char *key, const char *json)
{
    segue_status status = segue_request_answer(r->request, key ? key : r->last_key, json,
                                               strlen(json), NULL);
    kit_run(r->k);
    return status;
}
