/* A server with tasks of 2025-11-25 while memory fails. A client that the test plays,
 * line by line, makes, polls, lists, fetches and cancels them. Whatever fails, each
 * request is answered, or the conversation is closed. */
#include "engine/server/server.h"
#include "support/torture.h"
#include "support/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define WAIT_MS 60000
#define DROUGHT_MS 2000 /* after this time there is memory again */

typedef struct client {
    torture *t;
    segue_transport *transport;
    char *heard; /* whole lines and the beginning of one */
    size_t len;
    int closed;
    int rained;      /* memory came back before all requests were sent */
    int number;      /* number of the last request */
    char task[64];   /* id of the task that was made last */
    char line[4096]; /* the last answer */
} client;

/* ---- the transport ---- */

static void start(void *self, segue_transport *transport)
{
    ((client *)self)->transport = transport;
}

static size_t take(void *self, const char *bytes, size_t len)
{
    client *c = self;
    c->heard = realloc(c->heard, c->len + len + 1);
    memcpy(c->heard + c->len, bytes, len);
    c->len += len;
    c->heard[c->len] = 0;
    return len;
}

static void stop(void *self)
{
    client *c = self;
    c->closed = 1;
    segue_transport_closed(c->transport);
}

static void gone(void *self)
{
    client *c = self;
    free(c->heard);
    c->heard = NULL;
    c->len = 0;
    c->closed = 1;
}

static segue_status tell_who(void *user, segue_transport *transport, const char **who)
{
    (void)user;
    (void)transport;
    *who = "somebody";
    return SEGUE_OK;
}

static client *connect(torture *t)
{
    segue_transport_vtable vtable = SEGUE_TRANSPORT_VTABLE_INIT;
    segue_transport *transport;
    vtable.start = start;
    vtable.send = take;
    vtable.close = stop;
    vtable.free = gone;
    static client the_only_one; /* outlives its transport */
    client *c = &the_only_one;
    *c = (client){.t = t};
    if (segue_transport_custom(t->runtime, &vtable, c, &transport) != SEGUE_OK)
        return NULL;
    t->server->options.principal = tell_who; /* tasks/list is only for callers with a
                                              * principal */
    if (segue_server_attach(t->server, transport, NULL) != SEGUE_OK) {
        segue_transport_free(transport);
        return NULL;
    }
    torture_pump(t);
    return c;
}

/* ---- requests ---- */

/* Takes whole lines until the answer is among them. */
static int hear(client *c)
{
    char id[16], *end;
    snprintf(id, sizeof id, "%d", c->number);
    while (c->len && (end = memchr(c->heard, '\n', c->len))) {
        size_t n = (size_t)(end - c->heard);
        snprintf(c->line, sizeof c->line, "%.*s", (int)n, c->heard);
        c->len -= n + 1;
        memmove(c->heard, end + 1, c->len);
        if (!strcmp(json_at(c->line, "id"), id))
            return 1;
    }
    return 0;
}

static void say(client *c, const char *line)
{
    if (!c->closed && segue_transport_feed(c->transport, line, strlen(line)) != SEGUE_OK)
        stop(c);
}

/* Returns 1 when the request was answered with a result. */
static int ask(client *c, const char *method, const char *params)
{
    char line[1024];
    torture *t = c->t;
    int64_t begun = t->clock_ms;
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":{%s}}\n",
             ++c->number, method, params);
    say(c, line);
    for (torture_pump(t); !c->closed && !hear(c); torture_pump(t)) {
        t->clock_ms += 10;
        if (t->clock_ms - begun == DROUGHT_MS) {
            test_mem_rearm(&t->mem);
            c->rained = 1;
        }
        if (t->clock_ms - begun > WAIT_MS)
            fail_msg("%s is not answered (allocation %zu refused, from %zu)", method,
                     t->fail_at, t->fail_from);
    }
    return !c->closed && *json_at(c->line, "result") != 0;
}

static int make_task(client *c, const char *tool)
{
    char params[256];
    snprintf(params, sizeof params,
             "\"name\":\"%s\",\"arguments\":{},\"task\":{},\"_meta\":{\"progressToken\":"
             "1}",
             tool);
    if (!ask(c, "tools/call", params))
        return 0;
    const char *quoted = json_at(c->line, "result.task.taskId");
    snprintf(c->task, sizeof c->task, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    return 1;
}

static int about(client *c, const char *method)
{
    char params[128];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", *c->task ? c->task : "none");
    return ask(c, method, params);
}

/* Tries all requests, whether they succeed or not. */
static int tasks(torture *t)
{
    client *c;
    if (!torture_serve(t) || !(c = connect(t)))
        return 0;
    int good = ask(c, "initialize", "\"protocolVersion\":\"2025-11-25\"");
    say(c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    good &= make_task(c, "reporter");
    good &= ask(c, "tasks/list", "");
    good &= about(c, "tasks/result") && strstr(c->line, "reported") != NULL;
    good &= about(c, "tasks/get");
    good &= make_task(c, "hang");
    good &= about(c, "tasks/cancel");
    t->clock_ms += 31000; /* an ended task leaves memory: it is read back */
    torture_pump(t);
    good &= ask(c, "tasks/list", "") && strstr(c->line, "\"cancelled\"") &&
            strstr(c->line, "\"completed\"");
    if (!c->closed)
        stop(c);
    torture_pump(t);
    return good || c->rained;
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"tasks of 2025-11-25", tasks, 0, SEGUE_ERA_LEGACY, 0},
        {"tasks of 2025-11-25 in a file", tasks, 1, SEGUE_ERA_LEGACY, 0},
    };
    return torture_run("torture_tasks_2025", scenarios,
                       sizeof scenarios / sizeof *scenarios);
}
