#include "program.h"

#include "board.h"
#include "doctor.h"
#include "guard.h"
#include "look.h"
#include "options.h"
#include "peek.h"
#include "service.h"

#include <segue/segue_auth.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The capabilities that the proxy declares to upstreams while those of its client are not
 * known. */
#define ALL_CAPABILITIES                                                                 \
    "{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{\"tools\":{},"              \
    "\"context\":{}},\"roots\":{\"listChanged\":true}}"

/* ---- signals ---- */

static void on_terminate(void *user)
{
    proxy *p = user;
    log_event(SEGUE_LOG_INFO, "ending", NULL, "asked to end");
    serve_drain(p);
}

static void on_hangup(void *user)
{
    reload(user);
}

/* Fills the set with the signals that the proxy waits for. SIGHUP ends a proxy that has
 * nothing to read anew. The program sends SIGUSR2 to itself when it ends, so that the
 * thread that waits for signals ends. */
static void fill_signals(const proxy *p, sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGUSR2);
    if (p->config.file || p->config.listen)
        sigaddset(set, SIGHUP);
}

/* Waits for signals on its own thread. The main thread handles the signals. */
static void *wait_for_signals(void *user)
{
    proxy *p = user;
    sigset_t set;
    int number = 0;
    fill_signals(p, &set);
    while (!sigwait(&set, &number) && number != SIGUSR2)
        segue_timer_start(p->runtime, 0, number == SIGHUP ? on_hangup : on_terminate, p,
                          NULL, NULL);
    return NULL;
}

static bool start_signals(proxy *p, pthread_t *thread)
{
    sigset_t set;
    fill_signals(p, &set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return pthread_create(thread, NULL, wait_for_signals, p) == 0;
}

/* ---- the program ---- */

static void start_sources(proxy *p)
{
    for (service *v = p->services; v; v = v->next)
        if (v->sources->next && !service_make_server(v, NULL))
            return;
    for (source *s = source_next(p, NULL); s; s = source_next(p, s))
        source_start(s);
    sources_limit_start(p);
}

static int run(proxy *p)
{
    pthread_t signals;
    char *seen = NULL;
    if (!p->config.check)
        manager_begin(p);
    if (!sources_make(p))
        return p->status;
    if (!start_signals(p, &signals))
        return 1;
    if (!p->config.listen && !p->config.check)
        seen = peek_capabilities(p->runtime, STDIN_FILENO);
    p->capabilities = seen ? seen : ALL_CAPABILITIES;
    start_sources(p);
    segue_runtime_run(p->runtime);
    pthread_kill(signals, SIGUSR2);
    pthread_join(signals, NULL);
    proxy_enter(p, PROXY_ENDING);
    segue_listener_free(p->listener);
    services_let_go(p);
    free(seen);
    return p->status;
}

static bool check_tokens(const proxy *p)
{
    segue_error *error = NULL;
    segue_status status =
        segue_tokens_check(p->runtime, p->config.http.tokens_file, &error);
    if (status != SEGUE_OK)
        log_event(SEGUE_LOG_ERROR, "tokens_invalid", NULL, "%s",
                  segue_error_read(error)->message);
    segue_error_free(error);
    return status == SEGUE_OK;
}

static int run_proxy(int argc, char **argv, const program_hooks *hooks)
{
    proxy p = {.status = 0};
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    int status = options_read(&p.config, argc, argv);
    log_begin(p.config.log_json, p.config.log_level);
    options.log = log_of_library();
    options.log_level = p.config.log_level;
    options.hooks = hooks ? hooks->clock : NULL;
    if (status < 0 && (segue_runtime_new(&options, &p.runtime, NULL) != SEGUE_OK ||
                       log_observe(p.runtime) != SEGUE_OK))
        status = 1;
    if (status < 0 && p.config.file &&
        !config_read_file(&p.config, p.runtime, p.config.file))
        status = 2;
    if (status < 0 && p.config.http.tokens_file && !check_tokens(&p))
        status = 2;
    if (status < 0 && hooks)
        hooks->begun(hooks->user, p.runtime);
    if (status < 0)
        status = run(&p);
    if (hooks)
        hooks->ending(hooks->user);
    segue_runtime_free(p.runtime);
    segue_timer_free(p.start);
    segue_timer_free(p.probe);
    services_free(&p);
    free(p.config.bearer);
    config_free(&p.config);
    return status;
}

static int examine_server(int argc, char **argv, const program_hooks *hooks)
{
    char **arguments = doctor_server_arguments(&argc, argv);
    int status = arguments ? run_proxy(argc, arguments, hooks) : 1;
    free(arguments);
    return status;
}

int program_run(int argc, char **argv, const program_hooks *hooks)
{
    if (argc > 1 && !strcmp(argv[1], "--guard"))
        return guard_run_arguments(argc - 2, argv + 2);
    if (argc > 1 && !strcmp(argv[1], "store"))
        return look_run(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "board"))
        return board_run(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "doctor"))
        return doctor_takes(argc - 1, argv + 1) ? doctor_run(argc - 1, argv + 1)
                                                : examine_server(argc, argv, hooks);
    return run_proxy(argc, argv, hooks);
}
