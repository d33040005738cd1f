/* Calls of tools. An interrupted call is sent again only if it cannot run twice, or if a
 * second run does no harm. */
#include "handle.h"
#include "limits.h"
#include "service.h"

#include <stdlib.h>
#include <string.h>

void relay_tool(void *user, segue_call *call)
{
    static const char *const own[] = {"name",           "_meta",        "task",
                                      "inputResponses", "requestState", NULL};
    const item *i = user;
    text params = {.p = NULL};
    json given = {NULL, 0};
    if (i->source->proxy->config.handle && handle_adopt(i, call))
        return;
    given.p = segue_call_params(call, &given.n);
    text_add_str(&params, "{");
    text_add_key(&params, "name");
    text_add_quoted(&params, i->name, strlen(i->name));
    text_add_members(&params, given, own);
    relay_add_meta(&params, given);
    text_add_str(&params, "}");
    relay_begin(i, i->source, call, "tools/call", &params);
}

static bool hints_allow(const relay *r)
{
    const item *i = r->item;
    if (i->repeat != REPEAT_BY_HINT)
        return i->repeat == REPEAT_ALWAYS;
    return r->up->source->config->trust_hints && (i->read_only || i->idempotent);
}

bool relay_has_key(const relay *r)
{
    return r->is_tool && r->item->repeat != REPEAT_NEVER;
}

/* True when the upstream runs the call once, however often it gets it. */
static bool is_keyed(const relay *r)
{
    return relay_has_key(r) && r->up->source->can.keys;
}

bool relay_may_repeat(const relay *r)
{
    if (r->attempts >= CALL_ATTEMPTS_MAX)
        return false;
    if (!r->is_tool)
        return true; /* reading changes nothing */
    return is_keyed(r) || hints_allow(r);
}

/* ---- a call that an earlier process began ---- */

/* Takes the token of the upstream's task or resumable request. Keeps the earlier token
 * when the request has none. */
static void take_token(relay *r)
{
    size_t len = 0;
    if (!r->request || segue_request_token(r->request, NULL, &len) != SEGUE_OK)
        return;
    char *token = malloc(++len);
    if (token && segue_request_token(r->request, token, &len) == SEGUE_OK) {
        free(r->token);
        r->token = token;
        token = NULL;
    }
    free(token);
}

segue_status relay_mark(relay *r)
{
    text data = {.p = NULL};
    segue_status status = SEGUE_E_NOMEM;
    r->passage.checkpoint_due = false;
    if (!r->call || !r->is_tool)
        return SEGUE_OK;
    text_add_str(&data, "{");
    if (is_keyed(r)) {
        text_add_key(&data, "key");
        text_add_quoted(&data, r->key, strlen(r->key));
    }
    if (r->token) {
        text_add_key(&data, "token");
        text_add_quoted(&data, r->token, strlen(r->token));
    }
    segments_write_position(&r->passage, &data);
    text_add_str(&data, "}");
    if (!data.failed)
        status = segue_call_checkpoint(r->call, data.p, data.len, NULL);
    r->passage.checkpoint_due = status == SEGUE_E_WOULD_BLOCK;
    text_free(&data);
    return status;
}

segue_status relay_checkpoint(relay *r)
{
    if (is_keyed(r) || r->token || r->unsent)
        return relay_mark(r);
    r->passage.checkpoint_due = false;
    return SEGUE_OK; /* the call is not continued, so its position says nothing */
}

void relay_send_when_stored(relay *r)
{
    bool stays = r->is_tool && r->up->source->service->store;
    segue_status status = stays ? relay_mark(r) : SEGUE_E_STATE;
    r->unsent = status == SEGUE_OK || status == SEGUE_E_WOULD_BLOCK;
    if (status == SEGUE_E_STATE)
        relay_send(r); /* nothing is stored, so there is nothing to wait for */
    else if (!r->unsent)
        relay_fail(r, "store_failed", "The call cannot be stored, so it was not sent");
}

void relay_renew_checkpoint(relay *r)
{
    if (!r->resumable || r->passage.waiting.block.n)
        return;
    take_token(r);
    relay_checkpoint(r);
}

/* Takes the idempotency key of the earlier request from the checkpoint. Returns false
 * when the checkpoint has no valid key. */
static bool take_key(relay *r, json checkpoint)
{
    char *key = json_string(json_get(checkpoint, "key"));
    bool taken = key && strlen(key) == RELAY_KEY;
    if (taken)
        memcpy(r->key, key, RELAY_KEY);
    free(key);
    return taken;
}

void relay_resume(relay *r)
{
    const void *bytes = NULL;
    uint64_t segment = 0;
    json checkpoint = {NULL, 0};
    segue_call_resumed(r->call, &segment, &bytes, &checkpoint.n);
    if (!checkpoint.n) { /* the call was never sent */
        relay_send_when_stored(r);
        return;
    }
    checkpoint.p = bytes;
    segments_read_position(&r->passage, checkpoint, segment);
    char *token = json_string(json_get(checkpoint, "token"));
    bool keyed = take_key(r, checkpoint);
    if (token)
        relay_follow(r, token);
    else if ((keyed && r->up->source->can.keys) || hints_allow(r))
        relay_send(r);
    else
        relay_fail(r, "outcome_unknown",
                   "outcome unknown: the proxy ended while the call ran. The call may "
                   "have run, so it is not sent again");
    free(token);
}
