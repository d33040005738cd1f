/* The server that the official conformance suite tests: the fixtures that its scenarios
 * name, as far as the library supports them, over HTTP on a free port of loopback. It
 * prints its URL and runs until SIGINT or SIGTERM.
 *
 * Signals are blocked in all threads. One thread waits for them and stops the runtime. So
 * there is no signal handler, which could not call the library. */
#include "conformance/stage.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static void write_log(void *user, int32_t level, const char *text)
{
    (void)user;
    fprintf(stderr, "server: %d: %s\n", level, text);
}

/* ---- signals ---- */

static void stop_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

static void *wait_for_signal(void *user)
{
    sigset_t set;
    int signal_number;
    stop_signals(&set);
    sigwait(&set, &signal_number);
    segue_runtime_stop(user);
    return NULL;
}

/* ---- life ---- */

static segue_status open_runtime(segue_runtime **out)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    options.log = write_log;
    options.log_level = SEGUE_LOG_WARNING;
    return segue_runtime_new(&options, out, NULL);
}

static segue_status open_server(stage *s)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    options.name = "segue-conformance";
    options.version = segue_version();
    segue_status status = segue_server_new(s->runtime, &options, &s->server, NULL);
    if (status == SEGUE_OK)
        status = content_tools_add(s);
    if (status == SEGUE_OK)
        status = task_tools_add(s);
    if (status == SEGUE_OK)
        status = input_tools_add(s);
    if (status == SEGUE_OK)
        status = items_add(s);
    return status;
}

static segue_status listen_on_loopback(stage *s)
{
    segue_listener *listener;
    segue_error *error = NULL;
    segue_status status = segue_server_listen(s->server, NULL, &listener, &error);
    if (status != SEGUE_OK) {
        fprintf(stderr, "server: %s\n", segue_error_read(error)->message);
        segue_error_free(error);
        return status;
    }
    printf("%s\n", segue_listener_url(listener));
    fflush(stdout);
    segue_listener_free(listener);
    return SEGUE_OK;
}

static segue_status serve(stage *s)
{
    pthread_t waiter;
    segue_status status = listen_on_loopback(s);
    if (status != SEGUE_OK)
        return status;
    if (pthread_create(&waiter, NULL, wait_for_signal, s->runtime))
        return SEGUE_E_IO;
    do
        status = segue_runtime_dispatch(s->runtime, stage_tick(s), 0, NULL);
    while (status == SEGUE_OK);
    if (status != SEGUE_E_CLOSED) /* no signal has come, so the thread still waits */
        pthread_kill(waiter, SIGTERM);
    pthread_join(waiter, NULL);
    return status == SEGUE_E_CLOSED ? SEGUE_OK : status;
}

int main(void)
{
    stage s = {0};
    sigset_t set;
    stop_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    segue_status status = open_runtime(&s.runtime);
    if (status == SEGUE_OK) {
        status = open_server(&s);
        if (status == SEGUE_OK)
            status = serve(&s);
    }
    if (status != SEGUE_OK)
        fprintf(stderr, "server: %s\n", segue_status_name(status));
    segue_server_free(s.server);
    segue_runtime_free(s.runtime);
    return status != SEGUE_OK;
}
