/* A TCP proxy on loopback that breaks what it carries, on command or by plan.
 *
 *     cutting_proxy *proxy;
 *     cutting_options options = {.target_port = port, .seed = 7, .piece_max = 100};
 *     assert_true(cutting_proxy_start(&options, &proxy));
 *     cutting_proxy_plan(proxy, &(cutting_plan){.direction = CUTTING_DOWN, .min = 1,
 *                                               .max = 5000, .how = CUTTING_RST});
 *     ... talk to cutting_proxy_port(proxy) ...
 *     cutting_proxy_stop(proxy);
 *
 * It runs on a thread of its own; every function may be called from any thread but stop,
 * after which the handle is gone. A command is carried out when its call returns.
 *
 * At which byte of which connection a cut comes and where writes end depends on the seed
 * and on the number of the connection alone, not on time: connections are numbered as
 * they are accepted. Without a cut it changes nothing: a half-close, a reset and
 * back-pressure are passed on. */
#ifndef CUTTING_PROXY_H
#define CUTTING_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cutting_proxy cutting_proxy;

typedef enum cutting_direction {
    CUTTING_UP,  /* client to target */
    CUTTING_DOWN /* target to client */
} cutting_direction;

/* Both sides are cut at once; bytes that the proxy still holds are lost. */
typedef enum cutting_how {
    CUTTING_FIN = 0, /* an end like any other; a peer that goes on sending is reset */
    CUTTING_RST,     /* ECONNRESET; over a Unix socket an end like any other */
    CUTTING_SILENCE  /* both stay connected and nothing is carried any more, not an end */
} cutting_how;

/* All zero but the target is a faithful proxy on a free port. */
typedef struct cutting_options {
    const char *target_path; /* a Unix socket, or NULL */
    const char *target_host; /* numeric IPv4 address; NULL = 127.0.0.1 */
    uint16_t target_port;
    uint16_t port; /* to listen on; 0 = a free one */
    uint64_t seed;
    size_t piece_max; /* each write is of 1 to so many bytes; 0 = as they come */
    int delay_ms;     /* how long bytes wait before each write */
    size_t room;      /* bytes held per connection and direction; 0 = 64 KiB */
    size_t most;      /* connections at once, others wait in the backlog; 0 = 256 */
} cutting_options;

typedef struct cutting_plan {
    cutting_direction direction;
    size_t min, max; /* drawn for each connection: it is cut after so many bytes more */
    cutting_how how;
    int times; /* cuts until the plan is over; 0 = no end */
} cutting_plan;

typedef enum cutting_count {
    CUTTING_CONNECTIONS, /* accepted */
    CUTTING_OPEN,        /* now; silent ones and those on their way out are among them */
    CUTTING_CUTS,        /* connections cut, by plan or command */
    CUTTING_BYTES_UP,    /* written to the other side */
    CUTTING_BYTES_DOWN,
    CUTTING_MOST_HELD, /* most bytes ever held for one direction of one connection */
    CUTTING_COUNTS
} cutting_count;

/* False with errno when there is no port, memory or thread. Options and the texts in them
 * are copied. */
bool cutting_proxy_start(const cutting_options *options, cutting_proxy **proxy);
/* Closes all and joins the thread. NULL is no-op. */
void cutting_proxy_stop(cutting_proxy *proxy);
uint16_t cutting_proxy_port(const cutting_proxy *proxy);

/* Cuts every connection now, also silent ones; returns how many. */
size_t cutting_proxy_cut_all(cutting_proxy *proxy, cutting_how how);
/* For every connection to come and, counted from now, those that are open. Takes the
 * place of the direction's plan before. */
void cutting_proxy_plan(cutting_proxy *proxy, const cutting_plan *plan);
void cutting_proxy_plan_nothing(cutting_proxy *proxy, cutting_direction direction);
/* New connections are refused for so long, or if < 0 until called again; 0 = no more.
 * The port stays ours, those that are open go on. False with errno when it cannot listen
 * again. */
bool cutting_proxy_refuse(cutting_proxy *proxy, int64_t ms);

uint64_t cutting_proxy_get(cutting_proxy *proxy, cutting_count what);
/* Waits until a count is at least so high; false when that takes too long. */
bool cutting_proxy_await(cutting_proxy *proxy, cutting_count what, uint64_t least,
                         int timeout_ms);

#endif
