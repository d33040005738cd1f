/* CONNECTING -> OPEN -> OVER when both directions have ended, or by a cut
 *                   \-> RESETTING -> OVER      the bytes before the cut have left
 *                   \-> ENDING -> OVER         both peers have closed, or time is up
 *                   \-> SILENT -> OVER         both peers have closed
 *
 * Back-pressure: a direction reads only while its buffer has room. A reader that stops
 * makes the writer stop, with `room` bytes in between.
 *
 * How ends are passed on: a FIN is sent after the bytes before it. A reset that a read
 * reports is also sent after the bytes before it. A reset that a write reports, or that
 * shows while nothing is read, breaks the other direction, or both.
 *
 * A socket that is closed with unread bytes sends a reset in place of a FIN. So a FIN cut
 * shuts down for writing, then continues to read for LINGER_MS. A reset drops written
 * bytes that have not left yet, which would move the cut. So a reset waits for those
 * bytes, at most for LINGER_MS. */
#include "support/cutting_line.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_MS 2000
#define LOOK_AGAIN_MS 1

uint64_t cutting_mix(uint64_t seed, uint64_t number, uint64_t purpose)
{
    const uint64_t parts[] = {seed, number, purpose};
    uint64_t x = 0;
    for (size_t i = 0; i < 3; i++) {
        x = (x ^ parts[i]) + 0x9e3779b97f4a7c15u; /* splitmix64 */
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return x;
}

cutting_line *cutting_line_new(const cutting_options *options, uint64_t number,
                               int client, int target, bool connected, int64_t now)
{
    cutting_line *line = calloc(1, sizeof *line);
    char *bytes = malloc(2 * options->room);
    if (!line || !bytes) {
        free(line);
        free(bytes);
        return NULL;
    }
    line->options = options;
    line->number = number;
    line->stage = connected ? LINE_OPEN : LINE_CONNECTING;
    line->fds[CUTTING_UP] = client;
    line->fds[CUTTING_DOWN] = target;
    for (uint64_t d = 0; d < 2; d++)
        line->halves[d] = (cutting_half){.bytes = bytes + d * options->room,
                                         .cut_at = UINT64_MAX,
                                         .random = cutting_mix(options->seed, number, d),
                                         .due = now};
    return line;
}

static void close_sockets(cutting_line *line, bool reset)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    for (int side = 0; side < 2; side++) {
        if (line->fds[side] < 0)
            continue;
        if (reset)
            setsockopt(line->fds[side], SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(line->fds[side]);
        line->fds[side] = -1;
    }
    line->stage = LINE_OVER;
}

void cutting_line_free(cutting_line *line)
{
    close_sockets(line, false);
    free(line->halves[0].bytes);
    free(line);
}

/* ---- what to poll for ---- */

static bool may_read(const cutting_line *line, int d)
{
    const cutting_half *half = &line->halves[d];
    if (line->stage == LINE_ENDING)
        return !half->ended;
    return line->stage == LINE_OPEN && !half->ended && half->len < line->options->room;
}

static bool may_write(const cutting_line *line, int d, int64_t now)
{
    const cutting_half *half = &line->halves[d];
    return line->stage == LINE_OPEN && half->len && half->passed < half->cut_at &&
           half->due <= now;
}

int64_t cutting_line_wants(const cutting_line *line, struct pollfd pair[2], int64_t now)
{
    int64_t at = CUTTING_NEVER;
    for (int side = 0; side < 2; side++) {
        short events = 0;
        if (may_read(line, side))
            events |= POLLIN;
        if (may_write(line, !side, now))
            events |= POLLOUT;
        if (line->stage == LINE_CONNECTING && side == CUTTING_DOWN)
            events |= POLLOUT;
        if (line->stage == LINE_SILENT)
            events |= POLLRDHUP;
        bool idle = !(events & ~POLLRDHUP) && line->hung[side];
        pair[side] = (struct pollfd){.fd = idle ? -1 : line->fds[side], .events = events};
    }
    if (line->stage == LINE_RESETTING)
        return now + LOOK_AGAIN_MS;
    if (line->stage == LINE_ENDING)
        return line->until;
    for (int d = 0; d < 2; d++) {
        const cutting_half *half = &line->halves[d];
        if (line->stage == LINE_OPEN && half->len && half->due > now && half->due < at)
            at = half->due;
    }
    return at;
}

/* ---- bytes ---- */

/* On a slow line, bytes wait when they arrive at an empty buffer or when a write leaves
 * them. */
static void put_off(const cutting_line *line, cutting_half *half, int64_t now)
{
    half->due = now + line->options->delay_ms;
}

static void read_half(cutting_line *line, int d, int64_t now)
{
    cutting_half *half = &line->halves[d];
    size_t room = line->options->room, end = (half->start + half->len) % room;
    size_t n = end < half->start ? half->start - end : room - end;
    ssize_t got = recv(line->fds[d], half->bytes + end, n, 0);
    if (got > 0) {
        if (!half->len)
            put_off(line, half, now);
        half->len += (size_t)got;
        if (half->len > line->most_held)
            line->most_held = half->len;
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        half->ended = true;
        half->broken = half->broken || got < 0;
    }
}

/* Returns how many bytes may be written now. The generator alone determines where the
 * next piece ends, however many of its bytes have arrived. */
static size_t writable(const cutting_line *line, cutting_half *half)
{
    size_t room = line->options->room, most = line->options->piece_max;
    size_t n = half->start + half->len > room ? room - half->start : half->len;
    if (most && !half->piece) {
        half->random = cutting_mix(half->random, 0, 0);
        half->piece = 1 + half->random % most;
    }
    if (most && n > half->piece)
        n = half->piece;
    if (n > half->cut_at - half->passed)
        n = (size_t)(half->cut_at - half->passed);
    return n;
}

/* Writes one piece. A thread that waits for the piece reads it before the next piece
 * arrives. */
static uint64_t write_half(cutting_line *line, int d, int64_t now)
{
    cutting_half *half = &line->halves[d];
    size_t n = writable(line, half);
    ssize_t put = send(line->fds[!d], half->bytes + half->start, n, MSG_NOSIGNAL);
    if (put > 0) {
        half->start = (half->start + (size_t)put) % line->options->room;
        half->len -= (size_t)put;
        half->start = half->len ? half->start : 0;
        half->passed += (uint64_t)put;
        half->piece -= line->options->piece_max ? (size_t)put : 0;
        put_off(line, half, now);
        return (uint64_t)put;
    }
    if (put < 0 && errno != EAGAIN && errno != EINTR) {
        half->len = 0;
        half->ended = half->shut = true;
        line->halves[!d].broken = true;
    }
    return 0;
}

/* ---- turns ---- */

static void pass_ends(cutting_line *line)
{
    for (int d = 0; d < 2; d++) {
        cutting_half *half = &line->halves[d];
        if (!half->ended || half->len || half->shut)
            continue;
        if (half->broken) {
            close_sockets(line, true);
            return;
        }
        shutdown(line->fds[!d], SHUT_WR);
        half->shut = true;
    }
    if (line->halves[0].shut && line->halves[1].shut)
        close_sockets(line, line->halves[0].broken || line->halves[1].broken);
}

static void note_ends(cutting_line *line, const struct pollfd pair[2])
{
    for (int side = 0; side < 2; side++) {
        bool wanted = pair[side].events & (POLLIN | POLLOUT);
        if (line->stage == LINE_OPEN && !wanted && (pair[side].revents & POLLERR)) {
            close_sockets(line, true);
            return;
        }
        if (pair[side].revents & (POLLHUP | POLLRDHUP | POLLERR))
            line->hung[side] = true;
    }
}

static void turn_open(cutting_line *line, const struct pollfd pair[2], int64_t now,
                      uint64_t moved[2])
{
    for (int d = 0; d < 2; d++) {
        const short ready = POLLIN | POLLHUP | POLLERR;
        if (may_read(line, d) && (pair[d].revents & ready))
            read_half(line, d, now);
        if (may_write(line, d, now))
            moved[d] += write_half(line, d, now);
    }
    pass_ends(line);
}

static void turn_connecting(cutting_line *line, const struct pollfd pair[2])
{
    int fault = 0;
    socklen_t size = sizeof fault;
    if (!(pair[CUTTING_DOWN].revents & (POLLOUT | POLLERR | POLLHUP)))
        return;
    getsockopt(line->fds[CUTTING_DOWN], SOL_SOCKET, SO_ERROR, &fault, &size);
    if (fault)
        close_sockets(line, true);
    else
        line->stage = LINE_OPEN;
}

static void turn_ending(cutting_line *line, int64_t now)
{
    char waste[4096];
    for (int d = 0; d < 2; d++) {
        ssize_t got = recv(line->fds[d], waste, sizeof waste, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            line->halves[d].ended = true;
    }
    if ((line->halves[0].ended && line->halves[1].ended) || now >= line->until)
        close_sockets(line, false);
}

/* qemu has no SIOCOUTQNSD. SIOCOUTQ also counts what is sent and not acknowledged. */
static bool has_unsent(int fd)
{
    int count = 0;
    bool counted = !ioctl(fd, SIOCOUTQNSD, &count) || !ioctl(fd, SIOCOUTQ, &count);
    return counted && count > 0;
}

static void turn_resetting(cutting_line *line, int64_t now)
{
    if ((!has_unsent(line->fds[0]) && !has_unsent(line->fds[1])) || now >= line->until)
        close_sockets(line, true);
}

void cutting_line_turn(cutting_line *line, const struct pollfd pair[2], int64_t now,
                       uint64_t moved[2])
{
    note_ends(line, pair);
    if (line->stage == LINE_CONNECTING)
        turn_connecting(line, pair);
    else if (line->stage == LINE_OPEN)
        turn_open(line, pair, now, moved);
    else if (line->stage == LINE_RESETTING)
        turn_resetting(line, now);
    else if (line->stage == LINE_ENDING)
        turn_ending(line, now);
    else if (line->stage == LINE_SILENT && line->hung[0] && line->hung[1])
        close_sockets(line, false);
}

/* ---- cuts ---- */

bool cutting_line_at_cut(const cutting_line *line, cutting_direction direction)
{
    const cutting_half *half = &line->halves[direction];
    return line->stage == LINE_OPEN && half->passed >= half->cut_at;
}

bool cutting_line_cut(cutting_line *line, cutting_how how, bool patient, int64_t now)
{
    bool carries = line->stage == LINE_CONNECTING || line->stage == LINE_OPEN ||
                   line->stage == LINE_SILENT;
    if (line->stage == LINE_OVER)
        return false;
    if (how == CUTTING_RST) {
        line->stage = LINE_RESETTING;
        line->until = patient ? now + LINGER_MS : now;
        turn_resetting(line, now);
    } else if (!carries) {
        return false;
    } else if (how == CUTTING_SILENCE) {
        line->stage = LINE_SILENT;
    } else if (line->stage == LINE_CONNECTING) {
        close_sockets(line, false);
    } else {
        for (int d = 0; d < 2; d++) {
            shutdown(line->fds[d], SHUT_WR);
            line->halves[d].ended = false;
        }
        line->stage = LINE_ENDING;
        line->until = now + LINGER_MS;
    }
    return carries;
}
