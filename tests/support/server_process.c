#include "support/server_process.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STARTING_MS 120000
#define TRIES 5

uint16_t server_process_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&address, size) ||
        getsockname(fd, (struct sockaddr *)&address, &size))
        address.sin_port = 0;
    close(fd);
    return ntohs(address.sin_port);
}

bool server_process_make_directory(server_process *process, const char *name)
{
    snprintf(process->directory, sizeof process->directory, "/tmp/segue-%s-XXXXXX", name);
    return mkdtemp(process->directory) != NULL;
}

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void server_process_remove_directory(const server_process *process)
{
    nftw(process->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void server_process_end_with_parent(int number)
{
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, number);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void server_process_launch(server_process *process, void *server)
{
    process->pid = fork();
    if (!process->pid)
        process->run(server);
}

bool server_process_start(server_process *process, void *server)
{
    server_process_launch(process, server);
    for (int waited = 0; process->pid > 0 && waited < STARTING_MS; waited += 5) {
        if (process->is_ready(server))
            return true;
        if (waitpid(process->pid, NULL, WNOHANG) == process->pid)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    fprintf(stderr, "%s does not start on port %d\n", process->name, process->port);
    process->pid = 0;
    return false;
}

bool server_process_start_on_free_port(server_process *process, void *server,
                                       void (*on_port)(void *server))
{
    for (int tries = 0; tries < TRIES; tries++) {
        process->port = server_process_free_port();
        on_port(server);
        if (server_process_start(process, server))
            return true;
    }
    return false;
}

void server_process_await_end(server_process *process)
{
    waitpid(process->pid, NULL, 0);
    process->pid = 0;
}
