/* Segue's client against a server that it spawns, or that runs already and is started
 * again when it dies: one check after another, one JSON line for each.
 *
 *   client modern|legacy|fallback|VERSION COMMAND...|URL
 *
 * modern and legacy force the era. With fallback the client finds it out, at a server
 * that knows only initialize. A VERSION is the only one that the server knows. The
 * servers offer the same tools, whichever SDK they use.
 *
 * A check returns NULL when it passes, otherwise the reason. A reason that begins with
 * "missing: " says that the peer lacks the feature. */
#include "client_asks.h"
#include "client_items.h"
#include "client_life.h"
#include "client_tasks.h"
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIG (8 * 1024 * 1024)
#define CALLS 20

/* ---- checks ---- */

static const char *check_connect(peer *p)
{
    char json[4096];
    size_t len = sizeof json;
    int32_t era = p->era == ERA_MODERN     ? SEGUE_ERA_MODERN
                  : p->era == ERA_FALLBACK ? SEGUE_ERA_AUTO
                                           : SEGUE_ERA_LEGACY;
    segue_status status = open_session(p, era, 0, 0);
    if (status != SEGUE_OK)
        return because("not opened: %s", segue_status_name(status));
    if (!wait_for(p, &p->opens, 1))
        return because("no on_open; closed %d times", p->closes);
    if (segue_session_peer(p->session, json, &len) != SEGUE_OK)
        return "no description of the peer";
    if (!strstr(json, p->version) || !strstr(json, "\"judged\""))
        return because("the peer is %.300s", json);
    return NULL;
}

static const char *check_auto(peer *p)
{
    peer other = {.runtime = p->runtime, .argv = p->argv, .era = p->era};
    char json[4096] = "";
    size_t len = sizeof json;
    const char *reason = NULL;
    if (open_session(&other, SEGUE_ERA_AUTO, 0, 0) != SEGUE_OK)
        return "not opened";
    if (!wait_for(&other, &other.opens, 1))
        reason = "no on_open";
    else if (segue_session_peer(other.session, json, &len) != SEGUE_OK ||
             !strstr(json, "\"2026-07-28\""))
        reason = because("the peer is %.300s", json);
    close_session(&other);
    return reason;
}

static const char *check_ping(peer *p)
{
    return expect(p, "ping", NULL, "{");
}

static const char *check_list(peer *p)
{
    const char *reason = expect(p, "tools/list", NULL, "\"greet\"");
    return reason ? reason : expect(p, "tools/list", "{}", "\"repeat\"");
}

static const char *check_unicode(peer *p)
{
    static const char params[] =
        "{\"name\":\"repeat\",\"arguments\":{\"text\":\"snow \\u2603, emoji "
        "\\ud83d\\ude00, "
        "tab\\t, newline\\n, nul \\u0000, quote \\\" \\\\ \\u2028\"}}";
    static const char text[] =
        "snow \xe2\x98\x83, emoji \xf0\x9f\x98\x80, tab\t, newline\n, "
        "nul \0, quote \" \\ \xe2\x80\xa8";
    return expect_text(p, params, text, sizeof text - 1);
}

static const char *check_structured(peer *p)
{
    return expect(p, "tools/call", "{\"name\":\"add\",\"arguments\":{\"a\":40,\"b\":2}}",
                  "\"structuredContent\":{\"sum\":42}");
}

static const char *check_media(peer *p)
{
    static const char *const parts[] = {"\"iVBORw==\"", "\"image/png\"", "\"audio/wav\"",
                                        "\"inside\""};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *reason = expect(p, "tools/call", "{\"name\":\"media\"}", parts[i]);
        if (reason)
            return reason;
    }
    return NULL;
}

static const char *check_is_error(peer *p)
{
    return expect(p, "tools/call", "{\"name\":\"fail\",\"arguments\":{}}",
                  "\"isError\":true");
}

/* The specification wants a JSON-RPC error; some servers return a result with isError. */
static const char *check_unknown_tool(peer *p)
{
    exchange x;
    const char *reason = ask(p, &x, "tools/call", "{\"name\":\"no_such_tool\"}");
    if (reason && x.status == SEGUE_E_REMOTE)
        reason = x.code == -32602 ? NULL : because("code %d", (int)x.code);
    else if (!reason && !strstr(x.json, "\"isError\":true"))
        reason = because("it answered %.200s", x.json);
    clear(&x);
    return reason;
}

static const char *check_unknown_method(peer *p)
{
    exchange x;
    const char *reason = ask(p, &x, "no/such_method", "{}");
    if (!reason)
        reason = because("it answered %.200s", x.json);
    else if (x.status == SEGUE_E_REMOTE && x.code == -32601)
        reason = NULL;
    else if (x.status == SEGUE_E_REFUSED)
        reason = "missing: it answers with a status of HTTP and no JSON";
    clear(&x);
    return reason;
}

static const char *check_progress(peer *p)
{
    exchange x;
    const char *reason =
        ask(p, &x, "tools/call",
            "{\"name\":\"steps\",\"arguments\":{\"n\":3,\"delayMs\":20}}");
    if (!reason && (x.progress_count != 3 || x.progress_in_order != 3))
        reason =
            because("%d reports, %d in order", x.progress_count, x.progress_in_order);
    clear(&x);
    return reason;
}

/* In the handshake eras a request switches log messages on. */
static const char *turn_log_on(peer *p)
{
    exchange x;
    const char *reason = ask(p, &x, "logging/setLevel", "{\"level\":\"info\"}");
    if (reason && x.code == -32601)
        reason = "missing: no logging/setLevel";
    clear(&x);
    return reason;
}

/* A server may send its messages on a stream of their own, later than the result. */
static const char *check_log(peer *p)
{
    exchange x;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    const char *reason = p->era == ERA_MODERN ? NULL : turn_log_on(p);
    options.log_level = "info";
    p->logs = 0;
    if (reason)
        return reason;
    start(p, &x, "tools/call",
          "{\"name\":\"steps\",\"arguments\":{\"n\":2,\"delayMs\":20}}", &options);
    if (!wait_for(p, &x.done, 1) || x.status != SEGUE_OK)
        reason = because("the call ended with %s", segue_status_name(x.status));
    for (int i = 0; i < 20 && x.log_count + p->logs < 2; i++)
        run_for(p, 50);
    if (!reason && x.log_count + p->logs != 2)
        reason = because("%d messages", x.log_count + p->logs);
    clear(&x);
    return reason;
}

static const char *check_cancel(peer *p)
{
    exchange x;
    const char *reason = NULL;
    if (start(p, &x, "tools/call", "{\"name\":\"hang\",\"arguments\":{}}", NULL) !=
        SEGUE_OK)
        return "not taken";
    run_for(p, 100);
    segue_request_cancel(x.request);
    if (!wait_for(p, &x.done, 1) || x.status != SEGUE_E_CANCELLED)
        reason = because("it ended with %s", segue_status_name(x.status));
    clear(&x);
    return reason ? reason : greet(p);
}

static const char *check_timeout(peer *p)
{
    exchange x;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    const char *reason = NULL;
    options.timeout_ms = 100;
    if (start(p, &x, "tools/call", "{\"name\":\"hang\"}", &options) != SEGUE_OK)
        return "not taken";
    if (!wait_for(p, &x.done, 1) || x.status != SEGUE_E_TIMEOUT)
        reason = because("it ended with %s", segue_status_name(x.status));
    clear(&x);
    return reason ? reason : greet(p);
}

static const char *check_concurrency(peer *p)
{
    exchange calls[CALLS + 1];
    const char *reason = NULL;
    char params[100], text[40];
    /* the slow call lasts until all the others have ended */
    start(p, &calls[CALLS], "tools/call", "{\"name\":\"hang\",\"arguments\":{}}", NULL);
    for (int i = 0; i < CALLS; i++) {
        snprintf(params, sizeof params,
                 "{\"name\":\"greet\",\"arguments\":{\"name\":\"n%d\"}}", i);
        start(p, &calls[i], "tools/call", params, NULL);
    }
    for (int i = 0; i < CALLS && !reason; i++)
        if (!wait_for(p, &calls[i].done, 1) || calls[i].status != SEGUE_OK)
            reason =
                because("call %d ended with %s", i, segue_status_name(calls[i].status));
    for (int i = 0; i < CALLS && !reason; i++) {
        snprintf(text, sizeof text, "Hello, n%d!", i);
        if (!calls[i].text || strcmp(calls[i].text, text) != 0)
            reason = because("call %d has the wrong answer", i);
    }
    if (!reason && calls[CALLS].done)
        reason = because("the slow call ended with %s",
                         segue_status_name(calls[CALLS].status));
    segue_request_cancel(calls[CALLS].request);
    if (!wait_for(p, &calls[CALLS].done, 1) && !reason)
        reason = "the slow call cannot be cancelled";
    for (int i = 0; i <= CALLS; i++)
        clear(&calls[i]);
    return reason;
}

static const char *check_big_result(peer *p)
{
    exchange x;
    char params[80];
    snprintf(params, sizeof params, "{\"name\":\"big\",\"arguments\":{\"bytes\":%d}}",
             BIG);
    const char *reason = ask(p, &x, "tools/call", params);
    if (!reason && x.text_len != BIG)
        reason = because("%zu bytes came", x.text_len);
    clear(&x);
    return reason;
}

static const char *check_big_arguments(peer *p)
{
    static const char head[] = "{\"name\":\"repeat\",\"arguments\":{\"text\":\"";
    char *params = malloc(sizeof head + BIG + 4);
    if (!params)
        return "out of memory";
    memcpy(params, head, sizeof head - 1);
    memset(params + sizeof head - 1, 'y', BIG);
    memcpy(params + sizeof head - 1 + BIG, "\"}}", 4);
    const char *reason = expect_text(p, params, params + sizeof head - 1, BIG);
    free(params);
    return reason;
}

static const char *toggle_and_wait(peer *p)
{
    /* Twice at most: a server may report that it listens before it does. */
    for (int i = 0; i < 2; i++) {
        const char *reason = expect(p, "tools/call", "{\"name\":\"toggle\"}", "changed");
        if (reason)
            return reason;
        if (wait_for(p, &p->list_changes, 1))
            return NULL;
    }
    return "no notification";
}

static const char *listen_and_toggle(peer *p, int64_t pause_ms)
{
    exchange listen;
    const char *reason = NULL;
    start(p, &listen, "subscriptions/listen",
          "{\"notifications\":{\"toolsListChanged\":true}}", NULL);
    if (!wait_for(p, &p->acknowledged, 1))
        reason = because("no acknowledgement; the request is %s",
                         segue_status_name(listen.status));
    run_for(p, pause_ms);
    if (!reason)
        reason = toggle_and_wait(p);
    segue_request_cancel(listen.request);
    if (!wait_for(p, &listen.done, 1) || listen.status != SEGUE_E_CANCELLED)
        reason =
            because("the subscription ended with %s", segue_status_name(listen.status));
    clear(&listen);
    return reason ? reason : greet(p);
}

static const char *check_list_changed(peer *p)
{
    p->list_changes = p->acknowledged = 0;
    return p->era == ERA_MODERN ? listen_and_toggle(p, 0) : toggle_and_wait(p);
}

/* Opens a session with a short limit for requests, at a server that answers within it. A
 * server that starts on a busy machine may take longer: then the limit is doubled. */
static const char *open_impatient(peer *p, int64_t *timeout_ms)
{
    const char *reason = "not opened";
    for (*timeout_ms = 1000; *timeout_ms < 60000; *timeout_ms *= 2) {
        if (open_session(p, SEGUE_ERA_MODERN, 0, *timeout_ms) != SEGUE_OK)
            return "not opened";
        reason = greet(p);
        if (!reason)
            return NULL;
        if (!close_session(p))
            return "no on_closed";
    }
    return reason;
}

static const char *check_long_subscription(peer *p)
{
    peer other = {.runtime = p->runtime, .argv = p->argv, .era = p->era};
    int64_t timeout_ms;
    const char *reason = open_impatient(&other, &timeout_ms);
    if (reason)
        return reason;
    reason = listen_and_toggle(&other, timeout_ms + 500);
    if (!close_session(&other) && !reason)
        reason = "no on_closed";
    return reason;
}

static const char *check_close(peer *p)
{
    return close_session(p) ? NULL : "no on_closed";
}

enum { BY_STDIO = 1, BY_HTTP = 2, BY_BOTH = 3 };

static const struct {
    const char *what;
    const char *(*run)(peer *p);
    int eras;
    int by;
} checks[] = {
    {"connect", check_connect, ERA_ALL | ERA_OLD, BY_BOTH},
    {"connect: finds the era itself", check_auto, ERA_MODERN, BY_BOTH},
    {"ping", check_ping, ERA_LEGACY | ERA_FALLBACK | ERA_OLD, BY_BOTH},
    {"tools/list", check_list, ERA_ALL | ERA_OLD, BY_BOTH},
    {"tools/call", greet, ERA_ALL | ERA_OLD, BY_BOTH},
    {"tools/call: unicode and control characters", check_unicode, ERA_ALL | ERA_OLD,
     BY_BOTH},
    {"structuredContent", check_structured, ERA_ALL, BY_BOTH},
    {"content: image, audio, resource", check_media, ERA_ALL, BY_BOTH},
    {"isError", check_is_error, ERA_ALL | ERA_OLD, BY_BOTH},
    {"error: unknown tool", check_unknown_tool, ERA_ALL | ERA_OLD, BY_BOTH},
    {"error: unknown method", check_unknown_method, ERA_ALL | ERA_OLD, BY_BOTH},
    {"progress", check_progress, ERA_ALL | ERA_OLD, BY_BOTH},
    {"log messages", check_log, ERA_ALL, BY_BOTH},
    {"cancel", check_cancel, ERA_ALL | ERA_OLD, BY_BOTH},
    {"timeout", check_timeout, ERA_ALL, BY_BOTH},
    {"concurrency: 20 calls and a slow one", check_concurrency, ERA_ALL, BY_BOTH},
    {"large result, 8 MiB", check_big_result, ERA_MODERN | ERA_LEGACY | ERA_OLD, BY_BOTH},
    {"large arguments, 8 MiB", check_big_arguments, ERA_MODERN | ERA_LEGACY, BY_BOTH},
    {"list_changed", check_list_changed, ERA_ALL, BY_BOTH},
    {"a subscription outlives the request timeout", check_long_subscription, ERA_MODERN,
     BY_BOTH},
    {"resources/list", check_resources, ERA_ALL | ERA_OLD, BY_BOTH},
    {"resources/templates/list", check_templates, ERA_ALL | ERA_OLD, BY_BOTH},
    {"resources/read: text and blob", check_read, ERA_ALL | ERA_OLD, BY_BOTH},
    {"resources/read: by a template", check_read_template, ERA_ALL, BY_BOTH},
    {"resources/read: not found", check_read_nowhere, ERA_ALL, BY_BOTH},
    {"prompts/list", check_prompts, ERA_ALL | ERA_OLD, BY_BOTH},
    {"prompts/get: arguments", check_prompt_arguments, ERA_ALL | ERA_OLD, BY_BOTH},
    {"prompts/get: image and resource", check_prompt_blocks, ERA_ALL, BY_BOTH},
    {"completion/complete", check_completion, ERA_ALL | ERA_OLD, BY_BOTH},
    {"a resource changes", check_update, ERA_ALL, BY_BOTH},
    {"list_changed: resources and prompts", check_item_lists, ERA_ALL, BY_BOTH},
    {"elicitation: form", check_form, ERA_ALL, BY_BOTH},
    {"elicitation: declined", check_decline, ERA_ALL, BY_BOTH},
    {"elicitation: two in turn", check_rounds, ERA_ALL, BY_BOTH},
    {"sampling", check_sampling, ERA_ALL | ERA_OLD, BY_BOTH},
    {"roots", check_roots, ERA_ALL | ERA_OLD, BY_BOTH},
    {"task: create, get, result", check_task_result, ERA_LEGACY, BY_BOTH},
    {"task: one that fails", check_task_failure, ERA_LEGACY, BY_BOTH},
    {"task: cancel", check_task_cancel, ERA_LEGACY, BY_BOTH},
    {"task: detach and find again by id", check_task_found_again, ERA_LEGACY, BY_BOTH},
    {"task: list", check_task_list, ERA_LEGACY, BY_BOTH},
    {"task: an unknown one", check_task_unknown, ERA_LEGACY, BY_BOTH},
    {"reconnect: a stream is cut", check_cut, ERA_ALL, BY_HTTP},
    {"the server dies in mid-call and comes back", check_return, ERA_ALL, BY_HTTP},
    {"close", check_close, ERA_ALL, BY_BOTH},
    {"the server dies in mid-call", check_death, ERA_MODERN | ERA_FALLBACK, BY_STDIO},
    {"the server dies and is started again", check_restart, ERA_MODERN | ERA_FALLBACK,
     BY_STDIO},
};

/* Returns the era by its name on the command line; 0 when there is none of that name. */
static int era_of(const char *name, const char **version)
{
    *version = "2025-11-25";
    if (!strcmp(name, "legacy"))
        return ERA_LEGACY;
    if (!strcmp(name, "fallback"))
        return ERA_FALLBACK;
    *version = strcmp(name, "modern") != 0 ? name : "2026-07-28";
    return *version != name ? ERA_MODERN : !strncmp(name, "202", 3) ? ERA_OLD : 0;
}

int main(int argc, char **argv)
{
    peer p = {0};
    if (argc > 2)
        p.era = era_of(argv[1], &p.version);
    if (!p.era) {
        fprintf(stderr, "usage: %s modern|legacy|fallback|VERSION COMMAND...|URL\n",
                argv[0]);
        return 2;
    }
    p.argv = (const char *const *)argv + 2;
    if (segue_runtime_new(NULL, &p.runtime, NULL) != SEGUE_OK)
        return 2;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].eras & p.era && checks[i].by & (is_http(&p) ? BY_HTTP : BY_STDIO))
            report(checks[i].what, checks[i].run(&p));
    segue_session_free(p.session);
    segue_runtime_free(p.runtime);
    return 0;
}
