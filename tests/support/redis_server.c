/* Starts and ends redis-server. */
#include "support/redis_server.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "support/server_process.h"

#define ARGS_MAX 48

struct redis_server {
    server_process process;
    char url[64];
    char unix_url[80];
    char socket[64];
    redis_server_options options;
};

static void run_server(void *user)
{
    const redis_server *server = user;
    char port[8];
    const redis_server_options *options = &server->options;
    const char *const usual[] = {"--bind",       "127.0.0.1",
                                 "--port",       port,
                                 "--dir",        server->process.directory,
                                 "--unixsocket", server->socket,
                                 "--save",       "",
                                 "--loglevel",   "warning",
                                 "--logfile",    "log"};
    const char *args[ARGS_MAX] = {"redis-server"};
    int n = 1;
    if (options->config)
        args[n++] = options->config;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        args[n++] = usual[i];
    snprintf(port, sizeof port, "%d", server->process.port);
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
    server_process_end_with_parent(SIGKILL);
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
static bool is_ready(void *server)
{
    return redis_server_do(server, "PING") >= 0;
}

void redis_server_launch(redis_server *server)
{
    unlink(server->socket);
    server_process_launch(&server->process, server);
}

bool redis_server_again(redis_server *server)
{
    unlink(server->socket);
    return server_process_start(&server->process, server);
}

static void set_port(void *user)
{
    redis_server *server = user;
    snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d",
             server->process.port);
    unlink(server->socket);
}

bool redis_server_start(const redis_server_options *options, redis_server **out)
{
    redis_server *server = calloc(1, sizeof *server);
    if (!server)
        return false;
    server->process =
        (server_process){.name = "redis-server", .run = run_server, .is_ready = is_ready};
    if (options)
        server->options = *options;
    if (!server_process_make_directory(&server->process, "redis")) {
        free(server);
        return false;
    }
    snprintf(server->socket, sizeof server->socket, "%s/socket",
             server->process.directory);
    snprintf(server->unix_url, sizeof server->unix_url, "unix://%s", server->socket);
    if (server_process_start_on_free_port(&server->process, server, set_port)) {
        *out = server;
        return true;
    }
    redis_server_stop(server);
    return false;
}

void redis_server_signal(redis_server *server, int number)
{
    if (server->process.pid <= 0 || kill(server->process.pid, number))
        return;
    if (number == SIGKILL || number == SIGTERM)
        server_process_await_end(&server->process);
}

void redis_server_stop(redis_server *server)
{
    if (!server)
        return;
    redis_server_signal(server, SIGKILL);
    server_process_remove_directory(&server->process);
    free(server);
}

uint16_t redis_server_port(const redis_server *server)
{
    return server->process.port;
}

const char *redis_server_directory(const redis_server *server)
{
    return server->process.directory;
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
