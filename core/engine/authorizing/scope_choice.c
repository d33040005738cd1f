/* Which scopes are asked for (2026-07-28 basic/authorization, "Scope Selection Strategy"
 * and "Step-Up Authorization Flow"): what the challenge names, else all that the
 * resource's metadata offers, else what the application has set, else none is said. To
 * that goes what was asked for before, so that a step up loses nothing; and
 * offline_access, where the authorization server knows it and any scope is named at all:
 * alone it would narrow what the server grants by itself. */
#include "engine/authorizing/flow_state.h"

#define OFFLINE SGI_STR("offline_access")

/* What is not made of scopes names none, nor does what is too long for a URL: lists are
 * looked through for each scope. */
void sgi_flow_add_scopes(sgi_buf *set, sgi_str more)
{
    if (more.n <= SGI_FLOW_SCOPES_MAX && set->len <= SGI_FLOW_SCOPES_MAX - more.n &&
        sgi_scopes_valid(more))
        sgi_scopes_join(set, more);
}

void sgi_flow_choose_scopes(sgi_flow *flow)
{
    sgi_buf *asked = &flow->text[SGI_FT_ASKED];
    if (sgi_ft_has(flow, SGI_FT_WANTED))
        sgi_flow_add_scopes(asked, sgi_ft(flow, SGI_FT_WANTED));
    else if (sgi_ft_has(flow, SGI_FT_OFFERED))
        sgi_flow_add_scopes(asked, sgi_ft(flow, SGI_FT_OFFERED));
    else
        sgi_flow_add_scopes(asked, sgi_ft(flow, SGI_FT_SET_SCOPE));
    if (flow->offline && flow->grant == SEGUE_OAUTH_CODE && asked->len)
        sgi_flow_add_scopes(asked, OFFLINE);
}
