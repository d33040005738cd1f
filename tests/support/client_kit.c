#include "support/client_kit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/tap.h"
#include "support/world.h"

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- clock and chance ---- */

static int64_t fake_now(void *user)
{
    return ((kit *)user)->clock_ms;
}

static int64_t fake_wall(void *user)
{
    return WORLD_EPOCH + ((kit *)user)->clock_ms;
}

static int32_t fake_random(void *user, void *bytes, size_t len)
{
    kit *k = user;
    for (size_t i = 0; i < len; i++) {
        k->chance = k->chance * 6364136223846793005u + 1442695040888963407u;
        ((unsigned char *)bytes)[i] = (unsigned char)(k->chance >> 40);
    }
    return 0;
}

/* ---- transport: the test is the other end ---- */

static void client_start(void *self, segue_transport *transport)
{
    (void)self;
    (void)transport;
}

static size_t client_sent(void *self, const char *bytes, size_t len)
{
    kit *k = self;
    tap_bytes(k->tap, TAP_IN, bytes, len);
    k->heard = realloc(k->heard, k->heard_len + len + 1);
    memcpy(k->heard + k->heard_len, bytes, len);
    k->heard_len += len;
    k->heard[k->heard_len] = 0;
    return len;
}

static void client_close(void *self)
{
    segue_transport_closed(((kit *)self)->transport);
}

static int32_t client_reopen(void *self)
{
    kit *k = self;
    k->reopens++;
    return k->hold_reopen ? 1 : 0;
}

static void client_gone(void *self)
{
    ((kit *)self)->transport_gone = 1;
}

void kit_connect(kit *k)
{
    segue_transport_vtable vtable = SEGUE_TRANSPORT_VTABLE_INIT;
    vtable.start = client_start;
    vtable.send = client_sent;
    vtable.close = client_close;
    vtable.reopen = k->can_reopen ? client_reopen : NULL;
    vtable.free = client_gone;
    assert_int_equal(segue_transport_custom(k->runtime, &vtable, k, &k->transport),
                     SEGUE_OK);
}

/* ---- session callbacks ---- */

static void on_open(void *user, segue_session *session)
{
    (void)session;
    ((kit *)user)->opened++;
}

static void on_closed(void *user, segue_session *session, const segue_error *error)
{
    kit *k = user;
    (void)session;
    assert_int_equal(k->closed, 0);
    k->closed++;
    k->closed_status = segue_error_read(error)->status;
    snprintf(k->closed_message, sizeof k->closed_message, "%s",
             error ? segue_error_read(error)->message : "");
}

static void on_reconnect(void *user, segue_session *session, int32_t attempt,
                         int64_t delay_ms, const char *reason)
{
    kit *k = user;
    (void)session;
    assert_int_equal(k->closed, 0);
    assert_true(attempt >= 1 && delay_ms >= 0);
    k->retries++;
    k->last_attempt = attempt;
    snprintf(k->last_reason, sizeof k->last_reason, "%s", reason);
}

static void on_notification(void *user, segue_session *session, const char *method,
                            const char *params, size_t len)
{
    kit *k = user;
    (void)session;
    k->notifications++;
    snprintf(k->last_notification, sizeof k->last_notification, "%s %.*s", method,
             (int)(len < 300 ? len : 300), params);
}

static void session_freed(void *user)
{
    kit *k = user;
    assert_int_equal(k->closed, 1);
    k->session_freed++;
}

/* Keeps the text of the last warning. */
static void keep_log(void *user, int32_t level, const char *text)
{
    kit *k = user;
    if (level >= SEGUE_LOG_WARNING)
        snprintf(k->last_warning, sizeof k->last_warning, "%s", text);
}

void kit_prepare(kit *k, int64_t max_message_bytes)
{
    segue_runtime_options runtime = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    k->clock_ms = 1000;
    if (!k->chance)
        k->chance = 42;
    test_mem_init(&k->mem);
    k->tap = tap_open("client");
    hooks.user = k;
    hooks.monotonic_ms = fake_now;
    hooks.wall_ms = fake_wall;
    hooks.random = fake_random;
    runtime.allocator = &k->mem.mem;
    runtime.hooks = &hooks;
    runtime.user = k;
    runtime.log = keep_log;
    runtime.max_message_bytes = max_message_bytes;
    assert_int_equal(segue_runtime_new(&runtime, &k->runtime, NULL), SEGUE_OK);
}

void kit_open(kit *k, const segue_session_options *options)
{
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    events.user = k;
    events.free_user = session_freed;
    events.on_open = on_open;
    events.on_closed = on_closed;
    events.on_notification = on_notification;
    events.on_validate = k->validate;
    events.on_reconnect = on_reconnect;
    assert_int_equal(
        segue_session_open(k->runtime, k->transport, options, &events, &k->session, NULL),
        SEGUE_OK);
    kit_run(k);
}

void kit_begin(kit *k, const segue_session_options *options)
{
    kit_prepare(k, 0);
    kit_connect(k);
    kit_open(k, options);
}

void kit_handshake(kit *k, const char *capabilities)
{
    const char *discover = kit_expect(k, "server/discover");
    kit_result(k, discover,
               "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
               "\"capabilities\":%s,\"ttlMs\":0,\"cacheScope\":\"private\"",
               capabilities);
}

void kit_begin_modern(kit *k, const segue_session_options *options,
                      const char *capabilities)
{
    kit_begin(k, options);
    kit_handshake(k, capabilities);
    assert_int_equal(k->opened, 1);
}

const char *kit_shake_hands(kit *k, const char *version, const char *capabilities)
{
    const char *request = kit_expect(k, "initialize");
    kit_result(k, request,
               "\"protocolVersion\":\"%s\",\"capabilities\":%s,"
               "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}",
               version, capabilities);
    kit_expect(k, "notifications/initialized");
    return request;
}

void kit_handshake_2025(kit *k, const char *capabilities)
{
    kit_shake_hands(k, "2025-11-25", capabilities);
}

segue_session_options kit_legacy_options(void)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = SEGUE_ERA_LEGACY;
    return options;
}

void kit_begin_2025(kit *k, const segue_session_options *options,
                    const char *capabilities)
{
    segue_session_options full = options ? *options : kit_legacy_options();
    full.era = SEGUE_ERA_LEGACY;
    kit_begin(k, &full);
    kit_handshake_2025(k, capabilities);
    assert_int_equal(k->opened, 1);
}

void kit_list_tools(kit *k)
{
    kit_result(k, kit_expect(k, "tools/list"),
               "\"tools\":[{\"name\":\"p\",\"inputSchema\":{\"type\":\"object\"}},"
               "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"},"
               "\"execution\":{\"taskSupport\":\"optional\"}},"
               "{\"name\":\"r\",\"inputSchema\":{\"type\":\"object\"},"
               "\"execution\":{\"taskSupport\":\"required\"}}]");
}

/* ---- time ---- */

void kit_run(kit *k)
{
    int32_t ran = 1;
    for (int idle = 0; idle < 2; idle = ran ? 0 : idle + 1)
        segue_runtime_dispatch(k->runtime, 0, 0, &ran);
}

void kit_advance(kit *k, int64_t ms)
{
    for (int64_t end = k->clock_ms + ms; k->clock_ms < end;) {
        k->clock_ms += end - k->clock_ms > 10 ? 10 : end - k->clock_ms;
        kit_run(k);
    }
}

/* ---- the wire ---- */

static const char *keep_line(kit *k, char *line)
{
    k->lines = realloc(k->lines, (k->line_count + 1) * sizeof *k->lines);
    k->lines[k->line_count++] = line;
    return line;
}

const char *kit_heard(kit *k)
{
    kit_run(k);
    char *end = k->heard_len ? memchr(k->heard, '\n', k->heard_len) : NULL;
    if (!end)
        return NULL;
    size_t n = (size_t)(end - k->heard);
    const char *line = keep_line(k, strndup(k->heard, n));
    memmove(k->heard, end + 1, k->heard_len - n);
    k->heard_len -= n + 1;
    return line;
}

const char *kit_expect(kit *k, const char *method)
{
    const char *line = kit_heard(k);
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\"", method);
    if (!line || strcmp(json_at(line, "method"), quoted) != 0)
        fail_msg("expected %s, heard %s", method, line ? line : "nothing");
    return line;
}

void kit_expect_silence(kit *k)
{
    const char *line = kit_heard(k);
    if (line)
        fail_msg("expected silence, heard %s", line);
}

static void say(kit *k, const char *text)
{
    size_t len = strlen(text);
    char *line = malloc(len + 2);
    memcpy(line, text, len);
    line[len] = '\n';
    line[len + 1] = 0;
    tap_bytes(k->tap, TAP_OUT, line, len + 1);
    assert_int_equal(segue_transport_feed(k->transport, line, len + 1), SEGUE_OK);
    free(line);
    kit_run(k);
}

static char *compose(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = malloc((size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, format, args);
    return text;
}

void kit_say(kit *k, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = compose(format, args);
    va_end(args);
    say(k, text);
    free(text);
}

void kit_result(kit *k, const char *request, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *members = compose(format, args);
    va_end(args);
    kit_say(k, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}", json_at(request, "id"),
            members);
    free(members);
}

void kit_error(kit *k, const char *request, int code, const char *data)
{
    kit_say(
        k,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,\"message\":\"no\"%s%s}}",
        json_at(request, "id"), code, data ? ",\"data\":" : "", data ? data : "");
}

void kit_segment(kit *k, const char *task, int seq, int number, const char *text)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
            "\"seq\":%d,\"taskId\":\"%s\",\"type\":\"dev.segue.content.partial\","
            "\"payload\":{"
            "\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],\"segment\":%d}}}",
            seq, task, text, number);
}

void kit_cut(kit *k)
{
    segue_transport_closed(k->transport);
    tap_cut(k->tap);
    k->heard_len = 0;
    kit_run(k);
}

/* ---- the end ---- */

static void free_texts(kit *k)
{
    for (size_t i = 0; i < k->line_count; i++)
        free(k->lines[i]);
    free(k->lines);
    tap_close(k->tap);
    free(k->heard);
}

void kit_leave(kit *k)
{
    segue_session_close(k->session);
    segue_session_free(k->session);
    kit_run(k);
    assert_int_equal(k->closed, 1);
    free_texts(k);
}

void kit_end(kit *k)
{
    if (k->session)
        segue_session_close(k->session);
    segue_session_free(k->session);
    segue_runtime_free(k->runtime);
    assert_int_equal(k->closed, 1);
    assert_int_equal(k->session_freed, 1);
    records_end(k);
    assert_int_equal(k->transport_gone, 1);
    assert_int_equal(k->mem.live, 0);
    free_texts(k);
}
