/* A Redis server for one test: in a directory of its own, on a free loopback port and on
 * a Unix socket. The server ends with the test program, in whatever way the program ends.
 * On a machine without redis-server the test fails; .ci/setup installs redis-server. */
#ifndef REDIS_SERVER_H
#define REDIS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct redis_server redis_server;

/* With all members NULL there is no password, and nothing is kept on disk. */
typedef struct redis_server_options {
    const char *password;
    const char *appendfsync;  /* "always", "everysec" or "no": use an append-only file */
    const char *const *extra; /* more arguments, NULL at the end */
    const char *config;       /* a configuration file that the server may change */
} redis_server_options;

/* Starts a server; options may be NULL. Returns false with a message on standard
 * error. */
bool redis_server_start(const redis_server_options *options, redis_server **out);
/* Kills the server and removes its directory; NULL is a no-op. */
void redis_server_stop(redis_server *server);

uint16_t redis_server_port(const redis_server *server);
/* Return redis://127.0.0.1:port and unix:///..., without the password. */
const char *redis_server_url(const redis_server *server);
const char *redis_server_unix_url(const redis_server *server);

/* Sends the signal; waits for the end when the signal ends the process. */
void redis_server_signal(redis_server *server, int number);
/* Starts the server again with the same port, directory and options. */
bool redis_server_again(redis_server *server);
/* Does the same, and does not wait until the server answers. */
void redis_server_launch(redis_server *server);
/* Returns the directory with the server's files. */
const char *redis_server_directory(const redis_server *server);

/* Runs one command, formatted as printf does; spaces separate its arguments. Returns
 * the integer of the reply, or its number of elements or bytes; -1 = an error or no
 * server. */
long long redis_server_do(redis_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns a number from INFO, such as used_memory. */
long long redis_server_info(redis_server *server, const char *name);

#endif
