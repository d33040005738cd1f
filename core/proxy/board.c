#include "board.h"

#include "look.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char USAGE[] =
    "usage: segue-proxy board STORE [--port PORT] [--read-only] [--redact]\n"
    "STORE is a SQLite file, redis://HOST:PORT or postgresql://HOST/DATABASE.\n"
    "The task board is a web page for this machine. Its URL has a secret token, without "
    "which nobody can use it. --redact hides what clients and tools have said.\n";

#define TOKEN_BYTES 24

typedef struct board {
    const char *where; /* the store */
    segue_listen_options options;
    char token[2 * TOKEN_BYTES + 1];
    segue_runtime *runtime;
    segue_server *server;
    segue_listener *listener;
} board;

static int wrong(const char *why, const char *what)
{
    fprintf(stderr, "segue-proxy: %s%s\n%s", why, what, USAGE);
    return LOOK_WRONG;
}

static bool take_port(const char *value, int32_t *port)
{
    char *end = NULL;
    errno = 0;
    long number = strtol(value, &end, 10);
    *port = (int32_t)number;
    return end != value && !*end && !errno && number >= 0 && number <= 65535;
}

static int take_arguments(board *b, int argc, char **argv)
{
    for (int at = 1; at < argc; at++) {
        if (!strcmp(argv[at], "--read-only"))
            b->options.board_read_only = 1;
        else if (!strcmp(argv[at], "--redact"))
            b->options.board_redact = 1;
        else if (!strcmp(argv[at], "--port") && at + 1 < argc) {
            if (!take_port(argv[++at], &b->options.port))
                return wrong("this is no port: ", argv[at]);
        } else if (!strncmp(argv[at], "--", 2))
            return wrong("this option is unknown, or its value is missing: ", argv[at]);
        else if (b->where)
            return wrong("there are too many arguments: ", argv[at]);
        else
            b->where = argv[at];
    }
    return b->where ? LOOK_OK : wrong("the store is missing", "");
}

/* Every user of the machine can connect to the listener, so requests need a secret. */
static bool make_token(board *b)
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(b->token + 2 * i, 3, "%02x", bytes[i]);
    b->options.board_token = b->token;
    return true;
}

/* The listener needs a server; this one offers nothing, and has a store of its own. */
static segue_status open_board(board *b, segue_store *store, segue_error **error)
{
    segue_server_options server = SEGUE_SERVER_OPTIONS_INIT;
    server.name = "segue-board";
    server.version = segue_version();
    b->options.board_path = "/";
    b->options.board_store = store;
    segue_status status = segue_runtime_new(NULL, &b->runtime, error);
    if (status == SEGUE_OK)
        status = segue_server_new(b->runtime, &server, &b->server, error);
    if (status == SEGUE_OK)
        status = segue_server_listen(b->server, &b->options, &b->listener, error);
    return status;
}

static void *wait_for_end(void *user)
{
    const board *b = user;
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigwait(&set, &number);
    segue_runtime_stop(b->runtime);
    return NULL;
}

static int serve(board *b)
{
    pthread_t waiter;
    const char *url = segue_listener_url(b->listener), *path = strrchr(url, '/');
    if (pthread_create(&waiter, NULL, wait_for_end, b) != 0)
        return LOOK_FAILED;
    printf("%.*s/#token=%s\n", (int)(path - url), url, b->token);
    fflush(stdout);
    segue_runtime_run(b->runtime);
    pthread_join(waiter, NULL);
    return LOOK_OK;
}

static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int board_run(int argc, char **argv)
{
    board b = {.options = SEGUE_LISTEN_OPTIONS_INIT};
    segue_store *store = NULL;
    segue_error *error = NULL;
    if (argc > 1 && !strcmp(argv[1], "--help"))
        return fputs(USAGE, stdout) < 0 ? LOOK_FAILED : LOOK_OK;
    int status = take_arguments(&b, argc, argv);
    if (!status && !make_token(&b)) {
        fputs("segue-proxy: the system gives no random numbers\n", stderr);
        status = LOOK_FAILED;
    }
    if (!status)
        status = look_open_store(b.where, false, &store);
    if (status)
        return status;
    block_signals();
    segue_status opened = open_board(&b, store, &error);
    segue_store_free(store);
    status = opened == SEGUE_OK ? serve(&b) : look_fail("the board", opened, error);
    segue_listener_free(b.listener);
    segue_server_free(b.server);
    segue_runtime_free(b.runtime);
    return status;
}
