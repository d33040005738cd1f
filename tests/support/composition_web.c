/* The carrier of a composition over HTTP. The client connects to a Unix socket of the
 * test. The test joins each of its connections to a connection to the server, through a
 * cutting_line. All sockets are polled on the thread of the run, without waiting: what
 * one end has written the other end can read at once. */
#include "support/composition.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/cutting_line.h"

#define MOST 64 /* maximum number of connections at once */

typedef struct web {
    cutting_options options;
    char near_path[108], far_path[108];
    int listener;
    cutting_line *lines[MOST];
    int count;
    uint64_t number; /* number of connections so far */
} web;

static void address_of(struct sockaddr_un *address, const char *path)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
}

static int new_socket(composition *c)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    composition_check(c, fd >= 0);
    return fd;
}

static void listen_near(composition *c, web *w)
{
    struct sockaddr_un address;
    unlink(w->near_path);
    w->listener = new_socket(c);
    address_of(&address, w->near_path);
    composition_check(
        c, !bind(w->listener, (const struct sockaddr *)&address, sizeof address));
    composition_check(c, !listen(w->listener, MOST));
}

static web *web_of(composition *c)
{
    web *w = c->carried;
    if (w)
        return w;
    w = c->carried = calloc(1, sizeof *w);
    snprintf(w->near_path, sizeof w->near_path, "%s.near", c->path);
    snprintf(w->far_path, sizeof w->far_path, "%s.far", c->path);
    w->options = (cutting_options){.seed = c->seed,
                                   .piece_max = c->plan.piece,
                                   .room = c->plan.room < 64 ? 64 : c->plan.room};
    listen_near(c, w);
    return w;
}

/* ---- the ends ---- */

#define WHO "X-Who"

static segue_transport *open_web(composition *c, int person)
{
    segue_http_options options = SEGUE_HTTP_OPTIONS_INIT;
    segue_transport *transport;
    web *w = web_of(c);
    options.unix_socket = w->near_path;
    options.proxy = "";
    composition_check(c, segue_transport_http(c->client_runtime, "http://localhost/mcp",
                                              &options, &transport, NULL) == SEGUE_OK);
    composition_check(c, segue_transport_set_header(transport, WHO,
                                                    composition_people[person],
                                                    NULL) == SEGUE_OK);
    return transport;
}

static const char *whose(composition *c, segue_transport *transport)
{
    const char *name = segue_transport_header(transport, WHO);
    for (int i = 0; name && i < c->plan.people; i++)
        if (!strcmp(name, composition_people[i]))
            return composition_people[i];
    return NULL;
}

static void serve(composition *c)
{
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    segue_listener *listener = NULL;
    char address[128];
    web *w = web_of(c);
    snprintf(address, sizeof address, "unix:%s", w->far_path);
    options.address = address;
    options.max_replay_bytes = c->seed % 2 ? 2048 : 0; /* with 0 the server refuses
                                                        * streams */
    composition_check(c, segue_server_listen(c->server, &options, &listener, NULL) ==
                             SEGUE_OK);
    segue_listener_free(listener);
}

static void lose(composition *c)
{
    web *w = c->carried;
    if (!w || w->listener < 0)
        return;
    for (int i = 0; i < w->count; i++)
        cutting_line_free(w->lines[i]);
    w->count = 0;
    close(w->listener); /* a side that ends now cannot send its last messages */
    w->listener = -1;
}

/* ---- turns ---- */

static bool accept_one(composition *c, web *w)
{
    struct sockaddr_un address;
    if (w->count == MOST)
        return false;
    int near = accept4(w->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (near < 0)
        return false;
    int far = new_socket(c);
    address_of(&address, w->far_path);
    if (!c->server_runtime || c->dead ||
        connect(far, (const struct sockaddr *)&address, sizeof address)) {
        close(near);
        close(far);
        return true;
    }
    w->lines[w->count] =
        cutting_line_new(&w->options, ++w->number, near, far, true, c->clock_ms);
    composition_check(c, w->lines[w->count] != NULL);
    w->count++;
    return true;
}

static bool turn_line(composition *c, cutting_line *line)
{
    struct pollfd pair[2];
    uint64_t moved[2] = {0, 0};
    cutting_stage before = line->stage;
    cutting_line_wants(line, pair, c->clock_ms);
    poll(pair, 2, 0);
    if (c->dead)
        pair[1].revents = 0; /* what this end still sends is ignored */
    cutting_line_turn(line, pair, c->clock_ms, moved);
    for (int d = 0; d < 2; d++)
        if (cutting_line_at_cut(line, (cutting_direction)d)) {
            c->cuts_done++;
            cutting_line_cut(line, CUTTING_RST, false, c->clock_ms);
        }
    return moved[0] || moved[1] || line->stage != before;
}

static bool turn(composition *c)
{
    web *w = c->carried;
    if (w->listener < 0)
        listen_near(c, w);
    bool any = accept_one(c, w);
    for (int i = 0; i < w->count; i++) {
        any |= turn_line(c, w->lines[i]);
        if (w->lines[i]->stage == LINE_OVER) {
            cutting_line_free(w->lines[i]);
            w->lines[i--] = w->lines[--w->count];
        }
    }
    return any;
}

static void cut(composition *c)
{
    static const uint32_t reach[] = {1, 100, 1000, 10000};
    web *w = c->carried;
    if (!w->count)
        return;
    cutting_line *line = w->lines[dice_roll(&c->dice, (uint32_t)w->count)];
    cutting_half *half = &line->halves[dice_once_in(&c->dice, 3) ? 0 : 1];
    half->cut_at = half->passed + 1 + dice_roll(&c->dice, reach[dice_roll(&c->dice, 4)]);
}

static void end(composition *c)
{
    web *w = c->carried;
    lose(c);
    unlink(w->near_path);
    unlink(w->far_path);
    free(w);
    c->carried = NULL;
}

const carrier carrier_web = {open_web, whose, serve, lose, turn, cut, end};
