/* Starts and ends PostgreSQL. PostgreSQL refuses to run as root, so its programs then run
 * as the user "postgres" or "nobody". */
#include "support/postgres_server.h"

#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "support/server_process.h"

#define ARGS_MAX 64

struct postgres_server {
    server_process process;
    char data[64];
    char url[80];
    char unix_url[160];
    char programs[160]; /* the directory of the newest version's programs */
    const char *const *extra;
};

/* ---- programs ---- */

static bool find_programs(postgres_server *server)
{
    glob_t found;
    bool ok = glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) == 0;
    if (ok) {
        snprintf(server->programs, sizeof server->programs, "%s",
                 found.gl_pathv[found.gl_pathc - 1]);
        *strrchr(server->programs, '/') = 0;
    } else {
        fprintf(stderr, "PostgreSQL is not installed; run .ci/setup\n");
    }
    globfree(&found);
    return ok;
}

static const struct passwd *other_user(void)
{
    const struct passwd *user = getuid() ? NULL : getpwnam("postgres");
    return user || getuid() ? user : getpwnam("nobody");
}

void postgres_server_become(const postgres_server *server, const char **args)
{
    char path[200];
    const struct passwd *user = other_user();
    if (user && (setgroups(0, NULL) || setgid(user->pw_gid) || setuid(user->pw_uid)))
        _exit(126);
    server_process_end_with_parent(SIGQUIT); /* after setuid, which resets it */
    if (chdir(server->process.directory) || !freopen("/dev/null", "r", stdin) ||
        !freopen("log", "a", stdout) || !freopen("log", "a", stderr))
        _exit(126);
    setpgid(0, 0);
    bool is_path = *args[0] == '/';
    snprintf(path, sizeof path, "%s%s%s", is_path ? "" : server->programs,
             is_path ? "" : "/", args[0]);
    args[0] = path; /* programs look for others beside the file that they are named by */
    execv(path, (char *const *)(uintptr_t)args);
    _exit(127);
}

/* Runs a program to its end. */
static bool run(const postgres_server *server, const char **args)
{
    int status = -1;
    pid_t pid = fork();
    if (!pid)
        postgres_server_become(server, args);
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (status)
        fprintf(stderr, "%s failed: see %s/log\n", args[0], server->process.directory);
    return !status;
}

bool postgres_server_give_file(const char *path)
{
    const struct passwd *user = other_user();
    return !chmod(path, 0600) && (!user || !chown(path, user->pw_uid, user->pw_gid));
}

static void run_server(void *user)
{
    const postgres_server *server = user;
    char port[8];
    const char *args[ARGS_MAX] = {"postgres",
                                  "-D",
                                  server->data,
                                  "-k",
                                  server->process.directory,
                                  "-h",
                                  "127.0.0.1",
                                  "-p",
                                  port,
                                  "-c",
                                  "fsync=off",
                                  "-c",
                                  "log_min_messages=warning",
                                  "-c",
                                  "max_connections=60",
                                  "-c",
                                  "wal_level=replica",
                                  "-c",
                                  "wal_keep_size=64MB",
                                  "-c",
                                  "shared_buffers=32MB",
                                  "-c",
                                  "log_min_error_statement=panic"};
    int n = 23;
    snprintf(port, sizeof port, "%d", server->process.port);
    for (int i = 0; server->extra && server->extra[i] && n < ARGS_MAX - 1; i++)
        args[n++] = server->extra[i];
    postgres_server_become(server, args);
}

/* ---- starting ---- */

static void ignore_notice(void *user, const PGresult *notice)
{
    (void)user;
    (void)notice;
}

static PGconn *connect_to(const postgres_server *server)
{
    PGconn *conn = PQconnectdb(server->unix_url);
    PQsetNoticeReceiver(conn, ignore_notice, NULL);
    if (PQstatus(conn) == CONNECTION_OK)
        return conn;
    PQfinish(conn);
    return NULL;
}

static bool is_ready(void *server)
{
    PGconn *conn = connect_to(server);
    PQfinish(conn);
    return conn != NULL;
}

bool postgres_server_again(postgres_server *server)
{
    return server_process_start(&server->process, server);
}

static void set_port(void *user)
{
    postgres_server *server = user;
    int port = server->process.port;
    snprintf(server->url, sizeof server->url, "postgresql://segue@127.0.0.1:%d/postgres",
             port);
    snprintf(server->unix_url, sizeof server->unix_url,
             "postgresql:///postgres?host=%s&port=%d&user=segue",
             server->process.directory, port);
}

static bool start_on_free_port(postgres_server *server)
{
    return server_process_start_on_free_port(&server->process, server, set_port);
}

static postgres_server *make(const char *const *extra)
{
    postgres_server *server = calloc(1, sizeof *server);
    const struct passwd *user = other_user();
    if (!server)
        return NULL;
    server->extra = extra;
    server->process =
        (server_process){.name = "PostgreSQL", .run = run_server, .is_ready = is_ready};
    if (!server_process_make_directory(&server->process, "postgres") ||
        (user && chown(server->process.directory, user->pw_uid, user->pw_gid)) ||
        !find_programs(server)) {
        free(server);
        return NULL;
    }
    snprintf(server->data, sizeof server->data, "%s/data", server->process.directory);
    return server;
}

bool postgres_server_start(const char *const *extra, postgres_server **out)
{
    postgres_server *server = make(extra);
    if (!server)
        return false;
    const char *args[] = {"initdb", "-D",         server->data, "-U",
                          "segue",  "-A",         "trust",      "-E",
                          "UTF8",   "--locale=C", "--no-sync",  "--no-instructions",
                          NULL};
    if (run(server, args) && start_on_free_port(server)) {
        *out = server;
        return true;
    }
    postgres_server_stop(server);
    return false;
}

bool postgres_server_start_standby(postgres_server *of, postgres_server **out)
{
    postgres_server *server = make(of->extra);
    if (!server)
        return false;
    const char *args[] = {
        "pg_basebackup", "-D", server->data, "-d",        of->url, "-R", "-X",
        "stream",        "-c", "fast",       "--no-sync", NULL};
    if (run(server, args) && start_on_free_port(server)) {
        *out = server;
        return true;
    }
    postgres_server_stop(server);
    return false;
}

bool postgres_server_promote(postgres_server *server)
{
    return postgres_server_do(server, "SELECT pg_promote(true, 60)::int") == 1;
}

/* ---- ending ---- */

void postgres_server_signal(postgres_server *server, int number)
{
    if (server->process.pid <= 0)
        return;
    if (number == SIGSTOP || number == SIGCONT) {
        kill(-server->process.pid, number);
        return;
    }
    if (!kill(server->process.pid, number))
        server_process_await_end(&server->process);
}

void postgres_server_stop(postgres_server *server)
{
    if (!server)
        return;
    postgres_server_signal(server, SIGCONT);
    postgres_server_signal(server, SIGQUIT);
    server_process_remove_directory(&server->process);
    free(server);
}

/* ---- asking ---- */

uint16_t postgres_server_port(const postgres_server *server)
{
    return server->process.port;
}

const char *postgres_server_url(const postgres_server *server)
{
    return server->url;
}

const char *postgres_server_unix_url(const postgres_server *server)
{
    return server->unix_url;
}

const char *postgres_server_directory(const postgres_server *server)
{
    return server->process.directory;
}

const char *postgres_server_data(const postgres_server *server)
{
    return server->data;
}

long long postgres_server_do(postgres_server *server, const char *format, ...)
{
    char text[2048];
    long long value = -1;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    PGconn *conn = connect_to(server);
    if (!conn)
        return -1;
    PGresult *result = PQexec(conn, text);
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK && PQntuples(result))
        value = atoll(PQgetvalue(result, 0, 0));
    else if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        value = 0;
    else
        fprintf(stderr, "%s", PQresultErrorMessage(result));
    PQclear(result);
    PQfinish(conn);
    return value;
}
