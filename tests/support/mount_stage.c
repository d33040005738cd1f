#include "support/mount_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <strings.h>

#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define FIELDS 32

static void take(mount_call *c, segue_exchange *exchange, const char *bytes, size_t len)
{
    assert_false(c->ended);
    c->body = realloc(c->body, c->len + len + 1);
    memcpy(c->body + c->len, bytes, len);
    c->len += len;
    c->body[c->len] = 0;
    c->unsent += len;
    if (c->unsent > c->most_unsent)
        c->most_unsent = c->unsent;
    if (c->slow)
        return;
    assert_int_equal(segue_exchange_sent(exchange, len), SEGUE_OK);
    c->unsent = 0;
}

static void on_head(void *user, segue_exchange *exchange, int32_t status,
                    const segue_http_field *headers, size_t count, const char *bytes,
                    size_t len)
{
    mount_call *c = user;
    size_t at = 0;
    assert_non_null(exchange);
    assert_false(c->has_head || c->ended);
    c->has_head = true;
    c->status = status;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(strlen(headers[i].name), headers[i].name_len);
        assert_int_equal(strlen(headers[i].value), headers[i].value_len);
        at += (size_t)snprintf(c->head + at, sizeof c->head - at, "%s: %s\n",
                               headers[i].name, headers[i].value);
    }
    take(c, exchange, bytes, len);
}

static void on_body(void *user, segue_exchange *exchange, const char *bytes, size_t len)
{
    mount_call *c = user;
    assert_true(c->has_head && len);
    take(c, exchange, bytes, len);
}

static void on_room(void *user, segue_exchange *exchange)
{
    mount_call *c = user;
    (void)exchange;
    assert_false(c->ended);
    c->rooms++;
}

static void on_end(void *user, segue_exchange *exchange, segue_status status)
{
    mount_call *c = user;
    (void)exchange;
    assert_false(c->ended);
    assert_true(status == SEGUE_OK ? c->has_head : status == SEGUE_E_CLOSED);
    c->ended = true;
    c->end = status;
}

static void on_free(void *user)
{
    mount_call *c = user;
    assert_true(c->ended && !c->freed);
    c->freed = true;
}

static const segue_exchange_events events = {sizeof events, NULL,    on_free, on_head,
                                             on_body,       on_room, on_end};

/* Cuts the head of a request into texts, in place. Returns the body. */
static char *cut_head(char *text, segue_exchange_head *head, segue_http_field *fields)
{
    char *line = strstr(text, "\r\n");
    char *target = strchr(text, ' ') + 1;
    target[-1] = 0;
    *strchr(target, ' ') = 0;
    head->method = text;
    head->target = target;
    head->headers = fields;
    for (line += 2; *line != '\r'; line = strstr(line, "\r\n") + 2) {
        const char *colon = strchr(line + 1, ':');
        assert_true(head->header_count < FIELDS);
        fields[head->header_count++] =
            (segue_http_field){line, (size_t)(colon - line), colon + 2,
                               (size_t)(strstr(line, "\r\n") - colon) - 2};
    }
    return line + 2;
}

/* Gives bytes as a host does that waits when there is no room. */
static bool feed(mount_call *c, const char *bytes, size_t len)
{
    for (int tries = 0; tries < 1000; tries++) {
        segue_status status = segue_exchange_feed(c->exchange, bytes, len);
        if (status == SEGUE_OK)
            return true;
        if (status == SEGUE_E_CLOSED || status == SEGUE_E_NOMEM)
            return false;
        assert_int_equal(status, SEGUE_E_WOULD_BLOCK);
        http_stage_run(c->s);
    }
    fail_msg("there is never room");
    return false;
}

static void feed_all(mount_call *c, const char *body, size_t len)
{
    size_t at = 0;
    while (at < len) {
        size_t piece = 1;
        if (c->way == MOUNT_PIECES)
            piece = 1 + (c->s->chance = c->s->chance * 6364136223846793005u + 1) % 97;
        if (piece > len - at)
            piece = len - at;
        if (!feed(c, body + at, piece))
            return;
        at += piece;
        segue_runtime_dispatch(c->s->rt, 0, 0, NULL);
    }
    segue_status status = segue_exchange_end(c->exchange);
    assert_true(status == SEGUE_OK || status == SEGUE_E_CLOSED);
}

segue_status mount_begin(mount_call *c, http_stage *s, const char *request)
{
    segue_http_field fields[FIELDS];
    segue_exchange_head head = SEGUE_EXCHANGE_HEAD_INIT;
    segue_exchange_events table = events;
    char *text = strdup(request);
    const char *body = cut_head(text, &head, fields);
    c->s = s;
    table.user = c;
    if (!c->nowhere) {
        head.peer = c->peer ? c->peer : "127.0.0.1:5000";
        head.local = c->local ? c->local : "127.0.0.1:80";
    }
    head.principal = c->principal;
    head.is_tls = c->is_tls;
    head.context = c->context;
    head.free_context = c->free_context;
    if (c->way == MOUNT_WHOLE) {
        head.body = body;
        head.body_len = strlen(body);
        head.is_whole = 1;
    }
    segue_status status =
        segue_exchange_open(s->listener, &head, &table, &c->exchange, NULL);
    if (status == SEGUE_OK && (c->way == MOUNT_BYTES || c->way == MOUNT_PIECES))
        feed_all(c, body, strlen(body));
    if (status == SEGUE_OK && c->free_early) {
        segue_exchange_free(c->exchange);
        c->exchange = NULL;
    }
    free(text);
    return status;
}

void mount_finish(mount_call *c)
{
    /* another thread may work on the answer, so only time limits the wait */
    time_t until = time(NULL) + PATIENCE_MS / 1000;
    while (!c->freed && time(NULL) < until)
        http_stage_run(c->s);
    assert_true(c->freed);
}

void mount_free(mount_call *c)
{
    segue_exchange_free(c->exchange);
    free(c->body);
    c->body = NULL;
}

void mount_ask(mount_call *c, http_stage *s, char *request, int status)
{
    assert_int_equal(mount_begin(c, s, request), SEGUE_OK);
    mount_finish(c);
    assert_int_equal(c->status, status);
    assert_int_equal(c->end, SEGUE_OK);
    free(request);
}

void mount_sent(mount_call *c)
{
    size_t unsent = c->unsent;
    c->unsent = 0;
    assert_int_equal(segue_exchange_sent(c->exchange, unsent), SEGUE_OK);
}
