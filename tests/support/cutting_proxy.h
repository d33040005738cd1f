/* A TCP proxy on loopback that breaks its connections, on command or by plan.
 *
 *     cutting_proxy *proxy;
 *     cutting_options options = {.target_port = port, .seed = 7, .piece_max = 100};
 *     assert_true(cutting_proxy_start(&options, &proxy));
 *     cutting_proxy_plan(proxy, &(cutting_plan){.direction = CUTTING_DOWN, .min = 1,
 *                                               .max = 5000, .how = CUTTING_RST});
 *     ... talk to cutting_proxy_port(proxy) ...
 *     cutting_proxy_stop(proxy);
 *
 * The proxy runs on a thread of its own. Every function may be called from any thread,
 * except cutting_proxy_stop, which ends the handle. A command has been carried out when
 * its call returns.
 *
 * The seed and the number of the connection alone determine the byte of a cut and the
 * sizes of writes; time has no influence. Connections are numbered in the order in which
 * they are accepted. Without a cut the proxy changes nothing: it passes on half-closes,
 * resets and back-pressure. */
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

/* How both sides are cut, at once. Bytes that the proxy still holds are lost. */
typedef enum cutting_how {
    CUTTING_FIN = 0, /* an ordinary end; a peer that goes on sending gets a reset */
    CUTTING_RST,     /* ECONNRESET; over a Unix socket an ordinary end */
    CUTTING_SILENCE  /* both sides stay connected, and the proxy carries nothing more, not
                      * even an end */
} cutting_how;

/* Zero members other than the target make a faithful proxy on a free port. */
typedef struct cutting_options {
    const char *target_path; /* a Unix socket, or NULL */
    const char *target_host; /* numeric IPv4 address; NULL = 127.0.0.1 */
    uint16_t target_port;
    uint16_t port; /* port to listen on; 0 = a free one */
    uint64_t seed;
    size_t piece_max; /* each write has 1 to piece_max bytes; 0 = as they come */
    int delay_ms;     /* the time for which bytes wait before each write */
    size_t room;      /* bytes held per connection and direction; 0 = 64 KiB */
    size_t most;      /* maximum number of connections, others wait in the backlog; 0 =
                       * 256 */
} cutting_options;

typedef struct cutting_plan {
    cutting_direction direction;
    size_t min, max; /* limits of the random number of bytes after which a connection is
                      * cut */
    cutting_how how;
    int times; /* number of cuts until the plan is over; 0 = no end */
} cutting_plan;

typedef enum cutting_count {
    CUTTING_CONNECTIONS, /* connections accepted so far */
    CUTTING_OPEN,        /* connections open now, with silent and ending ones */
    CUTTING_CUTS,        /* connections cut, by plan or command */
    CUTTING_BYTES_UP,    /* bytes written to the other side */
    CUTTING_BYTES_DOWN,
    CUTTING_MOST_HELD, /* most bytes ever held for one direction of one connection */
    CUTTING_COUNTS
} cutting_count;

/* Starts the proxy; returns false with errno when there is no port, memory or thread.
 * Options and their texts are copied. */
bool cutting_proxy_start(const cutting_options *options, cutting_proxy **proxy);
/* Closes all connections and joins the thread; NULL is a no-op. */
void cutting_proxy_stop(cutting_proxy *proxy);
uint16_t cutting_proxy_port(const cutting_proxy *proxy);

/* Cuts every connection now, also silent ones; returns how many. */
size_t cutting_proxy_cut_all(cutting_proxy *proxy, cutting_how how);
/* Plans cuts for every later connection and, counted from now, for the open ones. The new
 * plan replaces the earlier plan of this direction. */
void cutting_proxy_plan(cutting_proxy *proxy, const cutting_plan *plan);
void cutting_proxy_plan_nothing(cutting_proxy *proxy, cutting_direction direction);
/* Refuses new connections for ms milliseconds; < 0 = until the next call, 0 = refuses no
 * more. The port stays reserved and open connections continue. Returns false with errno
 * when the proxy cannot listen again. */
bool cutting_proxy_refuse(cutting_proxy *proxy, int64_t ms);

uint64_t cutting_proxy_get(cutting_proxy *proxy, cutting_count what);
/* Waits until a count is at least this high; returns false after the timeout. */
bool cutting_proxy_await(cutting_proxy *proxy, cutting_count what, uint64_t least,
                         int timeout_ms);

#endif
