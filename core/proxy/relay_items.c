/* Requests for resources, prompts and completion. These requests change nothing, so an
 * interrupted request is sent again. */
#include "relay.h"

#include <stdlib.h>
#include <string.h>

static json params_of(const segue_call *call)
{
    json given = {NULL, 0};
    given.p = segue_call_params(call, &given.n);
    return given;
}

void relay_resource(void *user, segue_call *call)
{
    const item *i = user;
    text params = {.p = NULL};
    const char *uri = segue_call_name(call);
    source *to = i == i->source->any ? source_of_uri(i->source->service, uri) : i->source;
    text_add_str(&params, "{");
    text_add_key(&params, "uri");
    text_add_quoted(&params, uri, strlen(uri));
    relay_add_meta(&params, params_of(call));
    text_add_str(&params, "}");
    relay_begin(i, to, call, "resources/read", &params);
}

void relay_prompt(void *user, segue_call *call)
{
    const item *i = user;
    text params = {.p = NULL};
    json arguments = json_get(params_of(call), "arguments");
    text_add_str(&params, "{");
    text_add_key(&params, "name");
    text_add_quoted(&params, i->name, strlen(i->name));
    if (arguments.n) {
        text_add_key(&params, "arguments");
        text_add_json(&params, arguments);
    }
    relay_add_meta(&params, params_of(call));
    text_add_str(&params, "}");
    relay_begin(i, i->source, call, "prompts/get", &params);
}

void relay_completion(void *user, segue_call *call)
{
    static const char *const own[] = {"ref", "_meta", "inputResponses", "requestState",
                                      NULL};
    static const char *const name[] = {"name", NULL};
    const item *i = user;
    text params = {.p = NULL};
    json given = params_of(call), ref = json_get(given, "ref");
    text_add_str(&params, "{\"ref\":{");
    if (i->list == LIST_PROMPTS) {
        text_add_key(&params, "name");
        text_add_quoted(&params, i->name, strlen(i->name));
    }
    text_add_members(&params, ref, i->list == LIST_PROMPTS ? name : NULL);
    text_add_str(&params, "}");
    text_add_members(&params, given, own);
    relay_add_meta(&params, given);
    text_add_str(&params, "}");
    relay_begin(i, i->source, call, "completion/complete", &params);
}
