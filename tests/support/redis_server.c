/* Starts and ends redis-server. A free port is found by binding a socket to it and
 * closing the socket. If another program takes the port in between, the next port is
 * tried. */
#include "support/redis_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#define ARGS_MAX 48
#define STARTING_MS 120000

struct redis_server {
    pid_t pid;
    uint16_t port;
    char directory[40];
    char url[64];
    char unix_url[80];
    char socket[64];
    redis_server_options options;
};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

uint16_t redis_server_free_port(void)
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

static void run_server(const redis_server *server)
{
    char port[8];
    const redis_server_options *options = &server->options;
    const char *const usual[] = {
        "--bind",          "127.0.0.1",    "--port",       port,     "--dir",
        server->directory, "--unixsocket", server->socket, "--save", "",
        "--loglevel",      "warning",      "--logfile",    "log"};
    const char *args[ARGS_MAX] = {"redis-server"};
    int n = 1;
    if (options->config)
        args[n++] = options->config;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        args[n++] = usual[i];
    snprintf(port, sizeof port, "%d", server->port);
    if (options->password) {
        args[n++] = "--requirepass";
        args[n++] = options->password;
    }
    if (options->appendfsync) {
        args[n++] = "--appendonly";
        args[n++] = "yes";
        args[n++] = "--appendfsync";
        args[n++] = options->appendfsync;
    }
    for (int i = 0; options->extra && options->extra[i] && n < ARGS_MAX - 1; i++)
        args[n++] = options->extra[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(args[0], (char *const *)(uintptr_t)args);
    fprintf(stderr, "redis-server: %s; run .ci/setup\n", strerror(errno));
    _exit(127);
}

static redisContext *connect_to(const redis_server *server)
{
    redisContext *context = redisConnectUnix(server->socket);
    if (!context || context->err) {
        if (context)
            redisFree(context);
        return NULL;
    }
    if (server->options.password) {
        void *reply = redisCommand(context, "AUTH %s", server->options.password);
        if (reply)
            freeReplyObject(reply);
    }
    return context;
}

/* Returns whether the server answers and has loaded its file. */
static bool is_ready(redis_server *server)
{
    return redis_server_do(server, "PING") >= 0;
}

void redis_server_launch(redis_server *server)
{
    unlink(server->socket);
    server->pid = fork();
    if (!server->pid)
        run_server(server);
}

bool redis_server_again(redis_server *server)
{
    redis_server_launch(server);
    for (int waited = 0; server->pid > 0 && waited < STARTING_MS; waited += 5) {
        if (is_ready(server))
            return true;
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid)
            break;
        sleep_ms(5);
    }
    fprintf(stderr, "redis-server does not start on port %d\n", server->port);
    server->pid = 0;
    return false;
}

bool redis_server_start(const redis_server_options *options, redis_server **out)
{
    redis_server *server = calloc(1, sizeof *server);
    if (!server)
        return false;
    if (options)
        server->options = *options;
    strcpy(server->directory, "/tmp/segue-redis-XXXXXX");
    if (!mkdtemp(server->directory)) {
        free(server);
        return false;
    }
    snprintf(server->socket, sizeof server->socket, "%s/socket", server->directory);
    snprintf(server->unix_url, sizeof server->unix_url, "unix://%s", server->socket);
    for (int tries = 0; tries < 5; tries++) {
        server->port = redis_server_free_port();
        snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d", server->port);
        if (redis_server_again(server)) {
            *out = server;
            return true;
        }
    }
    redis_server_stop(server);
    return false;
}

void redis_server_signal(redis_server *server, int number)
{
    if (server->pid <= 0 || kill(server->pid, number))
        return;
    if (number == SIGKILL || number == SIGTERM) {
        waitpid(server->pid, NULL, 0);
        server->pid = 0;
    }
}

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void redis_server_stop(redis_server *server)
{
    if (!server)
        return;
    redis_server_signal(server, SIGKILL);
    nftw(server->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(server);
}

uint16_t redis_server_port(const redis_server *server)
{
    return server->port;
}

const char *redis_server_directory(const redis_server *server)
{
    return server->directory;
}

const char *redis_server_url(const redis_server *server)
{
    return server->url;
}

const char *redis_server_unix_url(const redis_server *server)
{
    return server->unix_url;
}

long long redis_server_do(redis_server *server, const char *format, ...)
{
    char text[1024];
    const char *words[32];
    int count = 0;
    long long value = -1;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *word = strtok(text, " "); word && count < 32; word = strtok(NULL, " "))
        words[count++] = word;
    redisContext *context = connect_to(server);
    redisReply *reply = context ? redisCommandArgv(context, count, words, NULL) : NULL;
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        value = reply->integer;
    else if (reply && reply->type == REDIS_REPLY_ARRAY)
        value = (long long)reply->elements;
    else if (reply && reply->type != REDIS_REPLY_ERROR)
        value = (long long)reply->len;
    if (reply)
        freeReplyObject(reply);
    if (context)
        redisFree(context);
    return value;
}

long long redis_server_info(redis_server *server, const char *name)
{
    long long value = -1;
    redisContext *context = connect_to(server);
    redisReply *reply = context ? redisCommand(context, "INFO") : NULL;
    const char *at = reply && reply->str ? strstr(reply->str, name) : NULL;
    if (at && at[strlen(name)] == ':')
        value = atoll(at + strlen(name) + 1);
    if (reply)
        freeReplyObject(reply);
    if (context)
        redisFree(context);
    return value;
}
