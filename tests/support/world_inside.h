/* The stage behind its curtain: what the files of the world share. world.c makes the
 * server and moves time, wire.c is what all wires have in common, and each place brings
 * a table of what differs. One thread. */
#ifndef WORLD_INSIDE_H
#define WORLD_INSIDE_H

#include <sys/types.h>

#include "support/tap.h"
#include "support/world.h"

#define WAIT_MS 120000 /* of real time, before a message counts as lost */
#define QUIET_MS 1000

/* How a place carries lines. */
typedef struct wire_ops {
    void (*connect)(wire *c);
    void (*cut)(wire *c);
    void (*stall)(wire *c); /* c->stalled has changed */
    /* One line with its end, as the drive says. */
    void (*send)(wire *c, const char *text, size_t len);
    void (*feed)(wire *c, const char *bytes, size_t len);
    /* Reads what is there without the server's doing; 0 when nothing was. */
    int (*look)(wire *c);
    /* The server behind it ends now, or has ended. */
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
    size_t read_at; /* of the first line that nobody took in order */
    char **lines;   /* copies, in order; taken ones are NULL */
    size_t count, taken;
    char **kept; /* texts handed out */
    size_t kept_count;
    int closed;
    int stalled;

    segue_transport *transport; /* PAIR */
    int detached;

    pid_t child; /* STDIO */
    int to, from;

    struct lane *lanes; /* HTTP: connections */
    char *session;      /* Mcp-Session-Id of initialize, and what it settled */
    char *version;
    char *fed;            /* the beginning of a line */
    int status;           /* of the last whole answer */
    char last_event[128]; /* id of the last event of any answer, "" = none */
    char after[128];      /* the Last-Event-ID of what is posted from now on */
    size_t fed_len;
};

/* Bytes of the server, lines of text. */
void wire_received(wire *c, const char *bytes, size_t len);
/* Frees what all wires have. */
void wire_free(wire *c);

int world_is_here(const world *w); /* the server runs in this process */
/* A store on a thread of its own answers in real time. */
int world_is_slow(const world *w);
int64_t world_real_ms(void);
/* STDIO: reads what is there, waiting up to timeout_ms for more; 0 at the end. */
int wire_stdio_read(wire *c, int timeout_ms);

#endif
