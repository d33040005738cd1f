/* A resource that clients watch. Its text is the number of its last change. Before
 * 2026-07-28 a client subscribes each time its session is open. In 2026-07-28 it listens,
 * and listens again when the subscription has ended. In each case it then reads the
 * resource, and reads it again after each notification. So it knows the last change a
 * while after all is well, whatever server goes on with its session. */
#include "simulation/sim.h"

#include "wire/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URI "x://watched"
#define PARAMS "{\"uri\":\"" URI "\"}"
#define FILTER "{\"notifications\":{\"resourceSubscriptions\":[\"" URI "\"]}}"
#define AGAIN_MS 500
#define PATIENCE_TURNS 4000

/* ---- clients ---- */

static void on_subscribed(void *user, segue_request *request, segue_status status,
                          const char *json, size_t len, const segue_error *error)
{
    sim_client *client = user;
    (void)request;
    (void)json;
    (void)len;
    (void)error;
    sim_watch *w = &client->watch;
    w->busy = false;
    w->reads = true;
    w->subscribes |= status != SEGUE_OK;
    w->again_ms = status == SEGUE_OK ? 0 : client->s->now_ms + AGAIN_MS;
}

static void on_read(void *user, segue_request *request, segue_status status,
                    const char *json, size_t len, const segue_error *error)
{
    static const char before[] = "\"text\":\"";
    sim_client *client = user;
    sim_watch *w = &client->watch;
    const char *at = status == SEGUE_OK ? strstr(json, before) : NULL;
    (void)request;
    (void)len;
    (void)error;
    w->busy = false;
    w->reads |= !at;
    w->again_ms = at ? 0 : client->s->now_ms + AGAIN_MS;
    if (at)
        w->knows = atoi(at + sizeof before - 1);
    if (at)
        sim_tell(client->s, "knows client%d v=%d", client->index, w->knows);
}

static void on_listened(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    sim_client *client = user;
    (void)request;
    (void)status;
    (void)json;
    (void)len;
    (void)error;
    client->watch.listens = false;
    client->watch.subscribes = true;
    client->watch.again_ms = client->s->now_ms + AGAIN_MS;
}

static void send(sim_client *client, const char *method, const char *params,
                 segue_complete_fn done)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    segue_request *request = NULL;
    events.user = client;
    events.on_complete = done;
    sim_check(client->s,
              segue_request_start(client->session, method, params, strlen(params), NULL,
                                  &events, &request, NULL) == SEGUE_OK);
    segue_request_free(request);
}

static bool is_modern(const sim_client *client)
{
    return sim_row(&client->s->plan)->era == SEGUE_ERA_MODERN;
}

static void subscribe(sim_client *client)
{
    sim_watch *w = &client->watch;
    w->subscribes = false;
    if (!is_modern(client)) {
        w->busy = true;
        send(client, "resources/subscribe", PARAMS, on_subscribed);
    } else if (!w->listens) {
        w->listens = true;
        send(client, "subscriptions/listen", FILTER, on_listened);
    }
}

void sim_watch_turn(sim_client *client)
{
    sim_watch *w = &client->watch;
    if (!client->session || w->busy || client->s->now_ms < w->again_ms)
        return;
    if (w->subscribes) {
        subscribe(client);
    } else if (w->reads) {
        w->reads = false;
        w->busy = true;
        send(client, "resources/read", PARAMS, on_read);
    }
}

static void on_open(void *user, segue_session *session)
{
    (void)session;
    ((sim_client *)user)->watch.subscribes = true;
}

static void on_notification(void *user, segue_session *session, const char *method,
                            const char *params, size_t len)
{
    (void)session;
    (void)params;
    (void)len;
    if (!strcmp(method, "notifications/resources/updated") ||
        !strcmp(method, "notifications/subscriptions/acknowledged"))
        ((sim_client *)user)->watch.reads = true;
}

const segue_session_events *sim_watch_events(sim_client *client)
{
    static segue_session_events events;
    client->watch = (sim_watch){.knows = -1};
    if (!sim_planned(client->s, SIM_watches))
        return NULL;
    events = SEGUE_SESSION_EVENTS_INIT;
    events.user = client;
    events.on_open = on_open;
    events.on_notification = on_notification;
    return &events;
}

/* ---- servers ---- */

static void on_call(void *user, segue_call *call)
{
    sim_server *server = user;
    segue_content *content;
    char json[80];
    int len = snprintf(json, sizeof json, "{\"uri\":\"" URI "\",\"text\":\"%d\"}",
                       server->s->version);
    sim_check(server->s, segue_content_new(server->runtime, &content) == SEGUE_OK);
    sim_check(server->s,
              segue_content_add_json(content, json, (size_t)len, NULL) == SEGUE_OK);
    segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

void sim_watch_serve(sim_server *server)
{
    static const char item[] = "{\"uri\":\"" URI "\",\"name\":\"watched\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.user = server;
    options.on_call = on_call;
    server->version = server->s->version;
    if (sim_planned(server->s, SIM_watches))
        sim_check(server->s,
                  segue_server_add(server->server, SEGUE_ITEM_RESOURCE, item,
                                   sizeof item - 1, &options, NULL) == SEGUE_OK);
}

void sim_watch_report(sim_server *server)
{
    if (server->version == server->s->version)
        return;
    server->version = server->s->version;
    segue_server_resource_updated(server->server, URI);
}

/* ---- the end of a run ---- */

static bool all_know(const sim *s)
{
    for (int i = 0; i < sim_planned(s, SIM_clients); i++)
        if (s->clients[i].session && s->clients[i].watch.knows != s->version)
            return false;
    return true;
}

static void wait_until_known(sim *s, void (*turn)(sim *s))
{
    for (int i = 0; i < PATIENCE_TURNS && !all_know(s); i++)
        turn(s);
    if (!all_know(s))
        sim_fail(s, "watches: a client does not know change %d", s->version);
}

void sim_watch_settle(sim *s, void (*turn)(sim *s))
{
    if (!sim_planned(s, SIM_watches))
        return;
    wait_until_known(s, turn);
    for (int change = 0; change < 2; change++) {
        s->version++;
        sim_tell(s, "change v=%d", s->version);
        wait_until_known(s, turn);
    }
}
