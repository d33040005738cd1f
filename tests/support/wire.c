/* The functions that wires of all kinds share. They store received lines and wait for
 * lines. */
#include "support/world_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define LATE 20000 /* the number of turns of a millisecond that a message may take */

/* ---- wires ---- */

void wire_received(wire *c, const char *bytes, size_t len)
{
    if (c->w->dead)
        return;
    tap_bytes(c->tap, TAP_OUT, bytes, len);
    if (c->len + len + 1 > c->cap) {
        c->cap = (c->len + len + 1) * 2;
        c->history = realloc(c->history, c->cap);
    }
    memcpy(c->history + c->len, bytes, len);
    c->len += len;
    c->history[c->len] = 0;
    char *end;
    while ((end = memchr(c->history + c->read_at, '\n', c->len - c->read_at))) {
        size_t n = (size_t)(end - (c->history + c->read_at));
        c->lines = realloc(c->lines, (c->count + 1) * sizeof *c->lines);
        c->lines[c->count++] = strndup(c->history + c->read_at, n);
        c->read_at += n + 1;
    }
}

wire *world_connect(world *w, const char *principal)
{
    wire *c = calloc(1, sizeof *c);
    c->w = w;
    c->principal = principal;
    c->next = w->wires;
    c->tap = tap_open("server");
    w->wires = c;
    c->ops = w->place == WORLD_PAIR   ? &wire_pair
             : w->place == WORLD_HTTP ? &wire_http
                                      : &wire_stdio;
    c->ops->connect(c);
    return c;
}

void wire_free(wire *c)
{
    c->ops->free(c);
    for (size_t i = 0; i < c->count; i++)
        free(c->lines[i]);
    for (size_t i = 0; i < c->kept_count; i++)
        free(c->kept[i]);
    tap_close(c->tap);
    free(c->lines);
    free(c->kept);
    free(c->history);
    free(c);
}

void wire_cut(wire *c)
{
    c->ops->cut(c);
}

void wire_drop(wire *c)
{
    world *w = c->w;
    wire **at = &w->wires;
    wire_cut(c);
    for (int i = 0; i < 1000 && c->transport && !c->detached; i++)
        world_run(w); /* the server's transport still uses the wire */
    assert_true(!c->transport || c->detached);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->ops->lose(c);
    wire_free(c);
}

void wire_stall(wire *c, int stalled)
{
    c->stalled = stalled;
    c->ops->stall(c);
}

int wire_is_closed(wire *c)
{
    return c->closed;
}

void wire_feed(wire *c, const char *bytes, size_t len)
{
    tap_bytes(c->tap, TAP_IN, bytes, len);
    c->ops->feed(c, bytes, len);
}

void wire_send(wire *c, const char *line)
{
    size_t len = strlen(line);
    char *text = malloc(len + 1);
    memcpy(text, line, len);
    text[len] = '\n';
    tap_bytes(c->tap, TAP_IN, text, len + 1);
    c->ops->send(c, text, len + 1);
    free(text);
    world_run(c->w);
}

char *wire_line(const char *id, const char *method, const char *params, const char *caps)
{
    size_t size = strlen(id) + strlen(method) + (params ? strlen(params) : 0) + 600;
    char *line = malloc(size + (caps ? strlen(caps) : 0));
    sprintf(line,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s%s\"_meta\":{"
            "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
            "\"io.modelcontextprotocol/clientCapabilities\":%s}}}",
            id, method, params ? params : "", params && *params ? "," : "",
            caps ? caps : "{}");
    return line;
}

void wire_ask(wire *c, const char *id, const char *method, const char *params,
              const char *caps)
{
    char *line = wire_line(id, method, params, caps);
    wire_send(c, line);
    free(line);
}

void wire_notify(wire *c, const char *method, const char *params)
{
    char line[2048];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{%s}}",
             method, params ? params : "");
    wire_send(c, line);
}

void wire_ask_plain(wire *c, const char *id, const char *method, const char *params)
{
    size_t size = strlen(method) + (params ? strlen(params) : 0) + 100;
    char *line = malloc(size);
    snprintf(line, size,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s}}", id,
             method, params ? params : "");
    wire_send(c, line);
    free(line);
}

/* ---- what the server says ---- */

/* Runs the world, or waits over stdio, until a message may have come. Returns 0 when none
 * will. */
static int pump(wire *c, int64_t deadline)
{
    size_t before = c->len;
    if (c->w->place == WORLD_STDIO) {
        int64_t left = deadline - world_real_ms();
        return left > 0 && (wire_stdio_read(c, (int)left) || c->len != before);
    }
    world_run(c->w);
    return c->len != before || (world_is_slow(c->w) && world_real_ms() < deadline);
}

static const char *keep(wire *c, char *text)
{
    c->kept = realloc(c->kept, (c->kept_count + 1) * sizeof *c->kept);
    c->kept[c->kept_count++] = text;
    return text;
}

static const char *take(wire *c, size_t i)
{
    char *text = c->lines[i];
    c->lines[i] = NULL;
    while (c->taken < c->count && !c->lines[c->taken])
        c->taken++;
    return keep(c, text);
}

const char *wire_next(wire *c)
{
    int64_t deadline = world_real_ms() + (c->w->place == WORLD_STDIO ? QUIET_MS : 50);
    while (c->taken == c->count)
        if (!pump(c, deadline))
            return NULL;
    return take(c, c->taken);
}

const char *wire_due(wire *c)
{
    int64_t deadline = world_real_ms() + WAIT_MS;
    int quiet = 0;
    while (c->taken == c->count) {
        if (pump(c, deadline))
            quiet = 0;
        else if (c->w->place == WORLD_STDIO || ++quiet > 3)
            return NULL;
    }
    return take(c, c->taken);
}

/* Returns whether a message may still come although none has arrived. Over HTTP, on a
 * busy machine, a message may still be in the kernel. */
static bool may_come_late(const wire *c, int *quiet)
{
    ++*quiet;
    if (c->w->place == WORLD_STDIO || *quiet > (c->w->place == WORLD_HTTP ? LATE : 3))
        return false;
    if (*quiet > 3)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return true;
}

/* Returns whether a line is the one that the scenario looks for. */
typedef int (*wanted_fn)(const char *line, const char *what);

static int is_response(const char *line, const char *id)
{
    return !strcmp(json_at(line, "id"), id) && !*json_at(line, "method");
}

static int is_notification(const char *line, const char *method)
{
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\"", method);
    return !strcmp(json_at(line, "method"), quoted) && !*json_at(line, "id");
}

static const char *wait_for(wire *c, wanted_fn wanted, const char *what)
{
    int64_t deadline = world_real_ms() + WAIT_MS;
    size_t at = c->taken;
    int quiet = 0;
    for (;;) {
        for (; at < c->count; at++)
            if (c->lines[at] && wanted(c->lines[at], what))
                return take(c, at);
        if (pump(c, deadline)) {
            quiet = 0;
        } else if (!may_come_late(c, &quiet)) {
            fail_msg("waited for %s, got nothing; history:\n%.2000s", what,
                     c->history ? c->history : "");
        }
    }
}

const char *wire_response(wire *c, const char *id)
{
    return wait_for(c, is_response, id);
}

static int is_request(const char *line, const char *method)
{
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\"", method);
    return *json_at(line, "id") && strcmp(json_at(line, "method"), quoted) == 0;
}

const char *wire_request(wire *c, const char *method)
{
    return wait_for(c, is_request, method);
}

const char *wire_notification(wire *c, const char *method)
{
    return wait_for(c, is_notification, method);
}

const char *wire_do(wire *c, const char *id, const char *method, const char *params,
                    const char *caps)
{
    wire_ask(c, id, method, params, caps);
    return wire_response(c, id);
}

const char *wire_do_plain(wire *c, const char *id, const char *method, const char *params)
{
    wire_ask_plain(c, id, method, params);
    return wire_response(c, id);
}

void wire_until_closed(wire *c)
{
    int64_t deadline = world_real_ms() + WAIT_MS;
    int quiet = 0;
    while (!c->closed && world_real_ms() < deadline)
        if (!pump(c, deadline) && world_is_here(c->w) && !may_come_late(c, &quiet))
            break;
    assert_true(c->closed);
}

void wire_quiet(wire *c)
{
    if (c->w->place == WORLD_STDIO)
        return;
    world_run(c->w);
    if (c->taken != c->count)
        fail_msg("did not expect: %s", c->lines[c->taken]);
}

void wire_expect_status(const wire *c, int status)
{
    if (c->w->place == WORLD_HTTP)
        assert_int_equal(c->status, status);
}

const char *wire_last_event(const wire *c)
{
    return c->last_event;
}

void wire_after(wire *c, const char *event)
{
    snprintf(c->after, sizeof c->after, "%s", event);
}

const char *wire_history(const wire *c)
{
    return c->history ? c->history : "";
}

/* ---- tasks ---- */

static char *unquote(const char *json)
{
    size_t n = strlen(json);
    return n >= 2 && json[0] == '"' ? strndup(json + 1, n - 2) : strdup(json);
}

const char *wire_make_task(wire *c, const char *id, const char *tool,
                           const char *arguments, const char *caps)
{
    char params[2048];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{%s}", tool,
             arguments ? arguments : "");
    const char *response = wire_do(c, id, "tools/call", params, caps ? caps : CAPS_TASKS);
    assert_at(response, "result.resultType", "\"task\"");
    return keep(c, unquote(json_at(response, "result.taskId")));
}

const char *wire_task(wire *c, const char *id, const char *method, const char *task_id,
                      const char *more)
{
    char params[2048];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"%s%s", task_id, more ? "," : "",
             more ? more : "");
    return wire_do(c, id, method, params, CAPS_TASKS);
}

/* Polls until the member has one of the wanted values, which are separated by bars; NULL
 * = any value. */
static const char *get_until(wire *c, const char *task_id, const char *member,
                             const char *wanted, const char *caps)
{
    char params[256], id[32], now[80];
    int64_t deadline = world_real_ms() + WAIT_MS;
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", task_id);
    for (int i = 0; i < 2000 && world_real_ms() < deadline; i++) {
        snprintf(id, sizeof id, "\"until-%d\"", i);
        const char *got = wire_do(c, id, "tasks/get", params, caps ? caps : CAPS_TASKS);
        const char *quoted = json_at(got, member);
        snprintf(now, sizeof now, "|%.*s|", *quoted ? (int)strlen(quoted) - 2 : 0,
                 *quoted ? quoted + 1 : "");
        if (*quoted && (!wanted || strstr(wanted, now)))
            return got;
        if (*json_at(got, "error"))
            fail_msg("tasks/get: %s", got);
        world_advance(c->w, 50);
        if (c->w->place == WORLD_STDIO)
            wire_stdio_read(c, 10); /* over stdio the server runs in real time */
    }
    fail_msg("%s never became %s", member, wanted ? wanted : "known");
    return NULL;
}

const char *wire_get_until(wire *c, const char *task_id, const char *status,
                           const char *caps)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "|%s|", status);
    return get_until(c, task_id, "result.status", wanted, caps);
}

const char *wire_get_until_asked(wire *c, const char *task_id, const char *key)
{
    char member[64];
    snprintf(member, sizeof member, "result.inputRequests.%s", key);
    return get_until(c, task_id, member, NULL, NULL);
}

const char *wire_get_until_says(wire *c, const char *task_id, const char *message)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "|%s|", message);
    return get_until(c, task_id, "result.statusMessage", wanted, NULL);
}
