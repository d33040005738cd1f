/* Runs a transport's OAuth flow; the flow itself is in the engine. This file provides the
 * flow's HTTP exchanges through the runtime's pool, the application's callbacks from the
 * queue of callbacks, and time limits for both. Only one step runs at a time. Whenever
 * a step has ended, sgi_http_auth_do_next_step does the next step.
 *
 *     refused --> drive --> fetch ... done --> drive --> ready ... callback --> drive
 *                   \--> flow ended: requests are sent
 *
 * Lifetime: the end of the transport ends the flow at once. Only the call of free_user is
 * left; it runs from the queue of callbacks, perhaps after the transport is freed. While
 * a callback runs the transport stays in memory. (A header hook has the same lifetime.)
 *
 * The endpoint's own host is reached in the same way as the endpoint, perhaps through
 * a Unix socket. Other hosts are reached by name, with the same proxy and
 * certificates. */
#include "transport/http_client.h"

#include "transport/http_client_exchange.h"

struct sgi_http_auth {
    sgi_engine *engine;
    sgi_http_client *client; /* the transport; NULL after it has ended */
    sgi_flow *flow;
    sgi_fetcher *elsewhere;
    sgi_fetch *fetch;
    int32_t status; /* HTTP status of the answer to the running exchange */
    sgi_buf body;
    bool overflown;
    /* fires at the time limit of the running exchange, or at the time limit for the
     * user's visit to the browser */
    sgi_timer timer;
    /* true = a step of the authorization flow is running; the next step begins after
     * it */
    bool driving;
    /* true = the application was asked to send the user to the browser */
    bool consent_is_told;
    /* number of the token that was last reported to the conversation */
    uint64_t token;
    sgi_ready_object ready;
    segue_authorize_fn on_authorize;
    segue_assertion_fn on_assertion;
    segue_load_fn on_load;
    segue_save_fn on_save;
    void *user;
    segue_free_fn free_user;
};

sgi_flow *sgi_http_auth_flow(const sgi_http_auth *auth)
{
    return auth->flow;
}

sgi_str sgi_http_auth_header(const sgi_http_auth *auth, uint64_t *token)
{
    *token = 0;
    return auth ? sgi_flow_authorization_header(auth->flow, token) : (sgi_str){0};
}

/* ---- exchanges ---- */

static void stop_fetch(sgi_http_auth *auth)
{
    if (auth->fetch)
        sgi_fetch_cancel(auth->fetch);
    auth->fetch = NULL;
    sgi_engine_clear_timer(auth->engine, &auth->timer);
    sgi_buf_reset(&auth->body, 0);
}

static void took_too_long(sgi_timer *timer)
{
    sgi_http_auth *auth = SGI_OWNER(timer, sgi_http_auth, timer);
    if (auth->consent_is_told) {
        /* does nothing if the user has just come back from the browser */
        sgi_flow_on_consent_timeout(auth->flow);
    } else {
        stop_fetch(auth);
        sgi_flow_on_no_answer(auth->flow, "no answer in time", true);
    }
    sgi_http_auth_do_next_step(auth);
}

/* Starts the time limit of the exchange when the exchange is sent. The time for which the
 * exchange waits for a slot (max_connections) does not count. */
static void take_start(void *user, sgi_fetch *fetch)
{
    sgi_http_auth *auth = user;
    (void)fetch;
    sgi_engine_set_timer(auth->engine, &auth->timer, SGI_FLOW_EXCHANGE_MS, took_too_long);
}

static void take_head(void *user, sgi_fetch *fetch, int32_t status)
{
    sgi_http_auth *auth = user;
    (void)fetch;
    auth->status = status;
}

static void take_bytes(void *user, sgi_fetch *fetch, const char *bytes, size_t len)
{
    sgi_http_auth *auth = user;
    (void)fetch;
    if (len > SGI_FLOW_BODY_MAX - auth->body.len)
        auth->overflown = true;
    else
        sgi_buf_add(&auth->body, bytes, len);
    if (!auth->overflown && !auth->body.failed)
        return;
    bool overflown = auth->overflown;
    stop_fetch(auth);
    sgi_flow_on_no_answer(
        auth->flow, overflown ? "the answer is too large" : "out of memory", !overflown);
    sgi_http_auth_do_next_step(auth);
}

static bool may_pass(sgi_fetch_fault fault)
{
    return fault == SGI_FETCH_UNRESOLVED || fault == SGI_FETCH_UNREACHABLE ||
           fault == SGI_FETCH_TIMEOUT || fault == SGI_FETCH_BROKEN ||
           fault == SGI_FETCH_NOMEM;
}

static void take_end(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome)
{
    sgi_http_auth *auth = user;
    sgi_buf body = auth->body;
    sgi_buf_init(&auth->body, body.mem);
    auth->fetch = NULL;
    sgi_engine_clear_timer(auth->engine, &auth->timer);
    if (outcome->fault == SGI_FETCH_OK)
        sgi_flow_on_answer(auth->flow, auth->status, sgi_buf_str(&body));
    else if (outcome->fault == SGI_FETCH_REDIRECTED)
        sgi_flow_on_http_redirect(auth->flow, sgi_fetch_get_header(fetch, "location"));
    else
        sgi_flow_on_no_answer(auth->flow, outcome->text, may_pass(outcome->fault));
    sgi_buf_free(&body);
    sgi_http_auth_do_next_step(auth);
}

static const sgi_fetch_events events = {
    .started = take_start, .head = take_head, .bytes = take_bytes, .done = take_end};

/* True when an exchange may connect only to public addresses. A URL that the server names
 * may lead to the server's own address (*excepted), but not to another address that only
 * this machine can reach. Before the first response of the server has arrived, the
 * server's address is known only if its URL names this machine. */
static bool must_be_public(const sgi_http_auth *auth, const sgi_flow_exchange *exchange,
                           const sgi_ip_address **excepted)
{
    static const sgi_ip_address local = {AF_INET, {127, 0, 0, 1}};
    const sgi_ip_address *address = sgi_fetcher_last_address(auth->client->fetcher);
    *excepted = address ? address : exchange->is_local ? &local : NULL;
    bool may_be_there = !address || !sgi_ip_address_is_public(address);
    return exchange->public_only && !(exchange->same_host && may_be_there);
}

static void send_exchange(sgi_http_auth *auth)
{
    sgi_flow_exchange exchange;
    sgi_fetch_header_line lines[4];
    sgi_buf body;
    sgi_flow_get_exchange(auth->flow, &exchange);
    sgi_fetch_request request = {.method = exchange.post ? SGI_FETCH_POST : SGI_FETCH_GET,
                                 .url = exchange.url,
                                 .headers = lines,
                                 .once = exchange.post};
    request.public_only = must_be_public(auth, &exchange, &request.excepted);
    lines[request.header_count++] =
        (sgi_fetch_header_line){SGI_STR("Accept"), SGI_STR("application/json")};
    if (exchange.type.n)
        lines[request.header_count++] =
            (sgi_fetch_header_line){SGI_STR("Content-Type"), exchange.type};
    if (exchange.authorization.n)
        lines[request.header_count++] =
            (sgi_fetch_header_line){SGI_STR("Authorization"), exchange.authorization};
    sgi_buf_init(&body, sgi_engine_mem(auth->engine));
    sgi_buf_add_str(&body, exchange.body);
    if (exchange.post)
        request.body = &body;
    auth->status = 0;
    auth->overflown = false;
    sgi_buf_reset(&auth->body, 0);
    segue_status status =
        body.failed ? SEGUE_E_NOMEM
                    : sgi_fetch_start(exchange.at_endpoint ? auth->client->fetcher
                                                           : auth->elsewhere,
                                      &request, &events, auth, &auth->fetch);
    sgi_buf_free(&body);
    if (status == SEGUE_OK)
        return;
    auth->fetch = NULL;
    sgi_flow_on_no_answer(auth->flow,
                          status == SEGUE_E_NOMEM ? "out of memory"
                                                  : "the request cannot be sent",
                          status == SEGUE_E_NOMEM);
}

/* ---- the next step ---- */

/* Reports a new token to the conversation, because another user may have given the
 * consent for this token. */
static void note_token(sgi_http_auth *auth)
{
    sgi_conn *conn = sgi_transport_conn(&auth->client->base);
    uint64_t token;
    sgi_flow_authorization_header(auth->flow, &token);
    if (conn && token != auth->token && sgi_flow_token_is_from_grant(auth->flow))
        sgi_conn_on_credentials_changed(conn);
    auth->token = token;
}

static void set_consent_told(sgi_http_auth *auth, bool is_told)
{
    sgi_conn *conn = auth->client ? sgi_transport_conn(&auth->client->base) : NULL;
    auth->consent_is_told = is_told;
    if (conn)
        sgi_exchange_set_user_deciding(conn, is_told);
}

/* Does the next step of the authorization flow. Returns true when a further step can
 * follow at once. */
static bool do_next(sgi_http_auth *auth)
{
    sgi_flow_need need = sgi_flow_next_need(auth->flow);
    if (need != SGI_FLOW_CONSENT && auth->consent_is_told) {
        set_consent_told(auth, false);
        sgi_engine_clear_timer(auth->engine, &auth->timer);
    }
    switch (need) {
    case SGI_FLOW_NOTHING:
        note_token(auth);
        sgi_client_exchanges_on_token_flow_ended(auth->client);
        return auth->client && sgi_flow_next_need(auth->flow) != SGI_FLOW_NOTHING;
    case SGI_FLOW_EXCHANGE:
        if (auth->fetch)
            return false;
        send_exchange(auth);
        return !auth->fetch;
    case SGI_FLOW_CONSENT:
        if (!auth->consent_is_told)
            sgi_ready_queue_add(auth->engine, &auth->ready);
        return false;
    case SGI_FLOW_LOAD:
    case SGI_FLOW_SAVE:
    case SGI_FLOW_ASSERTION:
        sgi_ready_queue_add(auth->engine, &auth->ready);
        return false;
    }
    return false;
}

void sgi_http_auth_do_next_step(sgi_http_auth *auth)
{
    if (auth->driving)
        return;
    auth->driving = true;
    while (auth->client && do_next(auth))
        continue;
    auth->driving = false;
}

/* ---- the application ---- */

static void load(sgi_http_auth *auth, sgi_buf *text)
{
    size_t len = 0;
    const char *key = sgi_flow_vault_key(auth->flow).p;
    sgi_user_code_begin(auth->engine);
    const char *found = auth->on_load(auth->user, key, &len);
    sgi_user_code_end(auth->engine);
    if (found && len <= SGI_FLOW_BODY_MAX)
        sgi_buf_add(text, found, len);
}

static void save(sgi_http_auth *auth)
{
    const char *key = sgi_flow_vault_key(auth->flow).p;
    sgi_str text = sgi_flow_vault_record(auth->flow);
    sgi_user_code_begin(auth->engine);
    auth->on_save(auth->user, key, text.p, text.n);
    sgi_user_code_end(auth->engine);
}

static void be_told(sgi_http_auth *auth, sgi_buf *text)
{
    size_t len = 0;
    sgi_str issuer = sgi_flow_issuer(auth->flow);
    sgi_str resource = sgi_flow_resource(auth->flow);
    sgi_buf names;
    sgi_buf_init(&names, text->mem);
    sgi_buf_add_str(&names, issuer);
    sgi_buf_add(&names, "", 1);
    sgi_buf_add_str(&names, resource);
    sgi_buf_add(&names, "", 1);
    if (names.failed) {
        sgi_buf_free(&names);
        return;
    }
    sgi_user_code_begin(auth->engine);
    const char *found =
        auth->on_assertion(auth->user, names.p, names.p + issuer.n + 1, &len);
    sgi_user_code_end(auth->engine);
    if (found && len <= SGI_FLOW_BODY_MAX)
        sgi_buf_add(text, found, len);
    sgi_buf_free(&names);
}

/* Asks the application to send the user to the browser. The callback gets copies of the
 * texts, because the user can come back before the callback returns. */
static void send_user(sgi_http_auth *auth, sgi_buf *text)
{
    sgi_str url = sgi_flow_consent_url(auth->flow);
    sgi_str state = sgi_flow_state_parameter(auth->flow);
    set_consent_told(auth, true);
    sgi_engine_set_timer(auth->engine, &auth->timer,
                         sgi_flow_consent_timeout_ms(auth->flow), took_too_long);
    sgi_buf_add(text, url.p, url.n + 1);
    sgi_buf_add(text, state.p, state.n + 1);
    if (text->failed) {
        sgi_flow_on_consent_timeout(auth->flow);
        return;
    }
    sgi_user_code_begin(auth->engine);
    auth->on_authorize(auth->user, text->p, text->p + url.n + 1);
    sgi_user_code_end(auth->engine);
}

static void free_auth(sgi_http_auth *auth)
{
    sgi_ready_queue_remove(auth->engine, &auth->ready);
    sgi_flow_free(auth->flow);
    sgi_buf_free(&auth->body);
    sgi_free(sgi_engine_mem(auth->engine), auth, sizeof *auth);
}

static int32_t finish(sgi_http_auth *auth)
{
    sgi_engine *engine = auth->engine;
    segue_free_fn free_user = auth->free_user;
    void *user = auth->user;
    free_auth(auth);
    return sgi_user_data_free(engine, free_user, user);
}

/* Runs the callback of the current step. The texts that the callback gets belong to the
 * flow, which must not change while the callback runs. Therefore the flow continues only
 * after the callback, when `ready` runs again. */
static int32_t call(sgi_http_auth *auth)
{
    sgi_buf text;
    int32_t ran = 0;
    sgi_flow_need need = sgi_flow_next_need(auth->flow);
    sgi_buf_init(&text, sgi_engine_mem(auth->engine));
    if (need == SGI_FLOW_LOAD) {
        load(auth, &text);
        sgi_flow_on_record_loaded(auth->flow,
                                  text.failed ? (sgi_str){0} : sgi_buf_str(&text));
        ran = 1;
    } else if (need == SGI_FLOW_SAVE) {
        save(auth);
        sgi_flow_on_record_saved(auth->flow);
        ran = 1;
    } else if (need == SGI_FLOW_ASSERTION) {
        be_told(auth, &text);
        sgi_flow_on_assertion(auth->flow,
                              text.failed ? (sgi_str){0} : sgi_buf_str(&text));
        ran = 1;
    } else if (need == SGI_FLOW_CONSENT && !auth->consent_is_told) {
        send_user(auth, &text);
        ran = 1;
    }
    sgi_buf_free(&text);
    return ran;
}

static int32_t deliver(sgi_ready_object *ready, int32_t budget)
{
    sgi_http_auth *auth = SGI_OWNER(ready, sgi_http_auth, ready);
    sgi_http_client *client = auth->client;
    int32_t ran = 0;
    (void)budget;
    if (client) {
        client->base.carrier.held++;
        ran = call(auth);
        client->base.carrier.held--;
        if (auth->client && client->base.state == SGI_TRANSPORT_ATTACHED)
            sgi_http_auth_do_next_step(auth);
    }
    return auth->client ? ran : ran + finish(auth);
}

/* Called on any thread when the flow can continue, for example because the user has come
 * back from the browser. */
static void moved(void *user)
{
    sgi_http_auth *auth = user;
    sgi_ready_queue_add(auth->engine, &auth->ready);
}

/* ---- making and freeing ---- */

segue_status sgi_http_auth_new(sgi_http_client *client, const char *endpoint,
                               const segue_oauth_options *options)
{
    sgi_engine *engine = sgi_runtime_engine(sgi_transport_runtime(&client->base));
    sgi_http_auth *auth = sgi_zalloc(sgi_engine_mem(engine), sizeof *auth);
    if (!auth)
        return SEGUE_E_NOMEM;
    auth->engine = engine;
    sgi_buf_init(&auth->body, sgi_engine_mem(engine));
    auth->ready.run = deliver;
    segue_status status = sgi_flow_new(engine, endpoint, options, &auth->flow);
    if (status == SEGUE_OK)
        status = sgi_fetcher_new_for_other_hosts(client->fetcher, &auth->elsewhere);
    if (status != SEGUE_OK) {
        free_auth(auth);
        return status;
    }
    sgi_flow_set_change_callback(auth->flow, moved, auth);
    auth->on_authorize = options->on_authorize;
    auth->on_assertion = options->on_assertion;
    auth->on_load = options->on_load;
    auth->on_save = options->on_save;
    auth->user = options->user;
    auth->free_user = options->free_user;
    auth->client = client;
    client->auth = auth;
    return SEGUE_OK;
}

void sgi_http_auth_release(sgi_http_auth *auth)
{
    stop_fetch(auth);
    sgi_fetcher_free(auth->elsewhere);
    auth->elsewhere = NULL;
    sgi_flow_stop(auth->flow);
    auth->client = NULL;
    sgi_ready_queue_add(auth->engine, &auth->ready);
}

segue_status sgi_http_pass_redirect(segue_runtime *rt, const char *redirect_url)
{
    sgi_runtime_lock(rt);
    segue_status status =
        sgi_flow_on_browser_redirect(sgi_runtime_engine(rt), sgi_str_of(redirect_url));
    sgi_runtime_unlock(rt);
    return status;
}
