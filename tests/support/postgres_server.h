/* A PostgreSQL server for one test: in a directory of its own, on a free loopback port
 * and on a Unix socket, under a user without rights when the test runs as root. The
 * server ends with the test program, in whatever way the program ends. On a machine
 * without PostgreSQL the test fails; .ci/setup installs it. */
#ifndef POSTGRES_SERVER_H
#define POSTGRES_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct postgres_server postgres_server;

/* Starts a server. extra: more arguments, NULL at the end; may be NULL. The server does
 * not sync its files, unless extra says "fsync=on". Returns false with a message on
 * standard error. */
bool postgres_server_start(const char *const *extra, postgres_server **out);
/* As postgres_server_start, with a copy of the data of another server, as its standby:
 * it follows the other server until postgres_server_promote. */
bool postgres_server_start_standby(postgres_server *of, postgres_server **out);
bool postgres_server_promote(postgres_server *server);
/* Kills the server and removes its directory; NULL is a no-op. */
void postgres_server_stop(postgres_server *server);

uint16_t postgres_server_port(const postgres_server *server);
/* Return URLs for the superuser "segue" and the database "postgres". */
const char *postgres_server_url(const postgres_server *server);
const char *postgres_server_unix_url(const postgres_server *server);
/* The directory of its socket, which the server's user owns. */
const char *postgres_server_directory(const postgres_server *server);
/* The directory of its data, inside the other directory. */
const char *postgres_server_data(const postgres_server *server);

/* Ends the server: SIGTERM = it waits for clients, SIGINT = it ends their sessions,
 * SIGQUIT = at once, as in a crash. SIGSTOP and SIGCONT concern the whole server. */
void postgres_server_signal(postgres_server *server, int number);
/* Starts the server again with the same port and directory. */
bool postgres_server_again(postgres_server *server);

/* Makes the user of the servers the only one who can read and write the file. Returns
 * false when that fails. */
bool postgres_server_give_file(const char *path);
/* In a child process: becomes one of PostgreSQL's programs, or the program with an
 * absolute path, as the server's user, in the server's directory. The program ends with
 * the test program. Its output goes to the server's log. */
void postgres_server_become(const postgres_server *server, const char **args);

/* Runs SQL text, formatted as printf does. Returns the first value of the result as a
 * number, 0 when there is none; -1 = an error (with a message) or no server. */
long long postgres_server_do(postgres_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
