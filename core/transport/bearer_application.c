/* Asks the application about a token. The callback runs from the queue of callbacks, and
 * the application may answer at any later time. The application owns the handle and may
 * use the handle after the request has ended. Therefore the handle has its own copy of
 * the token, which is overwritten with zeros when the handle is freed. */
#include "transport/bearer.h"

#include <stdio.h>

#include "wire/scopes.h"

static void destroy(segue_bearer *bearer)
{
    size_t size = sizeof *bearer + bearer->len + 1;
    bearer->handle.magic = SGI_MAGIC_FREED;
    for (volatile char *p = bearer->token; *p; p++)
        *p = 0;
    sgi_free(sgi_engine_mem(bearer->handle.engine), bearer, size);
}

static int32_t run(sgi_ready_object *ready, int32_t budget)
{
    segue_bearer *bearer = SGI_OWNER(ready, segue_bearer, ready);
    sgi_engine *engine = bearer->handle.engine;
    sgi_bearer_check *check = bearer->check;
    (void)budget;
    bearer->handle.magic = SGI_MAGIC_BEARER;
    sgi_engine_ref(engine);
    segue_bearer_fn fn = check->gate->options.on_bearer;
    void *user = check->gate->options.user;
    segue_transport *transport = check->transport;
    check->shown(check, true);
    sgi_user_code_begin(engine);
    fn(user, transport, bearer);
    sgi_user_code_end(engine);
    check->shown(check, false);
    return 1;
}

sgi_bearer_verdict sgi_bearer_ask_application(sgi_bearer_gate *gate,
                                              sgi_bearer_check *check)
{
    size_t len = check->token.n;
    segue_bearer *bearer =
        sgi_alloc(sgi_engine_mem(gate->engine), sizeof *bearer + len + 1);
    if (!bearer)
        return SGI_BEARER_UNCHECKED;
    *bearer = (segue_bearer){.handle = {0, gate->engine}, .check = check, .len = len};
    bearer->ready.run = run;
    memcpy(bearer->token, check->token.p, len);
    bearer->token[len] = 0;
    check->gate = gate;
    check->asked = bearer;
    sgi_ready_queue_add(gate->engine, &bearer->ready);
    return SGI_BEARER_WAITING;
}

void sgi_bearer_ignore_application(segue_bearer *bearer)
{
    bearer->check = NULL;
    if (bearer->handle.magic == SGI_MAGIC_BEARER)
        /* the callback has run, so the application owns the handle and frees it */
        return;
    sgi_ready_queue_remove(bearer->handle.engine, &bearer->ready);
    destroy(bearer);
}

/* Marks the token as decided. Returns the check that waits for the decision, or NULL when
 * no check waits. */
static sgi_bearer_check *decide(segue_bearer *bearer)
{
    sgi_bearer_check *check = bearer->check;
    bearer->decided = true;
    bearer->check = NULL;
    if (check)
        check->asked = NULL;
    return check;
}

static void tell(sgi_bearer_check *check, sgi_bearer_verdict verdict)
{
    check->gate = NULL;
    check->verdict = verdict;
    check->decided(check);
}

segue_status sgi_bearer_accept(segue_bearer *bearer, const char *principal,
                               sgi_str scopes, int64_t expires_ms)
{
    if (!principal || !*principal || expires_ms < 0 || !sgi_scopes_are_valid(scopes) ||
        !sgi_utf8_valid(sgi_str_of(principal), NULL))
        return SEGUE_E_INVALID;
    if (bearer->decided)
        return SEGUE_E_TERMINAL;
    sgi_bearer_check *check = decide(bearer);
    if (!check)
        return SEGUE_OK;
    sgi_bearer_gate *gate = check->gate;
    if (!expires_ms)
        expires_ms = INT64_MAX;
    if (sgi_wall_now(sgi_engine_env(gate->engine)) >= expires_ms) {
        snprintf(check->why, sizeof check->why, "%s",
                 sgi_jwt_fault_text(SGI_JWT_EXPIRED));
        tell(check, SGI_BEARER_BAD);
    } else {
        tell(check, sgi_bearer_make_grant(gate, check, principal, scopes, expires_ms));
    }
    return SEGUE_OK;
}

segue_status sgi_bearer_refuse(segue_bearer *bearer, const char *reason)
{
    sgi_str text = sgi_str_of(reason);
    if (text.n > 200 || !sgi_scopes_are_valid(text))
        return SEGUE_E_INVALID;
    if (bearer->decided)
        return SEGUE_E_TERMINAL;
    sgi_bearer_check *check = decide(bearer);
    if (!check)
        return SEGUE_OK;
    snprintf(check->why, sizeof check->why, "%s", reason ? reason : "");
    tell(check, SGI_BEARER_BAD);
    return SEGUE_OK;
}

void sgi_bearer_free(segue_bearer *bearer)
{
    sgi_bearer_check *check = decide(bearer);
    if (check)
        tell(check, SGI_BEARER_UNCHECKED);
    destroy(bearer);
}
