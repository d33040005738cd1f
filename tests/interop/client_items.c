/* Segue's client reads resources, prompts and completions, and receives their changes. */
#include "client_items.h"

#include <stdio.h>
#include <string.h>

#define UPDATED "\"uri\":\"test://static-text\""
#define READ(uri) "{\"uri\":\"" uri "\"}"

/* Does what expect does, for a method that the peer may not have. */
static const char *expect_of(peer *p, const char *method, const char *params,
                             const char *part)
{
    exchange x;
    const char *reason = ask(p, &x, method, params);
    if (reason && x.code == -32601)
        reason = because("missing: no %s", method);
    else if (!reason && !strstr(x.json, part))
        reason = because("%s is not in %.200s", part, x.json);
    clear(&x);
    return reason;
}

const char *check_resources(peer *p)
{
    return expect_of(p, "resources/list", NULL, UPDATED);
}

const char *check_templates(peer *p)
{
    return expect_of(p, "resources/templates/list", NULL,
                     "\"test://template/{id}/data\"");
}

const char *check_read(peer *p)
{
    const char *reason =
        expect_of(p, "resources/read", READ("test://static-text"),
                  "\"This is the content of the static text resource.\"");
    return reason ? reason
                  : expect_of(p, "resources/read", READ("test://static-binary"),
                              "\"blob\":\"iVBORwA=\"");
}

const char *check_read_template(peer *p)
{
    return expect_of(p, "resources/read", READ("test://template/7/data"), "Data of 7");
}

/* -32602 in 2026-07-28, -32002 before; the SDKs are not strict about it. */
const char *check_read_nowhere(peer *p)
{
    exchange x;
    const char *reason = ask(p, &x, "resources/read", READ("test://nowhere"));
    if (!reason)
        reason = because("it answered %.200s", x.json);
    else if (x.status == SEGUE_E_REMOTE && (x.code == -32602 || x.code == -32002))
        reason = NULL;
    clear(&x);
    return reason;
}

const char *check_prompts(peer *p)
{
    return expect_of(p, "prompts/list", NULL, "\"arg1\"");
}

const char *check_prompt_arguments(peer *p)
{
    return expect_of(p, "prompts/get",
                     "{\"name\":\"arguments\",\"arguments\":{\"arg1\":\"x\",\"arg2\":"
                     "\"y\"}}",
                     "Prompt with arguments: arg1='x', arg2='y'");
}

const char *check_prompt_blocks(peer *p)
{
    const char *reason =
        expect_of(p, "prompts/get", "{\"name\":\"blocks\"}", "\"data\":\"cG5n\"");
    return reason ? reason
                  : expect_of(p, "prompts/get", "{\"name\":\"blocks\"}", "\"Embedded.\"");
}

const char *check_completion(peer *p)
{
    return expect_of(p, "completion/complete",
                     "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"arguments\"},"
                     "\"argument\":{\"name\":\"arg1\",\"value\":\"par\"}}",
                     "[\"paris\",\"park\"]");
}

/* ---- changes ---- */

static const char *call_and_wait(peer *p, const char *tool, const int *first,
                                 const int *second)
{
    char params[100];
    snprintf(params, sizeof params, "{\"name\":\"%s\",\"arguments\":{}}", tool);
    /* Twice at most: a server may report that it listens before it does, and changes in
     * between are lost. */
    for (int i = 0; i < 2; i++) {
        const char *reason = expect(p, "tools/call", params, "d\"");
        if (reason)
            return reason;
        if (wait_for(p, first, 1) && wait_for(p, second, 1))
            return NULL;
    }
    return "no notification";
}

/* Listens while the tool is called. */
static const char *listen_and_call(peer *p, const char *filter, const char *tool,
                                   const int *first, const int *second)
{
    exchange listen;
    const char *reason = NULL;
    p->acknowledged = 0;
    start(p, &listen, "subscriptions/listen", filter, NULL);
    for (int i = 0; i < 200 && !p->acknowledged && !listen.done; i++)
        run_for(p, 50);
    if (!p->acknowledged)
        reason = because("no acknowledgement; the request is %s",
                         segue_status_name(listen.status));
    if (!reason)
        reason = call_and_wait(p, tool, first, second);
    clear(&listen);
    return reason;
}

const char *check_update(peer *p)
{
    p->updates = 0;
    if (p->era == ERA_MODERN)
        return listen_and_call(
            p, "{\"notifications\":{\"resourceSubscriptions\":[\"test://static-text\"]}}",
            "update", &p->updates, &p->updates);
    const char *reason =
        expect_of(p, "resources/subscribe", READ("test://static-text"), "{");
    if (!reason)
        reason = call_and_wait(p, "update", &p->updates, &p->updates);
    return reason
               ? reason
               : expect_of(p, "resources/unsubscribe", READ("test://static-text"), "{");
}

const char *check_item_lists(peer *p)
{
    p->resource_lists = p->prompt_lists = 0;
    return p->era == ERA_MODERN
               ? listen_and_call(p,
                                 "{\"notifications\":{\"resourcesListChanged\":true,"
                                 "\"promptsListChanged\":true}}",
                                 "toggle_items", &p->resource_lists, &p->prompt_lists)
               : call_and_wait(p, "toggle_items", &p->resource_lists, &p->prompt_lists);
}
