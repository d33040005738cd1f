/* The client of a chaos run in C.
 *
 *   chaos_client URL PARENT NAME SEED MODE CALLS COUNT SIZE PACE-US
 *
 * CALLS run at any time. MODE is the dialect that it speaks: E, S, P, PN, D, Z, or K (a
 * call with a key that takes effect once). SEGUE_HISTORY names the file of what it asked
 * and saw (tests/chaos/README.md). SIGTERM: it begins no more calls, and ends when the
 * last one has ended. It judges nothing. */
#include <segue/segue.h>

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kill_matrix/history.h"

#define TURN_MS 20

static volatile sig_atomic_t told_to_stop;

typedef struct crowd {
    segue_session *session;
    const char *name, *mode;
    uint64_t random;
    int64_t count, size, pace_us;
    int running, begun;
} crowd;

typedef struct asked {
    crowd *crowd;
    segue_request *request;
    char name[64];
    uint64_t move_at; /* behind this segment it goes on by its token; 0 = never */
    bool moving;      /* the request was let go */
} asked;

static void begin(crowd *c);

static uint64_t draw(crowd *c, uint64_t below)
{
    uint64_t x = c->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    asked *a = user;
    size_t len = 0;
    char sum[HISTORY_SUM];
    const char *text = segue_segment_text(segment, &len);
    uint64_t number = segue_segment_read(segment)->number;
    history_sum(text ? text : "", len, sum);
    history_write("see %s %" PRIu64 " %s", a->name, number, sum);
    if (!a->move_at || number < a->move_at)
        return;
    a->move_at = 0;
    a->moving = segue_request_detach(request) == SEGUE_OK;
}

/* Writes how many blocks the result has, and the sum of the sums of its texts. */
static void write_result(const asked *a, const char *json, size_t len)
{
    json_t *result = json_loadb(json, len, 0, NULL), *block;
    json_t *content = json_object_get(result, "content");
    size_t count = json_array_size(content), i;
    char *sums = calloc(count + 1, HISTORY_SUM - 1), fold[HISTORY_SUM], sum[HISTORY_SUM];
    json_array_foreach(content, i, block)
    {
        json_t *text = json_object_get(block, "text");
        history_sum(json_string_value(text), json_string_length(text), sum);
        memcpy(sums + i * (HISTORY_SUM - 1), sum, HISTORY_SUM - 1);
    }
    history_sum(sums, count * (HISTORY_SUM - 1), fold);
    history_write("end %s ok %zu %s", a->name, count, fold);
    free(sums);
    json_decref(result);
}

static void set_events(asked *a, segue_request_events *events);

/* Returns whether the call goes on by its token. Segments that had arrived were delivered
 * after the request was let go, so the token is taken here. */
static bool goes_on(asked *a, segue_status status)
{
    char token[16384];
    size_t len = sizeof token;
    segue_request_events events;
    if (!a->moving || status != SEGUE_E_CLOSED ||
        segue_request_token(a->request, token, &len) != SEGUE_OK)
        return false;
    a->moving = false;
    segue_request_free(a->request);
    a->request = NULL;
    history_write("move %s", a->name);
    set_events(a, &events);
    return segue_request_resume(a->crowd->session, token, NULL, &events, &a->request,
                                NULL) == SEGUE_OK;
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    asked *a = user;
    crowd *c = a->crowd;
    (void)request;
    if (goes_on(a, status))
        return;
    if (status == SEGUE_OK)
        write_result(a, json, len);
    else
        history_write("end %s error %s %.300s", a->name, segue_status_name(status),
                      segue_error_read(error)->message);
    segue_request_free(a->request);
    free(a);
    c->running--;
    if (!told_to_stop)
        begin(c);
}

static void set_events(asked *a, segue_request_events *events)
{
    *events = SEGUE_REQUEST_EVENTS_INIT;
    events->user = a;
    events->on_segment = on_segment;
    events->on_complete = on_complete;
}

static void begin(crowd *c)
{
    char params[400];
    segue_request_events events;
    bool once = strcmp(c->mode, "K") == 0;
    asked *a = calloc(1, sizeof *a);
    if (!a)
        abort();
    a->crowd = c;
    snprintf(a->name, sizeof a->name, "%s.%d", c->name, c->begun++);
    int len =
        snprintf(params, sizeof params,
                 "{\"name\":\"%s\",\"arguments\":{\"call\":\"%s\",\"count\":%" PRId64
                 ",\"size\":%" PRId64 ",\"paceUs\":%" PRId64 "}}",
                 once ? "effect" : "weave", a->name, c->count, c->size, c->pace_us);
    a->move_at = draw(c, 2) ? 1 + draw(c, (uint64_t)c->count) : 0;
    set_events(a, &events);
    history_write("ask %s %s %" PRId64, a->name, c->mode, once ? 1 : c->count);
    c->running++;
    segue_status status = segue_request_start(
        c->session, "tools/call", params, (size_t)len, NULL, &events, &a->request, NULL);
    if (status == SEGUE_OK)
        return;
    history_write("end %s error %s", a->name, segue_status_name(status));
    free(a);
    c->running--;
}

static void set_mode(segue_session_options *options, const char *mode)
{
    bool plain = mode[0] == 'P' || strcmp(mode, "Z") == 0 || strcmp(mode, "K") == 0;
    bool modern =
        strcmp(mode, "E") == 0 || strcmp(mode, "PN") == 0 || strcmp(mode, "K") == 0;
    options->era = modern ? SEGUE_ERA_MODERN : SEGUE_ERA_LEGACY;
    options->no_tasks = plain;
    if (strcmp(mode, "D") == 0)
        options->dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
    if (strcmp(mode, "Z") == 0)
        options->dialects_on = SEGUE_DIALECT_RESUMABLE;
}

static segue_status open_session(crowd *c, segue_runtime *runtime, const char *url)
{
    segue_transport *transport;
    segue_http_options http = SEGUE_HTTP_OPTIONS_INIT;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    http.proxy = ""; /* the environment's proxy is not for this machine */
    set_mode(&options, c->mode);
    options.max_reconnects = options.first_attempts = 10000;
    segue_status status = segue_transport_http(runtime, url, &http, &transport, NULL);
    if (status == SEGUE_OK)
        status =
            segue_session_open(runtime, transport, &options, NULL, &c->session, NULL);
    return status;
}

static void note_stop(int number)
{
    (void)number;
    told_to_stop = 1;
}

int main(int argc, char **argv)
{
    crowd c = {0};
    segue_runtime *runtime = NULL;
    if (argc != 10) {
        fprintf(stderr, "usage: chaos_client URL PARENT NAME SEED MODE CALLS COUNT SIZE "
                        "PACE-US\n");
        return 2;
    }
    signal(SIGTERM, note_stop);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != atoi(argv[2]))
        return 1;
    c.name = argv[3];
    c.random = strtoull(argv[4], NULL, 10);
    c.mode = argv[5];
    c.count = atoll(argv[7]);
    c.size = atoll(argv[8]);
    c.pace_us = atoll(argv[9]);
    segue_status status = segue_runtime_new(NULL, &runtime, NULL);
    if (status == SEGUE_OK)
        status = open_session(&c, runtime, argv[1]);
    for (int i = atoi(argv[6]); i > 0 && status == SEGUE_OK; i--)
        begin(&c);
    while (status == SEGUE_OK && c.running)
        status = segue_runtime_dispatch(runtime, TURN_MS, 0, NULL);
    if (status == SEGUE_OK)
        history_write("done %s", c.name);
    segue_session_free(c.session);
    segue_runtime_free(runtime);
    return status == SEGUE_OK ? 0 : 1;
}
