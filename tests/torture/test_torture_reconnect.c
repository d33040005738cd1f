/* A client whose connection breaks twice, at the answer of its call and in the middle
 * of the stream, while memory fails. The test plays the server. It answers line by
 * line and breaks the connection where the script says so, or when the client cannot
 * take a line. */
#include "support/torture.h"
#include "support/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct far {
    segue_transport *transport;
    char *heard;
    size_t len;
    int calls, streams;
    int open;
} far;

static void start(void *self, segue_transport *transport)
{
    ((far *)self)->transport = transport;
    ((far *)self)->open = 1;
}

static size_t take(void *self, const char *bytes, size_t len)
{
    far *f = self;
    f->heard = realloc(f->heard, f->len + len + 1);
    memcpy(f->heard + f->len, bytes, len);
    f->len += len;
    f->heard[f->len] = 0;
    return len;
}

static void cut(far *f)
{
    f->len = 0;
    f->open = 0;
    segue_transport_closed(f->transport);
}

static void stop(void *self)
{
    cut(self);
}

static int32_t reopen(void *self)
{
    ((far *)self)->open = 1;
    return 0;
}

static void gone(void *self)
{
    free(((far *)self)->heard);
    free(self);
}

static void say(far *f, const char *line)
{
    size_t len = strlen(line);
    if (f->open && segue_transport_feed(f->transport, line, len) != SEGUE_OK)
        cut(f);
}

static void answer(far *f, const char *request, const char *members)
{
    char line[1024];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}\n",
             json_at(request, "id"), members);
    say(f, line);
}

static void segment(far *f, int seq, const char *text)
{
    char line[512];
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
             "\"seq\":%d,\"taskId\":\"T\",\"type\":\"dev.segue.content.partial\","
             "\"payload\":{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}}\n",
             seq, text);
    say(f, line);
}

static void hear(far *f, const char *line)
{
    const char *method = json_at(line, "method");
    if (!strcmp(method, "\"server/discover\"")) {
        answer(f, line,
               "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"extensions\":{"
               "\"io.modelcontextprotocol/tasks\":{\"eventStreams\":{}},"
               "\"dev.segue/idempotency\":{}}}");
    } else if (!strcmp(method, "\"tools/call\"")) {
        if (++f->calls == 1)
            cut(f);
        else
            answer(f, line,
                   "\"resultType\":\"task\",\"taskId\":\"T\",\"status\":\"working\"");
    } else if (!strcmp(method, "\"tasks/stream\"")) {
        if (!*json_at(line, "params.after"))
            segment(f, 0, "a");
        if (++f->streams == 1) {
            cut(f);
            return;
        }
        segment(f, 1, "b");
        answer(f, line,
               "\"_meta\":{\"dev.segue/final\":{\"status\":\"completed\",\"isError\":"
               "false}}");
    } else if (!strcmp(method, "\"tasks/get\"")) {
        answer(f, line,
               "\"taskId\":\"T\",\"status\":\"completed\",\"result\":{\"content\":[{"
               "\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}");
    }
}

static void play(torture *t)
{
    far *f = t->far;
    char *end;
    while (t->session_count && t->sessions_closed == 0 && f->len &&
           (end = memchr(f->heard, '\n', f->len))) {
        size_t n = (size_t)(end - f->heard) + 1;
        char *line = strndup(f->heard, n - 1);
        memmove(f->heard, f->heard + n, f->len - n + 1);
        f->len -= n;
        hear(f, line);
        free(line);
    }
}

static int broken_twice(torture *t)
{
    segue_transport_vtable vtable = SEGUE_TRANSPORT_VTABLE_INIT;
    segue_transport *transport;
    if (!torture_serve(t))
        return 0;
    vtable.start = start;
    vtable.send = take;
    vtable.close = stop;
    vtable.reopen = reopen;
    vtable.free = gone;
    far *f = t->far = calloc(1, sizeof *f);
    if (segue_transport_custom(t->runtime, &vtable, f, &transport) != SEGUE_OK) {
        free(f);
        return 0;
    }
    segue_session *session = torture_open_over(t, transport);
    if (!session)
        return 0;
    t->play = play;
    asked *a = torture_call(t, session, "t", "{}");
    if (a)
        torture_settle(t, a);
    t->play = NULL;
    return a && a->status == SEGUE_OK && a->segments == 2 && strstr(a->result, "\"b\"");
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"a connection that breaks twice", broken_twice, 0, 0, 0},
    };
    return torture_run("torture_reconnect", scenarios, 1);
}
