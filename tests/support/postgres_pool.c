#include "support/postgres_pool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "support/redis_server.h"

#define PROGRAM "/usr/sbin/pgbouncer"
#define STARTING_MS 120000

struct postgres_pool {
    pid_t pid;
    uint16_t port;
    char url[80];
    char settings[96]; /* path of the file with the settings */
    char users[96];    /* path of the file with the users */
};

static bool write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    bool ok = fputs(text, file) >= 0;
    ok = fclose(file) == 0 && ok;
    return ok && postgres_server_give_file(path);
}

static bool write_settings(const postgres_server *server, const postgres_pool *pool,
                           const char *mode, int size)
{
    char text[512];
    snprintf(text, sizeof text,
             "[databases]\n"
             "* = host=%s port=%d\n"
             "[pgbouncer]\n"
             "listen_addr = 127.0.0.1\n"
             "listen_port = %d\n"
             "unix_socket_dir =\n"
             "auth_type = trust\n"
             "auth_file = %s\n"
             "pool_mode = %s\n"
             "default_pool_size = %d\n",
             postgres_server_directory(server), postgres_server_port(server), pool->port,
             pool->users, mode, size);
    return write_file(pool->users, "\"segue\" \"\"\n") &&
           write_file(pool->settings, text);
}

static bool is_ready(const postgres_pool *pool)
{
    PGconn *conn = PQconnectdb(pool->url);
    bool ready = PQstatus(conn) == CONNECTION_OK;
    PQfinish(conn);
    return ready;
}

static bool await(postgres_pool *pool)
{
    for (int waited = 0; pool->pid > 0 && waited < STARTING_MS; waited += 5) {
        if (is_ready(pool))
            return true;
        if (waitpid(pool->pid, NULL, WNOHANG) == pool->pid)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    pool->pid = 0;
    return false;
}

bool postgres_pool_start(const postgres_server *server, const char *mode, int size,
                         postgres_pool **out)
{
    const char *directory = postgres_server_directory(server);
    postgres_pool *pool = access(PROGRAM, X_OK) ? NULL : calloc(1, sizeof *pool);
    if (!pool) {
        fprintf(stderr, "pgbouncer is not installed; run .ci/setup\n");
        return false;
    }
    snprintf(pool->settings, sizeof pool->settings, "%s/pool.ini", directory);
    snprintf(pool->users, sizeof pool->users, "%s/pool.users", directory);
    for (int tries = 0; tries < 5; tries++) {
        const char *args[] = {PROGRAM, pool->settings, NULL};
        pool->port = redis_server_free_port();
        snprintf(pool->url, sizeof pool->url, "postgresql://segue@127.0.0.1:%d/postgres",
                 pool->port);
        if (!write_settings(server, pool, mode, size))
            break;
        pool->pid = postgres_server_run_beside(server, args);
        *out = pool;
        if (await(pool))
            return true;
    }
    fprintf(stderr, "pgbouncer does not start: see %s/log\n", directory);
    free(pool);
    return false;
}

void postgres_pool_stop(postgres_pool *pool)
{
    if (!pool)
        return;
    if (!kill(pool->pid, SIGKILL))
        waitpid(pool->pid, NULL, 0);
    free(pool);
}

const char *postgres_pool_url(const postgres_pool *pool)
{
    return pool->url;
}
