/* A client over HTTP while memory fails. It makes a plain call and a task of the modern
 * era, whose stream is cut once. It makes a call of the handshake eras, whose stream is
 * resumed, and one whose server changes back to those eras before it answers. The test
 * plays the server on a socket of its own; allocations of libcurl are not counted. */
#include "support/http_peer.h"
#include "support/torture.h"
#include "support/world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 32

typedef struct far {
    http_peer peer;
    http_line lines[LINES];
    int legacy;
    int is_task;
    int goes_back; /* the server changes back to a handshake era at the first call */
    int cuts;      /* number of streams that were cut so far */
    char call[32]; /* id of the call that was cut */
} far;

static void say(http_line *line, const char *status, const char *headers,
                const char *body)
{
    char text[2048];
    snprintf(text, sizeof text, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status,
             headers, strlen(body), body);
    if (http_line_push(line, text, strlen(text)) != strlen(text))
        http_line_close(line);
}

static void answer(http_line *line, const char *headers, const char *id,
                   const char *members)
{
    char body[1024], head[256];
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}", id,
             members);
    snprintf(head, sizeof head, "Content-Type: application/json\r\n%s", headers);
    say(line, "200 OK", head, body);
}

/* Sends a stream that ends with its connection. */
static void stream(http_line *line, const char *events)
{
    char text[2048];
    snprintf(text, sizeof text,
             "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
             "\r\n%s",
             events);
    http_line_push(line, text, strlen(text));
    http_line_close(line);
}

#define SEGMENT(seq, text)                                                               \
    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"   \
    "\"seq\":" #seq ",\"taskId\":\"T\",\"type\":\"dev.segue.content.partial\","          \
    "\"payload\":{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}}}\n\n"
#define CONTENT                                                                          \
    "\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":"       \
    "\"b\"}]"

static void stream_task(far *f, http_line *line, const char *id, bool begun)
{
    char events[1024];
    snprintf(
        events, sizeof events,
        SEGMENT(1, "b") "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"_meta\":{"
                        "\"dev.segue/final\":{\"status\":\"completed\","
                        "\"isError\":false}}}}\n\n",
        id);
    if (f->cuts++ == 0)
        stream(line, SEGMENT(0, "a"));
    else if (begun)
        stream(line, events);
    else
        stream(line, SEGMENT(0, "a"));
}

static void stream_call(far *f, http_line *line, const char *id)
{
    char events[1024];
    bool resumes = strstr(line->in, "Last-Event-ID: e1") != NULL;
    if (!resumes)
        snprintf(f->call, sizeof f->call, "%s", id);
    snprintf(events, sizeof events,
             "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{" CONTENT "}}\n\n",
             f->call);
    stream(line, f->legacy && !resumes ? "retry: 20\nid: e1\ndata:\n\n" : events);
}

static void goes_back(far *f, http_line *line)
{
    f->legacy = 1;
    say(line, "400 Bad Request", "", "no session");
}

static void hear(far *f, http_line *line)
{
    const char *body = strstr(line->in, "\r\n\r\n") + 4;
    const char *method = *body ? json_at(body, "method") : "";
    char id[32];
    snprintf(id, sizeof id, "%s", *body ? json_at(body, "id") : "");
    if (!strncmp(line->in, "GET", 3) && !strstr(line->in, "Last-Event-ID"))
        say(line, "405 Method Not Allowed", "", "");
    else if (!strncmp(line->in, "GET", 3))
        stream_call(f, line, "0");
    else if (!strncmp(line->in, "DELETE", 6))
        say(line, "200 OK", "", "");
    else if (!strcmp(method, "\"server/discover\"") && f->legacy)
        say(line, "400 Bad Request", "", "");
    else if (!strcmp(method, "\"server/discover\""))
        answer(line, "", id,
               "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"extensions\":{"
               "\"io.modelcontextprotocol/tasks\":{\"eventStreams\":{}},"
               "\"dev.segue/idempotency\":{}}}");
    else if (!strcmp(method, "\"initialize\""))
        answer(line, "Mcp-Session-Id: one\r\n", id,
               "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}");
    else if (!strncmp(method, "\"notifications/", 15))
        say(line, "202 Accepted", "", "");
    else if (!strcmp(method, "\"tools/call\"") && f->goes_back && !f->legacy)
        goes_back(f, line);
    else if (!strcmp(method, "\"tools/call\"") && !f->is_task)
        stream_call(f, line, id);
    else if (!strcmp(method, "\"tools/call\""))
        answer(line, "", id,
               "\"resultType\":\"task\",\"taskId\":\"T\",\"status\":\"working\"");
    else if (!strcmp(method, "\"tasks/stream\""))
        stream_task(f, line, id, *json_at(body, "params.after"));
    else if (!strcmp(method, "\"tasks/get\""))
        answer(line, "", id,
               "\"taskId\":\"T\",\"status\":\"completed\",\"result\":{" CONTENT "}");
    else
        answer(line, "", id, "");
}

/* The network gets a moment of real time per turn. */
static void play(torture *t)
{
    far *f = t->far;
    struct pollfd fds[LINES + 1] = {{.fd = f->peer.listener, .events = POLLIN}};
    for (int i = 0; i < LINES; i++) {
        http_line *line = &f->lines[i];
        fds[i + 1] = (struct pollfd){.fd = line->fd, .events = POLLIN};
        if (line->fd < 0 && http_peer_accept(&f->peer, line))
            fds[i + 1].fd = line->fd;
        if (line->fd >= 0 && http_line_asked(line)) {
            hear(f, line);
            if (line->fd >= 0)
                http_line_clear(line);
        } else if (line->fd >= 0 && line->ended) {
            http_line_close(line);
        }
    }
    for (int i = 0; i < LINES; i++)
        fds[i + 1].fd = f->lines[i].fd;
    poll(fds, LINES + 1, 1);
}

static int talk(torture *t, far *f)
{
    segue_http_options options = SEGUE_HTTP_OPTIONS_INIT;
    segue_transport *transport;
    char url[64];
    options.proxy = "";
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", f->peer.port);
    if (segue_transport_http(t->runtime, url, &options, &transport, NULL) != SEGUE_OK)
        return 0;
    if (segue_transport_set_header(transport, "X-A", "1", NULL) != SEGUE_OK) {
        segue_transport_free(transport);
        return 0;
    }
    segue_session *session = torture_open_over(t, transport);
    asked *a = session ? torture_call(t, session, "t", "{}") : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    segue_session_close(session);
    for (int i = 0; i < 3; i++)
        torture_pump(t);
    return a->status == SEGUE_OK && a->segments == 2;
}

static int over_http(torture *t, int legacy, int is_task, int goes_back)
{
    if (!torture_serve(t))
        return 0;
    far *f = t->far = calloc(1, sizeof *f);
    f->legacy = legacy;
    f->is_task = is_task;
    f->goes_back = goes_back;
    for (int i = 0; i < LINES; i++)
        f->lines[i].fd = -1;
    http_peer_open(&f->peer);
    t->play = play;
    int went_well = talk(t, f);
    t->play = NULL;
    for (int i = 0; i < LINES; i++)
        if (f->lines[i].fd >= 0)
            http_line_close(&f->lines[i]);
    http_peer_close(&f->peer);
    free(f);
    t->far = NULL;
    return went_well;
}

static int plain_call(torture *t)
{
    return over_http(t, 0, 0, 0);
}

static int task_with_a_cut_stream(torture *t)
{
    return over_http(t, 0, 1, 0);
}

static int resumed_call(torture *t)
{
    return over_http(t, 1, 0, 0);
}

static int call_to_another_era(torture *t)
{
    return over_http(t, 0, 0, 1);
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"plain call over HTTP", plain_call, 0, 0, 0},
        {"task over HTTP with a cut stream", task_with_a_cut_stream, 0, 0, 0},
        {"call over HTTP of a handshake era, resumed", resumed_call, 0, 0, 0},
        {"call over HTTP to a server that goes back an era", call_to_another_era, 0, 0,
         0},
    };
    return torture_run("torture_http", scenarios, sizeof scenarios / sizeof *scenarios);
}
