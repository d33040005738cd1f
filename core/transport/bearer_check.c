/* Checks the token of one request. The cache finds a token that was valid before by its
 * digest. Any other token is checked at once, unless its key must be fetched first or the
 * application decides. A check that waits for keys is repeated once after the fetch. If
 * the fetch brings no key for the token, the token counts as forged. If the keys cannot
 * be fetched now, the server cannot know whether the key exists, and asks the client to
 * try again later.
 *
 * The texts about bad tokens are fixed and contain no part of the token. */
#include "transport/bearer.h"

#include <stdio.h>

#include "base/crypto.h"
#include "wire/form.h"
#include "wire/http1_text.h"
#include "wire/scopes.h"

static sgi_bearer_verdict refuse(sgi_bearer_check *check, const char *why)
{
    snprintf(check->why, sizeof check->why, "%s", why);
    return SGI_BEARER_BAD;
}

/* ---- reading ---- */

bool sgi_bearer_read_token(sgi_str header, sgi_str *token)
{
    static const sgi_str scheme = SGI_STR_INIT("Bearer");
    if (header.n < scheme.n ||
        !sgi_http1_same_ignoring_case((sgi_str){header.p, scheme.n}, scheme) ||
        (header.n > scheme.n && header.p[scheme.n] != ' '))
        return false;
    *token = sgi_http1_trim(sgi_http1_skip(header, scheme.n));
    return true;
}

bool sgi_bearer_is_token(sgi_str text)
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

/* True when the query of the URL has an access token. A request with such a URL is
 * refused even if its Authorization header is valid, because URLs are often written to
 * logs. */
static bool is_misplaced(sgi_bearer_gate *gate, sgi_str query)
{
    if (!query.n)
        return false;
    sgi_form_found found = sgi_url_form_find(query, "access_token", &gate->text);
    sgi_buf_reset(&gate->text, 4096);
    return found != SGI_FORM_ABSENT && found != SGI_FORM_NOMEM;
}

/* ---- grants ---- */

/* Stores the grant in the check. Returns SGI_BEARER_LACKS when the grant lacks a required
 * scope, otherwise SGI_BEARER_IN. */
static sgi_bearer_verdict judge(const sgi_bearer_gate *gate, sgi_bearer_check *check,
                                sgi_grant *grant)
{
    check->grant = grant;
    return sgi_scopes_cover(sgi_grant_scopes(grant), gate->required) ? SGI_BEARER_IN
                                                                     : SGI_BEARER_LACKS;
}

sgi_bearer_verdict sgi_bearer_make_grant(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                         const char *principal, sgi_str scopes,
                                         int64_t expires_ms)
{
    sgi_buf *all = &gate->text;
    sgi_buf_reset(all, 4096);
    sgi_scopes_join(all, scopes);
    sgi_scopes_add_implied(all, sgi_str_of(gate->options.implied_scopes));
    sgi_grant *grant = all->failed ? NULL
                                   : sgi_serve_new_grant(check->server, principal,
                                                         sgi_buf_str(all), expires_ms);
    return grant ? judge(gate, check, grant) : SGI_BEARER_UNCHECKED;
}

/* ---- JWT ---- */

/* Makes the grant of a JWT. The principal of the grant is "<issuer> <subject>", which is
 * unique because an issuer has no blank. */
static sgi_bearer_verdict grant_jwt(sgi_bearer_gate *gate, sgi_bearer_check *check)
{
    /* the name of the principal is built in the buffer of the claims; the claims are no
     * longer needed */
    sgi_buf *name = &gate->jwt.claims;
    int64_t expires_ms =
        sgi_time_mul(sgi_time_add(gate->jwt.expires_s, gate->rules.leeway_s), 1000);
    sgi_buf_truncate(name, 0);
    sgi_buf_add_str(name, gate->rules.issuer);
    sgi_buf_add_char(name, ' ');
    sgi_buf_add_str(name, sgi_buf_str(&gate->jwt.subject));
    if (!sgi_buf_terminate(name))
        return SGI_BEARER_UNCHECKED;
    return sgi_bearer_make_grant(gate, check, name->p, sgi_buf_str(&gate->jwt.scopes),
                                 expires_ms);
}

static sgi_bearer_verdict refuse_key(sgi_bearer_check *check)
{
    return refuse(check, sgi_jwt_fault_text(SGI_JWT_UNKNOWN_KEY));
}

/* Refuses a token whose key could not be fetched now but may exist. Sets the time after
 * which the client may try again. */
static sgi_bearer_verdict come_later(const sgi_bearer_gate *gate, sgi_bearer_check *check)
{
    check->retry_ms = sgi_bearer_keys_pause_ms(&gate->keys);
    return SGI_BEARER_UNCHECKED;
}

static sgi_bearer_verdict wait_for_keys(sgi_bearer_gate *gate, sgi_bearer_check *check)
{
    if (gate->waiting_count == SGI_BEARER_WAITING_MAX)
        return SGI_BEARER_UNCHECKED;
    if (!sgi_bearer_keys_fetch_missing(&gate->keys))
        return gate->keys.fetcher ? come_later(gate, check) : refuse_key(check);
    check->gate = gate;
    check->for_keys = true;
    gate->waiting_count++;
    TAILQ_INSERT_TAIL(&gate->waiting, check, link);
    return SGI_BEARER_WAITING;
}

/* Checks a JWT. last: true = the check has already waited for keys and must not wait
 * again. */
static sgi_bearer_verdict check_jwt(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                    bool last)
{
    uint8_t digest[SGI_DIGEST_SIZE];
    bool known;
    int64_t now_ms = sgi_wall_now(sgi_engine_env(gate->engine));
    sgi_bearer_keys_refresh(&gate->keys);
    sgi_grant *grant = sgi_bearer_cache_find(&gate->cache, check->server, check->token,
                                             now_ms, digest, &known);
    if (grant) {
        sgi_grant_ref(grant);
        return judge(gate, check, grant);
    }
    sgi_jwt_fault fault =
        sgi_jwt_check(&gate->jwt, sgi_engine_json_reader(gate->engine), check->token,
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

void sgi_bearer_on_keys_fetched(sgi_bearer_keys *keys, bool changed)
{
    sgi_bearer_gate *gate = SGI_OWNER(keys, sgi_bearer_gate, keys);
    sgi_bearer_check *check;
    /* the cache is cleared, because its tokens may be signed with a removed key */
    if (changed)
        sgi_bearer_cache_clear(&gate->cache);
    while ((check = TAILQ_FIRST(&gate->waiting))) {
        leave_queue(gate, check);
        check->verdict = check_jwt(gate, check, true);
        check->decided(check);
    }
}

/* ---- the tokens of a file ---- */

static sgi_bearer_verdict check_listed(sgi_bearer_gate *gate, sgi_bearer_check *check)
{
    uint8_t digest[SGI_DIGEST_SIZE];
    if (!sgi_crypto_sha256(digest, check->token))
        return SGI_BEARER_UNCHECKED;
    const char *principal = sgi_bearer_tokens_find(&gate->tokens, digest);
    return principal
               ? sgi_bearer_make_grant(gate, check, principal, (sgi_str){0}, INT64_MAX)
               : refuse(check, "The token is unknown");
}

/* ---- beginning and ending a check ---- */

static sgi_bearer_verdict begin(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                sgi_str authorization, sgi_str query)
{
    if (is_misplaced(gate, query))
        return SGI_BEARER_MISPLACED;
    if (!sgi_bearer_read_token(authorization, &check->token))
        return SGI_BEARER_NONE;
    if (check->token.n > SGI_JWT_MAX)
        return refuse(check, sgi_jwt_fault_text(SGI_JWT_TOO_LARGE));
    if (!sgi_bearer_is_token(check->token))
        return refuse(check, sgi_jwt_fault_text(SGI_JWT_MALFORMED));
    if (gate->tokens_path)
        return check_listed(gate, check);
    return gate->options.on_bearer ? sgi_bearer_ask_application(gate, check)
                                   : check_jwt(gate, check, false);
}

sgi_bearer_verdict sgi_bearer_begin_check(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                          sgi_str authorization, sgi_str query)
{
    check->grant = NULL;
    check->retry_ms = 0;
    check->why[0] = 0;
    check->verdict = begin(gate, check, authorization, query);
    return check->verdict;
}

void sgi_bearer_cancel_check(sgi_bearer_check *check)
{
    if (!check->gate)
        return;
    if (check->for_keys)
        leave_queue(check->gate, check);
    if (check->asked)
        sgi_bearer_ignore_application(check->asked);
    check->asked = NULL;
    check->gate = NULL;
    check->verdict = SGI_BEARER_UNCHECKED;
}
