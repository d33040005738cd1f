/* A Redis server of one's own: in a directory of its own, on a free loopback port and a
 * Unix socket beside it. It goes with the test program, however that ends. A machine
 * without redis-server fails the test: .ci/setup installs it. */
#ifndef REDIS_SERVER_H
#define REDIS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct redis_server redis_server;

/* All NULL: no password, nothing is kept on disk. */
typedef struct redis_server_options {
    const char *password;
    const char *appendfsync;  /* "always", "everysec" or "no": with an append-only file */
    const char *const *extra; /* more arguments, NULL at the end */
} redis_server_options;

/* options may be NULL. False with a message on standard error. */
bool redis_server_start(const redis_server_options *options, redis_server **out);
/* Kills it and removes its directory; NULL is no-op. */
void redis_server_stop(redis_server *server);

uint16_t redis_server_port(const redis_server *server);
/* redis://127.0.0.1:port, and unix:///...; without a password. */
const char *redis_server_url(const redis_server *server);
const char *redis_server_unix_url(const redis_server *server);

/* One that nothing listens on now. */
uint16_t redis_server_free_port(void);

/* Sends the signal; when it ends the process waits for that. */
void redis_server_signal(redis_server *server, int number);
/* Starts it again, with the same port, directory and options. */
bool redis_server_again(redis_server *server);

/* One command by itself, as printf; spaces part its arguments. An integer reply, or how
 * many elements or bytes it has; -1 = an error or no server. */
long long redis_server_do(redis_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A number from INFO, such as used_memory. */
long long redis_server_info(redis_server *server, const char *name);

#endif
