#include "support/postgres_pool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "support/server_process.h"

#define PROGRAM "/usr/sbin/pgbouncer"

struct postgres_pool {
    server_process process;
    const postgres_server *server;
    const char *mode;
    int size;
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

static void set_port(void *user)
{
    postgres_pool *pool = user;
    char text[512];
    snprintf(pool->url, sizeof pool->url, "postgresql://segue@127.0.0.1:%d/postgres",
             pool->process.port);
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
             postgres_server_directory(pool->server), postgres_server_port(pool->server),
             pool->process.port, pool->users, pool->mode, pool->size);
    if (!write_file(pool->users, "\"segue\" \"\"\n") || !write_file(pool->settings, text))
        fprintf(stderr, "cannot write %s\n", pool->settings);
}

static void run_pool(void *user)
{
    const postgres_pool *pool = user;
    const char *args[] = {PROGRAM, pool->settings, NULL};
    postgres_server_become(pool->server, args);
}

static bool is_ready(void *user)
{
    const postgres_pool *pool = user;
    PGconn *conn = PQconnectdb(pool->url);
    bool ready = PQstatus(conn) == CONNECTION_OK;
    PQfinish(conn);
    return ready;
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
    pool->process =
        (server_process){.name = "pgbouncer", .run = run_pool, .is_ready = is_ready};
    pool->server = server;
    pool->mode = mode;
    pool->size = size;
    snprintf(pool->settings, sizeof pool->settings, "%s/pool.ini", directory);
    snprintf(pool->users, sizeof pool->users, "%s/pool.users", directory);
    if (server_process_start_on_free_port(&pool->process, pool, set_port)) {
        *out = pool;
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
    if (!kill(pool->process.pid, SIGKILL))
        server_process_await_end(&pool->process);
    free(pool);
}

const char *postgres_pool_url(const postgres_pool *pool)
{
    return pool->url;
}
