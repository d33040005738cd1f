/* Asks the application for headers. The callback runs from the queue of callbacks and
 * gets the transport as an argument. The transport stays in memory while the callback
 * runs. */
#include "transport/http_client_exchange.h"

struct sgi_header_hook {
    sgi_engine *engine;
    sgi_ready_object ready;
    segue_headers_fn fn;
    void *user;
    segue_free_fn free_user;
    /* the client whose exchanges wait for the headers; NULL = no exchange waits */
    sgi_http_client *client;
    int32_t status;
    bool ended;
};

static void note_waiting(sgi_http_client *client)
{
    sgi_client_exchange *exchange;
    TAILQ_FOREACH(exchange, &client->exchanges, link) {
        if (exchange->headers == SGI_HEADERS_WANTED)
            exchange->headers = SGI_HEADERS_ASKED;
    }
}

static void send_waiting(sgi_http_client *client)
{
    sgi_client_exchange *exchange, *next;
    SGI_TAILQ_EACH(exchange, &client->exchanges, link, next) {
        if (exchange->headers == SGI_HEADERS_ASKED)
            sgi_client_exchange_send(exchange);
    }
}

static int32_t ask_application(sgi_header_hook *hook)
{
    sgi_http_client *client = hook->client;
    int32_t status = hook->status;
    hook->client = NULL;
    hook->status = 0;
    note_waiting(client);
    client->base.carrier.held++;
    sgi_user_code_begin(hook->engine);
    hook->fn(hook->user, &client->base, status);
    sgi_user_code_end(hook->engine);
    client->base.carrier.held--;
    if (client->base.state == SGI_TRANSPORT_ATTACHED)
        send_waiting(client);
    return 1;
}

static int32_t finish(sgi_header_hook *hook)
{
    sgi_engine *engine = hook->engine;
    segue_free_fn free_user = hook->free_user;
    void *user = hook->user;
    sgi_header_hook_free(hook);
    return sgi_user_data_free(engine, free_user, user);
}

static int32_t deliver(sgi_ready_object *ready, int32_t budget)
{
    sgi_header_hook *hook = SGI_OWNER(ready, sgi_header_hook, ready);
    int32_t ran = 0;
    (void)budget;
    if (hook->client && !hook->ended)
        ran = ask_application(hook);
    return hook->ended ? ran + finish(hook) : ran;
}

sgi_header_hook *sgi_header_hook_new(sgi_engine *engine, segue_headers_fn fn, void *user,
                                     segue_free_fn free_user)
{
    sgi_header_hook *hook = sgi_zalloc(sgi_engine_mem(engine), sizeof *hook);
    if (!hook)
        return NULL;
    hook->engine = engine;
    hook->ready.run = deliver;
    hook->fn = fn;
    hook->user = user;
    hook->free_user = free_user;
    return hook;
}

void sgi_header_hook_free(sgi_header_hook *hook)
{
    if (!hook)
        return;
    sgi_ready_queue_remove(hook->engine, &hook->ready);
    sgi_free(sgi_engine_mem(hook->engine), hook, sizeof *hook);
}

bool sgi_header_hook_has_callback(const sgi_header_hook *hook)
{
    return hook && hook->fn;
}

void sgi_header_hook_run(sgi_header_hook *hook, sgi_http_client *client, int32_t status)
{
    hook->client = client;
    if (status)
        hook->status = status;
    sgi_ready_queue_add(hook->engine, &hook->ready);
}

void sgi_header_hook_end(sgi_header_hook *hook)
{
    hook->ended = true;
    hook->client = NULL;
    sgi_ready_queue_add(hook->engine, &hook->ready);
}
