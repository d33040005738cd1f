/* One connection through the cutting proxy: two sockets, two directions, and the ways to
 * break them. A line knows no thread and no listening socket; cutting_proxy.c polls and
 * calls the line. All calls come from one thread and pass the time in milliseconds. */
#ifndef CUTTING_LINE_H
#define CUTTING_LINE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "support/cutting_proxy.h"

#define CUTTING_NEVER INT64_MAX

/* The bytes of one direction. */
typedef struct cutting_half {
    char *bytes; /* a buffer of `room` bytes, with bytes that were read and not yet
                  * written */
    size_t start, len;
    uint64_t passed; /* bytes written to the other side */
    uint64_t cut_at; /* the planned cut: `passed` never exceeds it; UINT64_MAX = no cut is
                      * planned */
    uint64_t random;
    size_t piece; /* bytes left of the current piece */
    int64_t due;  /* nothing is written before this time */
    bool ended;   /* nothing more will be read */
    bool broken;  /* the input ended by a reset, not by a FIN */
    bool shut;    /* the end of the input was passed on to the other side */
} cutting_half;

typedef enum cutting_stage {
    LINE_CONNECTING = 0, /* connecting to the target */
    LINE_OPEN,
    LINE_RESETTING, /* a reset waits until the bytes before it have left */
    LINE_ENDING,    /* a FIN went both ways; bytes that still come are dropped */
    LINE_SILENT,
    LINE_OVER /* both sockets are closed */
} cutting_stage;

typedef struct cutting_line {
    TAILQ_ENTRY(cutting_line) link;
    const cutting_options *options;
    uint64_t number;
    cutting_stage stage;
    int fds[2];    /* fds[d] is the source of direction d: client, target */
    bool hung[2];  /* poll reported the end of a socket that is not read or written */
    int64_t until; /* RESETTING, ENDING: the time at which the wait ends */
    size_t most_held;
    cutting_half halves[2];
} cutting_line;

/* Mixes three numbers into one. */
uint64_t cutting_mix(uint64_t seed, uint64_t number, uint64_t purpose);

/* Takes both sockets, which must not block; `connected` says whether the target's is
 * connected. Returns NULL when memory runs out: the caller then still owns the
 * sockets. */
cutting_line *cutting_line_new(const cutting_options *options, uint64_t number,
                               int client, int target, bool connected, int64_t now);
/* Frees the line and closes its open sockets. */
void cutting_line_free(cutting_line *line);

/* Fills in the events to poll for. Returns the time of the line's next turn if poll
 * reports nothing. */
int64_t cutting_line_wants(const cutting_line *line, struct pollfd pair[2], int64_t now);
/* Moves bytes after a poll; adds the number of written bytes to moved[direction]. */
void cutting_line_turn(cutting_line *line, const struct pollfd pair[2], int64_t now,
                       uint64_t moved[2]);

/* Returns true when a cut is planned in the direction and its byte has been written. */
bool cutting_line_at_cut(const cutting_line *line, cutting_direction direction);
/* Cuts the line. With `patient` a reset waits for all bytes that were written. Returns
 * false when there is nothing left to cut. */
bool cutting_line_cut(cutting_line *line, cutting_how how, bool patient, int64_t now);

#endif
