/* The former call of a relay: its client gets a handle as the answer, when the log of the
 * call has room. The answer replaces the segments that the client was shown, so without
 * room for the replacement there is no answer yet. */
#include "relay.h"

void relay_forget_former(relay *r)
{
    segue_call_free(r->former.call);
    text_free(&r->former.answer);
    r->former = (former){.call = NULL};
}

static void fail(relay *r, const segue_error *error)
{
    segue_call *call = r->former.call;
    if (!error || segue_call_fail_with(call, error, NULL) != SEGUE_OK)
        segue_call_fail(call, -32603, "The proxy cannot answer the call", NULL, 0, NULL);
    relay_forget_former(r);
}

void relay_fail_former(relay *r, const segue_error *error)
{
    if (r->former.call && !r->former.answer.len)
        fail(r, error);
}

void relay_drain_former(relay *r)
{
    former *f = &r->former;
    segue_error *error = NULL;
    if (!f->answer.len)
        return; /* a segment has waited for the room, and the answer is still to come */
    segue_status status =
        f->has_segments ? segue_call_replace(f->call, &error) : SEGUE_OK;
    f->has_segments &= status != SEGUE_OK;
    if (status == SEGUE_OK) /* it is not checked against the outputSchema of the tool */
        status = segue_call_complete_json(f->call, f->answer.p, f->answer.len, &error);
    if (status == SEGUE_OK)
        relay_forget_former(r);
    else if (status != SEGUE_E_WOULD_BLOCK)
        fail(r, error);
    segue_error_free(error);
}

void relay_answer_former(relay *r, json result)
{
    text *answer = &r->former.answer;
    if (!r->former.call || answer->len)
        return;
    text_add_json(answer, result);
    if (answer->failed)
        fail(r, NULL);
    else
        relay_drain_former(r);
}
