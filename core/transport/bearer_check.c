/* One request and its token. A token that was found good is found again by its digest;
 * else it is checked here and now, unless its key has to be fetched, or the application
 * decides. What waits for keys is checked once more when they are there, and not a second
 * time: a key that is still missing is an invention. Where nobody may look now, or the
 * look brought nothing, that is not known: the caller is told to come again.
 *
 * What a caller is told of a bad token are fixed texts: nothing of the token itself. */
#include "transport/bearer.h"

#include <stdio.h>

#include "wire/form.h"
#include "wire/http1_head.h"
#include "wire/scopes.h"

static sgi_bearer_verdict refuse(sgi_bearer_check *check, const char *why)
{
    snprintf(check->why, sizeof check->why, "%s", why);
    return SGI_BEARER_BAD;
}

/* ---- reading ---- */

/* The scheme is told apart without case; false when it is another one. */
static bool read_token(sgi_str header, sgi_str *token)
{
    static const sgi_str scheme = SGI_STR_INIT("Bearer");
    if (header.n < scheme.n || !sgi_http1_same((sgi_str){header.p, scheme.n}, scheme) ||
        (header.n > scheme.n && header.p[scheme.n] != ' '))
        return false;
    *token = sgi_http1_trim(sgi_http1_skip(header, scheme.n));
    return true;
}

/* b64token of RFC 6750 2.1. */
static bool is_token(sgi_str text)
{
    size_t n = 0;
    while (n < text.n && text.p[n] != '=') {
        char c = text.p[n];
        if (!sgi_http1_is(c, SGI_HTTP1_REG) && c != '+' && c != '/')
            return false;
        n++;
    }
    if (!n)
        return false;
    while (n < text.n && text.p[n] == '=')
        n++;
    return n == text.n;
}

/* Whatever else comes with it: it stands in somebody's log by now. */
static bool is_misplaced(sgi_bearer_gate *gate, sgi_str query)
{
    if (!query.n)
        return false;
    sgi_form_found found = sgi_form_find(query, "access_token", &gate->text);
    sgi_buf_reset(&gate->text, 4096);
    return found != SGI_FORM_ABSENT && found != SGI_FORM_NOMEM;
}

/* ---- grants ---- */

/* The grant is the check's, IN or LACKS. */
static sgi_bearer_verdict judge(const sgi_bearer_gate *gate, sgi_bearer_check *check,
                                sgi_grant *grant)
{
    check->grant = grant;
    return sgi_scopes_cover(sgi_grant_scopes(grant), gate->required) ? SGI_BEARER_IN
                                                                     : SGI_BEARER_LACKS;
}

sgi_bearer_verdict sgi_bearer_grant(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                    const char *principal, sgi_str scopes,
                                    int64_t expires_ms)
{
    sgi_buf *all = &gate->text;
    sgi_buf_reset(all, 4096);
    sgi_scopes_join(all, scopes);
    sgi_scopes_imply(all, sgi_str_of(gate->options.implied_scopes));
    sgi_grant *grant = all->failed ? NULL
                                   : sgi_serve_grant(gate->server, principal,
                                                     sgi_buf_str(all), expires_ms);
    return grant ? judge(gate, check, grant) : SGI_BEARER_UNCHECKED;
}

/* ---- JWT ---- */

/* "<issuer> <subject>": an issuer has no blank. */
static sgi_bearer_verdict grant_jwt(sgi_bearer_gate *gate, sgi_bearer_check *check)
{
    sgi_buf *name = &gate->jwt.claims; /* is not needed any more */
    int64_t expires_ms =
        sgi_time_mul(sgi_time_add(gate->jwt.expires_s, gate->rules.leeway_s), 1000);
    sgi_buf_cut(name, 0);
    sgi_buf_add_str(name, gate->rules.issuer);
    sgi_buf_add_char(name, ' ');
    sgi_buf_add_str(name, sgi_buf_str(&gate->jwt.subject));
    if (!sgi_buf_terminate(name))
        return SGI_BEARER_UNCHECKED;
    return sgi_bearer_grant(gate, check, name->p, sgi_buf_str(&gate->jwt.scopes),
                            expires_ms);
}

static sgi_bearer_verdict refuse_key(sgi_bearer_check *check)
{
    return refuse(check, sgi_jwt_fault_text(SGI_JWT_UNKNOWN_KEY));
}

/* Nobody can say now whether there is such a key. */
static sgi_bearer_verdict come_later(const sgi_bearer_gate *gate, sgi_bearer_check *check)
{
    check->retry_ms = sgi_bearer_keys_pause(&gate->keys);
    return SGI_BEARER_UNCHECKED;
}

static sgi_bearer_verdict wait_for_keys(sgi_bearer_gate *gate, sgi_bearer_check *check)
{
    if (gate->waiting_count == SGI_BEARER_WAITING_MAX)
        return SGI_BEARER_UNCHECKED;
    if (!sgi_bearer_keys_miss(&gate->keys))
        return gate->keys.fetcher ? come_later(gate, check) : refuse_key(check);
    check->gate = gate;
    check->for_keys = true;
    gate->waiting_count++;
    TAILQ_INSERT_TAIL(&gate->waiting, check, link);
    return SGI_BEARER_WAITING;
}

/* last: who waited does not wait again. */
static sgi_bearer_verdict check_jwt(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                    bool last)
{
    uint8_t digest[SGI_DIGEST_SIZE];
    bool known;
    int64_t now_ms = sgi_wall(&gate->engine->env);
    sgi_bearer_keys_look(&gate->keys);
    sgi_grant *grant =
        sgi_bearer_cache_find(&gate->cache, check->token, now_ms, digest, &known);
    if (grant) {
        sgi_grant_ref(grant);
        return judge(gate, check, grant);
    }
    sgi_jwt_fault fault = sgi_jwt_check(&gate->jwt, &gate->engine->reader, check->token,
                                        &gate->keys.set, &gate->rules, now_ms / 1000);
    if (fault == SGI_JWT_UNKNOWN_KEY && !last)
        return wait_for_keys(gate, check);
    if (fault == SGI_JWT_NOMEM)
        return SGI_BEARER_UNCHECKED;
    if (fault == SGI_JWT_UNKNOWN_KEY)
        return sgi_bearer_keys_may_come(&gate->keys) ? come_later(gate, check)
                                                     : refuse_key(check);
    if (fault != SGI_JWT_OK)
        return refuse(check, sgi_jwt_fault_text(fault));
    sgi_bearer_verdict verdict = grant_jwt(gate, check);
    if (check->grant && known)
        sgi_bearer_cache_put(&gate->cache, digest, check->grant);
    return verdict;
}

static void leave_queue(sgi_bearer_gate *gate, sgi_bearer_check *check)
{
    TAILQ_REMOVE(&gate->waiting, check, link);
    gate->waiting_count--;
    check->for_keys = false;
    check->gate = NULL;
}

void sgi_bearer_key_done(sgi_bearer_keys *keys, bool changed)
{
    sgi_bearer_gate *gate = SGI_OWNER(keys, sgi_bearer_gate, keys);
    sgi_bearer_check *check;
    if (changed) /* what an old key has signed may be good no more */
        sgi_bearer_cache_clear(&gate->cache);
    while ((check = TAILQ_FIRST(&gate->waiting))) {
        leave_queue(gate, check);
        check->verdict = check_jwt(gate, check, true);
        check->told(check);
    }
}

/* ---- the way in ---- */

static sgi_bearer_verdict begin(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                sgi_str authorization, sgi_str query)
{
    if (is_misplaced(gate, query))
        return SGI_BEARER_MISPLACED;
    if (!read_token(authorization, &check->token))
        return SGI_BEARER_NONE;
    if (check->token.n > SGI_JWT_MAX)
        return refuse(check, sgi_jwt_fault_text(SGI_JWT_TOO_LARGE));
    if (!is_token(check->token))
        return refuse(check, sgi_jwt_fault_text(SGI_JWT_MALFORMED));
    return gate->options.on_bearer ? sgi_bearer_ask(gate, check)
                                   : check_jwt(gate, check, false);
}

sgi_bearer_verdict sgi_bearer_begin(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                    sgi_str authorization, sgi_str query)
{
    check->grant = NULL;
    check->retry_ms = 0;
    check->why[0] = 0;
    check->verdict = begin(gate, check, authorization, query);
    return check->verdict;
}

void sgi_bearer_cancel(sgi_bearer_check *check)
{
    if (!check->gate)
        return;
    if (check->for_keys)
        leave_queue(check->gate, check);
    if (check->asked)
        sgi_bearer_unask(check->asked);
    check->asked = NULL;
    check->gate = NULL;
    check->verdict = SGI_BEARER_UNCHECKED;
}
