/* The network as pipes: each client has one connection to a server, which a balancer
 * chooses when it is opened. Whole messages of
 * the server may be repeated, or moved behind the next message, if the row says that its
 * client accepts this. Bytes arrive in pieces, as fast as the reader reads, and end at
 * the byte where the connection breaks. */
#include "simulation/sim.h"

#include <stdlib.h>
#include <string.h>

#define UP 0 /* from client to server */
#define DOWN 1

typedef struct way {
    char *bytes;
    size_t len, cap;
    size_t until_cut; /* bytes until the cut; SIZE_MAX = no cut is due */
    bool blocked;     /* the sender waits for room */
} way;

/* The server's end of one connection; its transport may outlive the connection. */
typedef struct far_end {
    struct line *line; /* NULL = the connection is lost */
    segue_transport *transport;
} far_end;

typedef struct line {
    sim *s;
    sim_client *client;
    sim_server *server; /* the server at the far end; NULL = none */
    segue_transport *near;
    far_end *far;
    bool open;   /* the client's end is open */
    bool drains; /* the client's end still reads what was written before the server's end
                  * was lost */
    int64_t hole_until; /* bytes vanish until this time, then the connection breaks */
    way ways[2];
    char *part; /* an incomplete message of the server */
    size_t part_len, part_cap;
    char *held; /* a message that the next message overtakes */
    size_t held_len;
} line;

static void append(char **bytes, size_t *len, size_t *cap, const char *more, size_t n)
{
    if (*len + n > *cap) {
        *cap = (*len + n) * 2;
        *bytes = realloc(*bytes, *cap);
    }
    memcpy(*bytes + *len, more, n);
    *len += n;
}

static void put(line *l, int direction, const char *bytes, size_t n)
{
    way *w = &l->ways[direction];
    append(&w->bytes, &w->len, &w->cap, bytes, n);
}

/* ---- messages of the server ---- */

static bool is_loose(const line *l, const char *text, size_t n)
{
    static const char first[] = "\"task\":{"; /* this message names the task, so no
                                               * message may be moved before it */
    const char *loose = sim_row(&l->s->plan)->loose;
    return loose && memmem(text, n, loose, strlen(loose)) &&
           !memmem(text, n, first, sizeof first - 1);
}

static void release_held(line *l)
{
    if (l->held)
        put(l, DOWN, l->held, l->held_len);
    free(l->held);
    l->held = NULL;
}

/* Returns whether this is the last message of SEP-1905. The last message need not have a
 * number, so the client would not miss a message that it overtook. */
static bool is_last(const char *text, size_t n)
{
    static const char last[] = "\"isComplete\":true";
    return memmem(text, n, last, sizeof last - 1) != NULL;
}

static void pass_message(line *l, const char *text, size_t n)
{
    sim_note(l->s, "<-", text, n);
    bool loose = is_loose(l, text, n);
    if (is_last(text, n))
        release_held(l);
    else if (loose && !l->held &&
             dice_once_in(&l->s->line_dice, (uint32_t)sim_planned(l->s, SIM_reorders))) {
        l->held = malloc(n);
        memcpy(l->held, text, n);
        l->held_len = n;
        return;
    }
    put(l, DOWN, text, n);
    if (loose && dice_once_in(&l->s->line_dice, (uint32_t)sim_planned(l->s, SIM_repeats)))
        put(l, DOWN, text, n);
    if (loose)
        release_held(l);
}

static void pass_bytes(line *l, const char *bytes, size_t n)
{
    append(&l->part, &l->part_len, &l->part_cap, bytes, n);
    size_t at = 0;
    char *end;
    while ((end = memchr(l->part + at, '\n', l->part_len - at))) {
        size_t len = (size_t)(end + 1 - (l->part + at));
        size_t left = sim_leave_gap(l->s, l->part + at, len);
        if (left)
            pass_message(l, l->part + at, left);
        at += len;
    }
    if (at)
        memmove(l->part, l->part + at, l->part_len - at);
    l->part_len -= at;
}

/* ---- the ends ---- */

static size_t room_of(const line *l, int direction)
{
    const way *w = &l->ways[direction];
    size_t room = (size_t)sim_planned(l->s, SIM_room);
    return w->len < room ? room - w->len : 0;
}

static int count_messages(const char *bytes, size_t n)
{
    int count = 0;
    for (size_t i = 0; i < n; i++)
        count += bytes[i] == '\n';
    return count;
}

static void begin(void *self, segue_transport *transport)
{
    (void)self;
    (void)transport;
}

static size_t near_send(void *self, const char *bytes, size_t len)
{
    line *l = self;
    size_t n = room_of(l, UP) < len ? room_of(l, UP) : len;
    if (!l->open || l->drains)
        return len; /* no server reads these bytes */
    put(l, UP, bytes, n);
    sim_note(l->s, "->", bytes, n);
    sim_client_sends(l->client, count_messages(bytes, n));
    l->ways[UP].blocked = n < len;
    return n;
}

static size_t far_send(void *self, const char *bytes, size_t len)
{
    line *l = ((far_end *)self)->line;
    if (!l || !l->server || l->server->is_dead)
        return len;
    size_t n = room_of(l, DOWN) < len ? room_of(l, DOWN) : len;
    pass_bytes(l, bytes, n);
    l->ways[DOWN].blocked = n < len;
    return n;
}

static void forget(line *l)
{
    for (int d = 0; d < 2; d++) {
        l->ways[d].len = 0;
        l->ways[d].blocked = false;
        l->ways[d].until_cut = SIZE_MAX;
    }
    l->part_len = 0;
    l->drains = false;
    l->hole_until = 0;
    free(l->held);
    l->held = NULL;
}

static void lose_far(line *l)
{
    far_end *far = l->far;
    l->far = NULL;
    if (!far)
        return;
    far->line = NULL;
    sim_child_hang_up(l->server);
    l->server = NULL;
    segue_transport_closed(far->transport);
}

static void lose_near(line *l)
{
    if (!l->open)
        return;
    l->open = false;
    segue_transport_closed(l->near);
}

static void hang_up(line *l)
{
    sim_note(l->s, "--", "cut", 3);
    forget(l);
    lose_far(l);
    lose_near(l);
}

/* Breaks the connection from the server. Bytes that were written to a pipe are read even
 * when the writer is gone, so they count as delivered (R-975-17). */
static void break_up(line *l)
{
    bool drains = sim_row(&l->s->plan)->flags & ROW_LASTS && l->open && l->ways[DOWN].len;
    size_t written = l->ways[DOWN].len;
    if (!drains) {
        hang_up(l);
        return;
    }
    forget(l);
    l->drains = true;
    l->ways[DOWN].len = written;
    lose_far(l);
}

static void near_close(void *self)
{
    line *l = self;
    hang_up(l);
}

static void far_close(void *self)
{
    far_end *far = self;
    if (far->line)
        break_up(far->line);
    else
        segue_transport_closed(far->transport);
}

static void near_gone(void *self)
{
    line *l = self;
    l->open = false;
    l->near = NULL;
    forget(l);
    lose_far(l);
}

/* Detaches the transport from its line, whether it was attached or not. */
static void far_gone(void *self)
{
    far_end *far = self;
    if (far->line)
        far->line->far = NULL;
    free(far);
}

/* Opens a connection to the server. A server that has closed refuses it. */
static void connect_far(line *l, sim_server *server)
{
    segue_transport_vtable vtable = SEGUE_TRANSPORT_VTABLE_INIT;
    far_end *far = calloc(1, sizeof *far);
    far->line = l;
    vtable.start = begin;
    vtable.send = far_send;
    vtable.close = far_close;
    vtable.free = far_gone;
    sim_check(l->s, segue_transport_custom(server->runtime, &vtable, far,
                                           &far->transport) == SEGUE_OK);
    l->far = far;
    l->server = server;
    sim_check(l->s,
              segue_server_attach(server->server, far->transport, NULL) == SEGUE_OK);
}

static int32_t reopen(void *self)
{
    ((line *)self)->open = true;
    return 0;
}

/* ---- the carrier ---- */

static line *lines_of(const sim *s)
{
    return s->carried;
}

static segue_transport *open_line(sim_client *client)
{
    segue_transport_vtable vtable = SEGUE_TRANSPORT_VTABLE_INIT;
    sim *s = client->s;
    if (!s->carried)
        s->carried = calloc(SIM_CLIENTS, sizeof(line));
    line *l = &lines_of(s)[client->index];
    l->s = s;
    l->client = client;
    forget(l);
    vtable.start = begin;
    vtable.send = near_send;
    vtable.close = near_close;
    vtable.reopen = reopen;
    vtable.free = near_gone;
    sim_check(s,
              segue_transport_custom(client->runtime, &vtable, l, &l->near) == SEGUE_OK);
    l->open = true;
    return l->near;
}

static void serve(sim_server *server)
{
    (void)server; /* a transport that sends something is connected */
}

static const char *whose(sim_server *server, segue_transport *transport)
{
    const line *lines = lines_of(server->s);
    for (int i = 0; lines && i < SIM_CLIENTS; i++)
        if (lines[i].far && lines[i].far->transport == transport)
            return lines[i].client->person;
    return NULL;
}

static void lose_server(sim_server *server)
{
    line *lines = lines_of(server->s);
    for (int i = 0; lines && i < SIM_CLIENTS; i++)
        if (lines[i].s && lines[i].server == server)
            break_up(&lines[i]);
}

static void lose_client(sim_client *client)
{
    line *lines = lines_of(client->s);
    if (lines && lines[client->index].s)
        break_up(&lines[client->index]);
}

static bool tell_room(line *l, int direction)
{
    way *w = &l->ways[direction];
    if (!w->blocked || !room_of(l, direction) || l->drains)
        return false;
    w->blocked = false;
    segue_transport_writable(direction == UP ? l->near : l->far->transport);
    return true;
}

static bool move(line *l, int direction)
{
    way *w = &l->ways[direction];
    segue_transport *to = direction == UP ? l->far->transport : l->near;
    size_t n = 1 + dice_roll(&l->s->line_dice, (uint32_t)sim_planned(l->s, SIM_piece));
    if (n > w->len)
        n = w->len;
    if (n > w->until_cut)
        n = w->until_cut;
    if (n && segue_transport_feed(to, w->bytes, n) != SEGUE_OK)
        return false; /* no connection is accepted now */
    if (direction == UP)
        sim_child_reads(l->server, w->bytes, n);
    if (n)
        memmove(w->bytes, w->bytes + n, w->len - n);
    w->len -= n;
    if (w->until_cut != SIZE_MAX && !(w->until_cut -= n)) {
        sim_fault(l->s, "cut");
        break_up(l);
        return true;
    }
    return tell_room(l, direction) || n;
}

/* A connection that is half open: what is sent vanishes, and nobody notices. */
static bool turn_hole(line *l)
{
    if (l->s->now_ms < l->hole_until) {
        l->ways[UP].len = l->ways[DOWN].len = 0;
        return false;
    }
    l->hole_until = 0;
    hang_up(l);
    return true;
}

static bool connect(line *l)
{
    bool is_child = sim_planned(l->s, SIM_children);
    sim_server *server = is_child ? sim_child_start(l->client) : sim_balance(l->client);
    if (is_child && !server)
        return true; /* it can be started when the dead child is gone */
    if (!server)
        break_up(l); /* there is no server */
    else
        connect_far(l, server);
    return true;
}

/* Moves bytes of one line. slow: true = nothing moves this time. */
static bool turn_line(line *l, bool slow)
{
    bool any = false;
    if (!l->open)
        return false;
    if (l->drains) {
        if (!slow)
            move(l, DOWN);
        if (!l->ways[DOWN].len)
            hang_up(l);
        return true;
    }
    if (!l->far)
        return connect(l);
    if (l->hole_until)
        return turn_hole(l);
    if (slow)
        return l->ways[UP].len || l->ways[DOWN].len;
    if (l->held && !l->ways[DOWN].len)
        release_held(l); /* no later message can overtake the held message */
    if (!sim_is_paused(l->server))
        any = move(l, UP);
    if (l->far)
        any |= move(l, DOWN);
    return any;
}

static bool turn(sim *s)
{
    line *lines = lines_of(s);
    bool slow = dice_roll(&s->line_dice, (uint32_t)sim_planned(s, SIM_slowness));
    bool any = false;
    for (int i = 0; lines && i < sim_planned(s, SIM_clients); i++)
        any |= turn_line(&lines[i], slow);
    return any;
}

static void cut(sim *s, bool hole)
{
    line *lines = lines_of(s);
    line *l =
        lines ? &lines[dice_roll(&s->dice, (uint32_t)sim_planned(s, SIM_clients))] : NULL;
    static const uint32_t reach[] = {1, 10, 1000, 10000};
    int direction = dice_once_in(&s->dice, 3) ? UP : DOWN;
    if (!l || !l->open || !l->far)
        return;
    if (hole) {
        sim_fault(s, "cut");
        l->hole_until = s->now_ms + 1 + dice_roll(&s->dice, 20000);
    } else {
        l->ways[direction].until_cut =
            1 + dice_roll(&s->dice, reach[dice_roll(&s->dice, 4)]);
    }
}

static void end(sim *s)
{
    line *lines = lines_of(s);
    for (int i = 0; lines && i < SIM_CLIENTS; i++) {
        if (lines[i].s)
            forget(&lines[i]);
        for (int d = 0; d < 2; d++)
            free(lines[i].ways[d].bytes);
        free(lines[i].part);
    }
    free(lines);
    s->carried = NULL;
}

const sim_carrier sim_line = {open_line,   whose, serve, lose_server,
                              lose_client, turn,  cut,   end};
