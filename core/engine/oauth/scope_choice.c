/* Chooses the scopes to request (2026-07-28 basic/authorization, "Scope Selection
 * Strategy" and "Step-Up Authorization Flow"): the scopes of the challenge, else all
 * scopes that the resource's metadata offers, else those of the application, else no
 * scopes. Scopes that were requested before are added, so that the new token has at least
 * the rights of the old one. offline_access is added when the authorization server offers
 * it and at least one other scope is requested. A request with offline_access alone would
 * get less than a request without scopes. */
#include "engine/oauth/flow_state.h"

#define OFFLINE SGI_STR("offline_access")

/* Adds to `set` the scopes of `more` that it lacks. Ignores a text that is not a list of
 * scopes, or that is too long for a URL. The set is searched once for each scope, so it
 * must stay small. */
void sgi_flow_add_scopes(sgi_buf *set, sgi_str more)
{
    if (more.n <= SGI_FLOW_SCOPES_MAX && set->len <= SGI_FLOW_SCOPES_MAX - more.n &&
        sgi_scopes_are_valid(more))
        sgi_scopes_join(set, more);
}

void sgi_flow_choose_scopes(sgi_flow *flow)
{
    sgi_buf *asked = &flow->text[SGI_FT_ASKED];
    if (sgi_flow_text_is_set(flow, SGI_FT_WANTED))
        sgi_flow_add_scopes(asked, sgi_flow_text_of(flow, SGI_FT_WANTED));
    else if (sgi_flow_text_is_set(flow, SGI_FT_OFFERED))
        sgi_flow_add_scopes(asked, sgi_flow_text_of(flow, SGI_FT_OFFERED));
    else
        sgi_flow_add_scopes(asked, sgi_flow_text_of(flow, SGI_FT_SET_SCOPE));
    if (flow->offline && flow->grant == SEGUE_OAUTH_CODE && asked->len)
        sgi_flow_add_scopes(asked, OFFLINE);
}
