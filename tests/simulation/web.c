/* The network over HTTP, on real sockets. Each client connects to a Unix socket of its
 * own. The run joins each of its connections to a server that the balancer chooses,
 * through a cutting_line. All sockets are polled on the thread of the run, without
 * waiting: what one end has written the other end can read at once. */
#include "simulation/web.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST 64 /* maximum number of connections at once */
#define WHO "X-Who"

/* The server's end of a connection whose client has gone. What the server sends there
 * vanishes. */
typedef struct ghost {
    int fd;
    const sim_server *server;
    int64_t until;
} ghost;

typedef struct web {
    cutting_options options;
    int listeners[SIM_CLIENTS]; /* -1 = closed */
    sim_joined lines[MOST];
    int count;
    ghost ghosts[MOST];
    int ghost_count;
    uint64_t number; /* number of connections so far */
} web;

static void near_path(const sim_client *client, char out[108])
{
    snprintf(out, 108, "%s.near%d", client->s->path, client->index);
}

static void far_path(const sim_server *server, char out[108])
{
    snprintf(out, 108, "%s.far%d", server->s->path, server->index);
}

static void address_of(struct sockaddr_un *address, const char *path)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
}

static int new_socket(sim *s)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sim_check(s, fd >= 0);
    return fd;
}

static web *web_of(sim *s)
{
    web *w = s->carried;
    if (w)
        return w;
    w = s->carried = calloc(1, sizeof *w);
    size_t room = (size_t)sim_planned(s, SIM_room);
    w->options = (cutting_options){.seed = s->seed,
                                   .piece_max = (uint32_t)sim_planned(s, SIM_piece),
                                   .room = (uint32_t)(room < 64 ? 64 : room)};
    for (int i = 0; i < SIM_CLIENTS; i++)
        w->listeners[i] = -1;
    return w;
}

static void listen_near(sim_client *client)
{
    struct sockaddr_un address;
    char path[108];
    web *w = web_of(client->s);
    near_path(client, path);
    unlink(path);
    int fd = w->listeners[client->index] = new_socket(client->s);
    address_of(&address, path);
    sim_check(client->s, !bind(fd, (const struct sockaddr *)&address, sizeof address));
    sim_check(client->s, !listen(fd, MOST));
}

/* ---- the ends ---- */

static segue_transport *open_web(sim_client *client)
{
    segue_http_options options = SEGUE_HTTP_OPTIONS_INIT;
    segue_transport *transport;
    char path[108];
    near_path(client, path);
    listen_near(client);
    options.unix_socket = path;
    options.proxy = "";
    sim_check(client->s, segue_transport_http(client->runtime, "http://localhost/mcp",
                                              &options, &transport, NULL) == SEGUE_OK);
    sim_check(client->s, segue_transport_set_header(transport, WHO, client->person,
                                                    NULL) == SEGUE_OK);
    return transport;
}

static const char *whose(sim_server *server, segue_transport *transport)
{
    const char *name = segue_transport_header(transport, WHO);
    for (int i = 0; name && i < sim_planned(server->s, SIM_people); i++)
        if (!strcmp(name, composition_people[i]))
            return composition_people[i];
    return NULL;
}

static void serve(sim_server *server)
{
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    segue_listener *listener = NULL;
    char path[108], address[128];
    far_path(server, path);
    snprintf(address, sizeof address, "unix:%s", path);
    options.address = address;
    options.max_replay_bytes = sim_planned(server->s, SIM_replay);
    sim_check(server->s,
              segue_server_listen(server->server, &options, &listener, NULL) == SEGUE_OK);
    segue_listener_free(listener);
}

static void drop(web *w, int i)
{
    cutting_line_free(w->lines[i].line);
    w->lines[i] = w->lines[--w->count];
}

static void end_ghost(web *w, int i)
{
    close(w->ghosts[i].fd);
    w->ghosts[i] = w->ghosts[--w->ghost_count];
}

static void lose_server(sim_server *server)
{
    web *w = web_of(server->s);
    for (int i = w->ghost_count - 1; i >= 0; i--)
        if (w->ghosts[i].server == server)
            end_ghost(w, i);
    for (int i = w->count - 1; i >= 0; i--)
        if (w->lines[i].server == server)
            drop(w, i);
}

static void lose_client(sim_client *client)
{
    web *w = web_of(client->s);
    for (int i = w->count - 1; i >= 0; i--)
        if (w->lines[i].client == client)
            drop(w, i);
    if (w->listeners[client->index] >= 0)
        close(w->listeners[client->index]);
    w->listeners[client->index] = -1;
}

/* ---- turns ---- */

static bool accept_one(sim_client *client)
{
    struct sockaddr_un address;
    char path[108];
    sim *s = client->s;
    web *w = s->carried;
    if (w->count == MOST || w->listeners[client->index] < 0)
        return false;
    int near =
        accept4(w->listeners[client->index], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (near < 0)
        return false;
    sim_server *server = sim_balance(client);
    int far = new_socket(s);
    if (server)
        far_path(server, path);
    if (server)
        address_of(&address, path);
    if (!server || connect(far, (const struct sockaddr *)&address, sizeof address)) {
        close(near);
        close(far);
        return true;
    }
    sim_joined *one = &w->lines[w->count++];
    *one = (sim_joined){.client = client, .server = server};
    one->line = cutting_line_new(&w->options, ++w->number, near, far, true, s->now_ms);
    sim_check(s, one->line != NULL);
    return true;
}

/* Shows in a trace what the line is about to read, without the line breaks. A trace does
 * not change the run. */
static void trace_line(const sim *s, const sim_joined *one, const struct pollfd pair[2])
{
    char bytes[2000];
    const cutting_line *line = one->line;
    for (int d = 0; s->trace && d < 2; d++) {
        const cutting_half *half = &line->halves[d];
        size_t room = line->options->room - half->len;
        if (!(pair[d].revents & POLLIN) || !room)
            continue;
        ssize_t n = recv(line->fds[d], bytes, room < sizeof bytes ? room : sizeof bytes,
                         MSG_PEEK);
        for (ssize_t i = 0; i < n; i++)
            bytes[i] = bytes[i] == '\r' || bytes[i] == '\n' ? ' ' : bytes[i];
        if (n > 0)
            fprintf(s->trace, "%llu %lld %s client%d server%d line%llu %.*s\n",
                    (unsigned long long)s->turns, (long long)s->now_ms, d ? "<-" : "->",
                    one->client->index, one->server->index,
                    (unsigned long long)line->number, (int)n, bytes);
    }
}

static bool turn_line(sim *s, sim_joined *one)
{
    struct pollfd pair[2];
    uint64_t moved[2] = {0, 0};
    cutting_line *line = one->line;
    cutting_stage before = line->stage;
    if (one->hole_until && s->now_ms < one->hole_until)
        return false;
    if (one->hole_until)
        cutting_line_cut(line, CUTTING_RST, false, s->now_ms);
    one->hole_until = 0;
    cutting_line_wants(line, pair, s->now_ms);
    poll(pair, 2, 0);
    if (one->server->is_dead)
        pair[1].revents = 0; /* what this end still sends is ignored */
    sim_gateway_turn(s, one, pair);
    trace_line(s, one, pair);
    cutting_line_turn(line, pair, s->now_ms, moved);
    for (int d = 0; d < 2; d++)
        if (cutting_line_at_cut(line, (cutting_direction)d)) {
            sim_fault(s, "cut");
            cutting_line_cut(line, CUTTING_RST, false, s->now_ms);
        }
    return moved[0] || moved[1] || line->stage != before;
}

/* One call asks all listeners whether somebody connects. */
static bool accept_all(sim *s)
{
    struct pollfd all[SIM_CLIENTS];
    const web *w = s->carried;
    bool any = false;
    for (int i = 0; i < SIM_CLIENTS; i++)
        all[i] = (struct pollfd){.fd = w->listeners[i], .events = POLLIN};
    if (poll(all, SIM_CLIENTS, 0) <= 0)
        return false;
    for (int i = 0; i < SIM_CLIENTS; i++)
        if (all[i].revents)
            any |= accept_one(&s->clients[i]);
    return any;
}

static bool turn_ghosts(sim *s)
{
    web *w = web_of(s);
    char bytes[4096];
    bool any = false;
    for (int i = w->ghost_count - 1; i >= 0; i--) {
        ssize_t n = recv(w->ghosts[i].fd, bytes, sizeof bytes, 0);
        any |= n > 0;
        if (n == 0 || s->now_ms >= w->ghosts[i].until)
            end_ghost(w, i);
    }
    return any;
}

static bool turn(sim *s)
{
    web *w = web_of(s);
    bool any = accept_all(s) | turn_ghosts(s);
    for (int i = 0; i < w->count; i++) {
        any |= turn_line(s, &w->lines[i]);
        if (w->lines[i].line->stage == LINE_OVER)
            drop(w, i--);
    }
    return any;
}

static void cut(sim *s, bool hole)
{
    static const uint32_t reach[] = {1, 100, 1000, 10000};
    web *w = web_of(s);
    if (!w->count)
        return;
    sim_joined *one = &w->lines[dice_roll(&s->dice, (uint32_t)w->count)];
    cutting_half *half = &one->line->halves[dice_once_in(&s->dice, 3) ? 0 : 1];
    if (hole) {
        sim_fault(s, "cut");
        one->hole_until = s->now_ms + 1 + dice_roll(&s->dice, 20000);
    } else {
        half->cut_at =
            half->passed + 1 + dice_roll(&s->dice, reach[dice_roll(&s->dice, 4)]);
    }
}

/* The client's end of a connection breaks, and the server's end stays open for a
 * while. */
void sim_web_haunt(sim *s)
{
    web *w = web_of(s);
    if (!w->count || w->ghost_count == MOST)
        return;
    sim_joined *one = &w->lines[dice_roll(&s->dice, (uint32_t)w->count)];
    int64_t until = s->now_ms + 1 + dice_roll(&s->dice, 20000);
    if (one->line->stage != LINE_OPEN)
        return;
    int fd = dup(one->line->fds[1]);
    sim_check(s, fd >= 0);
    sim_fault(s, "cut");
    w->ghosts[w->ghost_count++] =
        (ghost){.fd = fd, .server = one->server, .until = until};
    cutting_line_cut(one->line, CUTTING_RST, false, s->now_ms);
}

static void end(sim *s)
{
    web *w = web_of(s);
    char path[108];
    while (w->ghost_count)
        end_ghost(w, 0);
    for (int i = 0; i < SIM_CLIENTS; i++) {
        lose_client(&s->clients[i]);
        near_path(&s->clients[i], path);
        unlink(path);
    }
    for (int i = 0; i < SIM_SERVERS; i++) {
        far_path(&s->servers[i], path);
        unlink(path);
    }
    free(w);
    s->carried = NULL;
}

const sim_carrier sim_web = {open_web,    whose, serve, lose_server,
                             lose_client, turn,  cut,   end};
