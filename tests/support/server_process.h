/* A server of another project as a child process of one test: what redis-server,
 * PostgreSQL and pgbouncer share. Each has a free loopback port, and ends with the test
 * program. */
#ifndef SERVER_PROCESS_H
#define SERVER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct server_process {
    const char *name; /* for messages */
    pid_t pid;        /* 0 = the server does not run */
    uint16_t port;
    char directory[48];
    void (*run)(void *server); /* becomes the server, in the child process */
    bool (*is_ready)(void *server);
} server_process;

/* Returns a port that nothing listens on now. The port is found by binding a socket to it
 * and closing the socket. */
uint16_t server_process_free_port(void);

/* Makes the directory /tmp/segue-NAME-XXXXXX. */
bool server_process_make_directory(server_process *process, const char *name);
void server_process_remove_directory(const server_process *process);

/* Makes the calling process receive this signal when its parent ends, and unblocks all
 * signals. */
void server_process_end_with_parent(int number);

/* Starts the process; `server` is the argument of its functions. */
void server_process_launch(server_process *process, void *server);
/* As server_process_launch, and waits until the server is ready. Returns false with a
 * message on standard error. */
bool server_process_start(server_process *process, void *server);
/* Starts the process on a free port. If another program takes the port in between, the
 * next port is tried. on_port is called before each try. */
bool server_process_start_on_free_port(server_process *process, void *server,
                                       void (*on_port)(void *server));
/* Waits for the end of the process. */
void server_process_await_end(server_process *process);

#endif
