/* What the files of the world share. world.c makes the server and moves time. wire.c has
 * what all wires have in common. Each place has a table of its own functions. One thread
 * uses all of these files. */
#ifndef WORLD_INSIDE_H
#define WORLD_INSIDE_H

#include <sys/types.h>

#include "support/tap.h"
#include "support/world.h"

#define WAIT_MS 120000 /* real time after which a message counts as lost */
#define QUIET_MS 1000

/* The functions by which a place carries lines. */
typedef struct wire_ops {
    void (*connect)(wire *c);
    void (*cut)(wire *c);
    void (*stall)(wire *c); /* called when c->stalled has changed */
    /* Sends one line with its newline, as the drive says. */
    void (*send)(wire *c, const char *text, size_t len);
    void (*feed)(wire *c, const char *bytes, size_t len);
    /* Reads what has arrived without a turn of the server; returns 0 when nothing has. */
    int (*look)(wire *c);
    /* Called when the server of the wire ends, or has ended. */
    void (*lose)(wire *c);
    void (*free)(wire *c);
} wire_ops;

extern const wire_ops wire_pair, wire_stdio, wire_http;

struct lane;

struct wire {
    wire *next;
    world *w;
    tap *tap;
    const wire_ops *ops;
    const char *principal;
    char *history; /* all lines received */
    size_t len, cap;
    size_t read_at; /* offset of the first line that was not yet taken in order */
    char **lines;   /* copies of lines, in order; taken ones are NULL */
    size_t count, taken;
    char **kept; /* texts given to the test */
    size_t kept_count;
    int closed;
    int stalled;

    segue_transport *transport; /* PAIR */
    int detached;

    pid_t child; /* STDIO */
    int to, from;

    struct lane *lanes; /* HTTP: connections */
    char *session;      /* Mcp-Session-Id of initialize and the version of the session */
    char *version;
    char *fed;            /* the beginning of an incomplete line */
    int status;           /* status of the last whole answer */
    char last_event[128]; /* id of the last event of any answer, "" = none */
    char after[128];      /* value of Last-Event-ID in later POSTs */
    size_t fed_len;
};

/* Takes received bytes of the server, which are lines of text. */
void wire_received(wire *c, const char *bytes, size_t len);
/* Frees what all wires have. */
void wire_free(wire *c);

int world_is_here(const world *w); /* the server runs in this process */
/* Returns whether the store is on a thread of its own and so answers in real time. */
int world_is_slow(const world *w);
int64_t world_real_ms(void);
/* STDIO: reads what has arrived and waits up to timeout_ms for more; returns 0 at the
 * end. */
int wire_stdio_read(wire *c, int timeout_ms);

#endif
