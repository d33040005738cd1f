/* One connection through the cutting proxy: two sockets, two directions, and the ways to
 * break them. Knows no thread and no listening socket; cutting_proxy.c polls and calls.
 * All calls come from one thread, with its clock in milliseconds. */
#ifndef CUTTING_LINE_H
#define CUTTING_LINE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "support/cutting_proxy.h"

#define CUTTING_NEVER INT64_MAX

/* What goes one way. */
typedef struct cutting_half {
    char *bytes; /* read and not yet written; `room` of them */
    size_t start, len;
    uint64_t passed; /* bytes written to the other side */
    uint64_t cut_at; /* `passed` never goes beyond; UINT64_MAX = no cut is planned */
    uint64_t random;
    size_t piece; /* what is left of the present piece */
    int64_t due;  /* nothing is written before */
    bool ended;   /* nothing more will be read */
    bool broken;  /* by a reset, not by a FIN */
    bool shut;    /* the end was passed on */
} cutting_half;

typedef enum cutting_stage {
    LINE_CONNECTING = 0, /* to the target */
    LINE_OPEN,
    LINE_RESETTING, /* a reset waits for the bytes before it to leave */
    LINE_ENDING,    /* a FIN went both ways, what still comes is thrown away */
    LINE_SILENT,
    LINE_OVER /* both sockets are closed */
} cutting_stage;

typedef struct cutting_line {
    TAILQ_ENTRY(cutting_line) link;
    const cutting_options *options;
    uint64_t number;
    cutting_stage stage;
    int fds[2];    /* [d] is where direction d comes from: client, target */
    bool hung[2];  /* poll has told the end of a socket of which nothing is wanted */
    int64_t until; /* RESETTING, ENDING: patience ends */
    size_t most_held;
    cutting_half halves[2];
} cutting_line;

/* A well-mixed number made of three. */
uint64_t cutting_mix(uint64_t seed, uint64_t number, uint64_t purpose);

/* Takes both sockets, which must not block; connected tells about the target's. NULL when
 * there is no memory: the sockets are still the caller's. */
cutting_line *cutting_line_new(const cutting_options *options, uint64_t number,
                               int client, int target, bool connected, int64_t now);
/* Closes what is open. */
void cutting_line_free(cutting_line *line);

/* Fills in what to poll for; returns the time at which it wants its turn in any case. */
int64_t cutting_line_wants(const cutting_line *line, struct pollfd pair[2], int64_t now);
/* Moves bytes after a poll; adds what was written to moved[direction]. */
void cutting_line_turn(cutting_line *line, const struct pollfd pair[2], int64_t now,
                       uint64_t moved[2]);

/* A cut is planned in the direction and its byte has been written. */
bool cutting_line_at_cut(const cutting_line *line, cutting_direction direction);
/* Breaks it. Patient: a reset comes behind all bytes that were written. False when there
 * is nothing left to break. */
bool cutting_line_cut(cutting_line *line, cutting_how how, bool patient, int64_t now);

#endif
