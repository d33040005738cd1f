/* A client whose call is streamed by a server of 2025-11-25 (SEP-1905), while memory
 * fails. The segments are pushed to the end; or with a gap and a broken connection, so
 * that they are pulled; or by a server that does not keep segments, so that the result is
 * fetched. The test plays the server, line by line; a line that the client cannot take
 * breaks the connection. */
#include "support/torture.h"
#include "support/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUSHED, PULLED, FETCHED };

typedef struct far {
    segue_transport *transport;
    char *heard;
    size_t len;
    int how;
    int open;
    int cuts;
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

static void say(far *f, const char *request, const char *kind, const char *members)
{
    char line[1024];
    int len = snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":{%s}}\n",
                       json_at(request, "id"), kind, members);
    if (f->open && segue_transport_feed(f->transport, line, (size_t)len) != SEGUE_OK)
        cut(f);
}

/* Sends the segments from..to. */
static void part(far *f, const char *request, int from, int to, bool complete)
{
    char members[768] = "\"task\":{\"taskId\":\"T\",\"status\":\"working\"},"
                        "\"partial-content\":[";
    size_t n = strlen(members);
    for (int i = from; i <= to; i++)
        n +=
            (size_t)snprintf(members + n, sizeof members - n,
                             "%s{\"type\":\"text\",\"text\":\"segment %d\",\"seqNr\":%d}",
                             i > from ? "," : "", i, i);
    snprintf(members + n, sizeof members - n, "],\"isComplete\":%s",
             complete ? "true" : "false");
    say(f, request, "result", members);
}

static void answer_call(far *f, const char *call)
{
    part(f, call, 1, 1, false);
    if (f->how == PUSHED)
        part(f, call, 2, 3, false);
    part(f, call, f->how == PUSHED ? 4 : 3, 4, true);
    if (f->how == PULLED && !f->cuts++)
        cut(f);
}

static void answer_result(far *f, const char *request)
{
    const char *after = json_at(request, "params.lastSeqNr");
    if (*after && f->how == FETCHED)
        say(f, request, "error",
            "\"code\":-32603,\"message\":\"no\",\"data\":{\"reason\":\"segments_gone\"}");
    else if (*after)
        part(f, request, atoi(after) + 1, 4, true);
    else
        say(f, request, "result",
            "\"content\":[{\"type\":\"text\",\"text\":\"segment 1\"},{\"type\":\"text\","
            "\"text\":\"segment 2\"},{\"type\":\"text\",\"text\":\"segment 3\"},{"
            "\"type\":\"text\",\"text\":\"segment 4\"}]");
}

static void hear(far *f, const char *line)
{
    const char *method = json_at(line, "method");
    if (!strcmp(method, "\"initialize\""))
        say(f, line, "result",
            "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tasks\":{"
            "\"requests\":{\"tools\":{\"call\":{}}},\"responses\":{\"modes\":["
            "\"streaming\"]}}}");
    else if (!strcmp(method, "\"tools/list\""))
        say(f, line, "result",
            "\"tools\":[{\"name\":\"t\",\"execution\":{\"taskSupport\":\"optional\"}}]");
    else if (!strcmp(method, "\"tools/call\"") && *json_at(line, "params.task"))
        answer_call(f, line);
    /* no memory to announce its capabilities */
    else if (!strcmp(method, "\"tools/call\""))
        say(f, line, "result",
            "\"content\":[{\"type\":\"text\",\"text\":\"segment 4\"}]");
    else if (!strcmp(method, "\"tasks/get\""))
        say(f, line, "result", "\"taskId\":\"T\",\"status\":\"completed\"");
    else if (!strcmp(method, "\"tasks/result\""))
        answer_result(f, line);
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

static int streamed(torture *t, int how)
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
    far *f = calloc(1, sizeof *f);
    f->how = how;
    if (segue_transport_custom(t->runtime, &vtable, f, &transport) != SEGUE_OK) {
        free(f);
        return 0;
    }
    t->far = f;
    segue_session *session = torture_open_over(t, transport);
    if (!session)
        return 0;
    t->play = play;
    asked *a = torture_call(t, session, "t", "{}");
    if (a)
        torture_settle(t, a);
    t->play = NULL;
    return a && a->status == SEGUE_OK && a->segments == 4 &&
           strstr(a->result, "segment 4");
}

static int pushed(torture *t)
{
    return streamed(t, PUSHED);
}

static int pulled(torture *t)
{
    return streamed(t, PULLED);
}

static int fetched(torture *t)
{
    return streamed(t, FETCHED);
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"pushed to the end", pushed, 0, SEGUE_ERA_LEGACY, 0},
        {"a hole and a cut, pulled", pulled, 0, SEGUE_ERA_LEGACY, 0},
        {"a hole that is not retained, fetched", fetched, 0, SEGUE_ERA_LEGACY, 0},
    };
    return torture_run("torture_segments", scenarios,
                       sizeof scenarios / sizeof *scenarios);
}
