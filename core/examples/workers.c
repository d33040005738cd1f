/* A server whose tool works on threads of its own, and that ends in order: when SIGINT or
 * SIGTERM comes, the calls that run may end, and new ones are refused. It listens on a
 * free port and prints its URL. The tool `primes` sends the primes below a number.
 * core/docs/recipes/workers.md explains the program. */
#include <segue/easy.h>

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS 4

typedef struct job {
    segue_call *call;
    struct job *next;
} job;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static job *first, **last = &first;
static bool ends;

/* ---- a worker ---- */

static job *take(void)
{
    pthread_mutex_lock(&lock);
    while (!first && !ends)
        pthread_cond_wait(&changed, &lock);
    job *taken = first;
    if (taken && !(first = taken->next))
        last = &first;
    pthread_mutex_unlock(&lock);
    return taken;
}

/* Runs on the thread of the runtime, as on_drain and as on_cancel. */
static void wake_workers(void *user, segue_call *call)
{
    (void)user;
    (void)call;
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Sends a number, and waits while too much output waits for the client. The lock is held
 * while the library is asked, so that a worker cannot be woken before it waits. */
static segue_status send_number(segue_call *call, int64_t number)
{
    pthread_mutex_lock(&lock);
    segue_status status = segue_call_printf(call, "%" PRId64 " ", number);
    while (status == SEGUE_E_WOULD_BLOCK) {
        pthread_cond_wait(&changed, &lock);
        status = segue_call_printf(call, "%" PRId64 " ", number);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static bool is_prime(int64_t number)
{
    for (int64_t i = 2; i <= number / i; i++)
        if (number % i == 0)
            return false;
    return number > 1;
}

static void work(segue_call *call)
{
    int64_t below = 100;
    segue_status status = SEGUE_OK;
    segue_call_argument_int(call, "below", &below);
    for (int64_t n = 2; n < below && status == SEGUE_OK; n++) {
        if (segue_call_is_cancelled(call))
            break;
        if (is_prime(n))
            status = send_number(call, n);
    }
    segue_call_complete(call, NULL, NULL);
}

static void *run_worker(void *user)
{
    job *taken;
    while ((taken = take())) {
        work(taken->call);
        segue_call_free(taken->call);
        free(taken);
    }
    return user;
}

/* ---- the thread of the runtime ---- */

static void primes(void *user, segue_call *call)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    job *made = malloc(sizeof *made);
    (void)user;
    events.on_drain = wake_workers;
    events.on_cancel = wake_workers;
    if (!made || segue_call_watch(call, &events) != SEGUE_OK) {
        free(made);
        segue_call_free(call); /* the client gets an error */
        return;
    }
    *made = (job){call, NULL};
    pthread_mutex_lock(&lock);
    *last = made;
    last = &made->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* The listener is closed and the last client has its answer. */
static void on_idle(void *user)
{
    segue_runtime_stop(user);
}

/* ---- the end ---- */

static void *wait_for_signal(void *user)
{
    sigset_t signals;
    int number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigwait(&signals, &number);
    segue_listener_close(user);
    return NULL;
}

static segue_status serve(segue_runtime *runtime, segue_server **server,
                          segue_listener **listener)
{
    const char *tool = "{\"name\":\"primes\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    segue_listen_options listen = SEGUE_LISTEN_OPTIONS_INIT;
    options.user = runtime;
    options.on_idle = on_idle;
    item.on_call = primes;
    item.flags = SEGUE_TOOL_INCREMENTAL;
    listen.drain_ms = 60000;
    segue_status status = segue_server_new(runtime, &options, server, NULL);
    if (status == SEGUE_OK)
        status =
            segue_server_add(*server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL);
    if (status == SEGUE_OK)
        status = segue_server_listen(*server, &listen, listener, NULL);
    return status;
}

int main(void)
{
    segue_runtime *runtime = NULL;
    segue_server *server = NULL;
    segue_listener *listener = NULL;
    pthread_t workers[WORKERS], waiter;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before there are threads */
    segue_status status = segue_runtime_new(NULL, &runtime, NULL);
    if (status == SEGUE_OK)
        status = serve(runtime, &server, &listener);
    if (status != SEGUE_OK) {
        fprintf(stderr, "%s\n", segue_status_text(status));
        return 1;
    }
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&workers[i], NULL, run_worker, NULL) != 0)
            return 1;
    if (pthread_create(&waiter, NULL, wait_for_signal, listener) != 0)
        return 1;
    printf("%s\n", segue_listener_url(listener));
    fflush(stdout);
    segue_runtime_run(runtime);

    pthread_join(waiter, NULL);
    pthread_mutex_lock(&lock);
    ends = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < WORKERS; i++) /* they use calls, so they end before the runtime */
        pthread_join(workers[i], NULL);
    segue_listener_free(listener);
    segue_server_free(server);
    segue_runtime_free(runtime);
    return 0;
}
