/* Checks a token in this order (RFC 8725): size, shape, header, key, signature, claims.
 * The claims come last, because they cannot be trusted before the signature was checked.
 *
 * The header of a token can only choose among the algorithms that the rules allow and the
 * keys of the set. "jku", "jwk", "x5u" and "x5c" are ignored. A token with "crit" is
 * refused, because no extension is supported. The rules must accept the algorithm, and
 * the key must be made for this algorithm. Therefore neither "none" nor a public key that
 * is used as a secret is accepted. If a token has no "kid", exactly one key of the set
 * must fit; when several keys fit, no key is tried.
 *
 * "exp" and "sub" are required: a token without expiry or without a subject is refused
 * (RFC 9068 2.2). Scopes are in "scope" (RFC 8693), as a text or, from some servers, as
 * an array, or in "scp". */
#include "wire/jwt.h"

#define MAX_TIME ((int64_t)253402300799) /* the end of the year 9999 */
/* maximum number of keys with the same name that are tried; each try costs one check of a
 * signature */
#define MAX_TRIES 4

const char *sgi_jwt_fault_text(sgi_jwt_fault fault)
{
    static const char *const texts[] = {
        [SGI_JWT_OK] = "",
        [SGI_JWT_UNKNOWN_KEY] = "The token is signed with an unknown key",
        [SGI_JWT_MALFORMED] = "The token is malformed",
        [SGI_JWT_TOO_LARGE] = "The token is too large",
        [SGI_JWT_ALGORITHM] =
            "The token is signed with an algorithm that is not accepted",
        [SGI_JWT_TYPE] = "The header typ of the token is not that of an access token",
        [SGI_JWT_CRITICAL] = "The token has critical headers",
        [SGI_JWT_SIGNATURE] = "The signature of the token is wrong",
        [SGI_JWT_CLAIMS] = "A claim of the token is malformed",
        [SGI_JWT_ISSUER] = "The token comes from another issuer",
        [SGI_JWT_AUDIENCE] = "The token is for another audience",
        [SGI_JWT_EXPIRED] = "The token has expired",
        [SGI_JWT_EARLY] = "The token is not valid yet",
        [SGI_JWT_SUBJECT] = "The token has no subject",
        [SGI_JWT_BOUND] = "The token needs a proof of possession, which is not supported",
        [SGI_JWT_NOMEM] = "Out of memory",
    };
    return texts[fault];
}

void sgi_jwt_init(sgi_jwt *jwt, const sgi_mem *mem)
{
    *jwt = (sgi_jwt){0};
    sgi_buf_init(&jwt->subject, mem);
    sgi_buf_init(&jwt->scopes, mem);
    sgi_buf_init(&jwt->header, mem);
    sgi_buf_init(&jwt->claims, mem);
    sgi_buf_init(&jwt->signature, mem);
}

void sgi_jwt_free(sgi_jwt *jwt)
{
    sgi_buf_free(&jwt->subject);
    sgi_buf_free(&jwt->scopes);
    sgi_buf_free(&jwt->header);
    sgi_buf_free(&jwt->claims);
    sgi_buf_free(&jwt->signature);
}

/* ---- the shape of a token ---- */

static bool is_base64url(sgi_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool ok = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  (c >= '0' && c <= '9') || c == '-' || c == '_';
        if (!ok)
            return false;
    }
    return text.n > 0;
}

static sgi_jwt_fault decode(sgi_str part, sgi_buf *out)
{
    if (!is_base64url(part))
        return SGI_JWT_MALFORMED;
    if (sgi_buf_add_unbase64(out, part))
        return SGI_JWT_OK;
    return out->failed ? SGI_JWT_NOMEM : SGI_JWT_MALFORMED;
}

/* Splits the token into three parts. A token of five parts is refused, because it is
 * encrypted. */
static bool cut(sgi_str token, sgi_str parts[3])
{
    size_t count = 0, from = 0;
    for (size_t i = 0; i <= token.n; i++) {
        if (i < token.n && token.p[i] != '.')
            continue;
        if (count == 3)
            return false;
        parts[count++] = (sgi_str){token.p + from, i - from};
        from = i + 1;
    }
    return count == 3;
}

static sgi_jwt_fault read_object(sgi_json_reader *reader, const sgi_buf *text,
                                 sgi_json *object)
{
    sgi_json_error error;
    if (!sgi_json_read(reader, sgi_buf_str(text), NULL, 0, NULL, &error))
        return error.fault == SGI_JSON_NOMEM ? SGI_JWT_NOMEM : SGI_JWT_MALFORMED;
    *object = sgi_json_trim(sgi_buf_str(text));
    return sgi_json_kind_of(*object) == SGI_JSON_OBJECT ? SGI_JWT_OK : SGI_JWT_MALFORMED;
}

/* ---- header ---- */

static bool same_ascii(sgi_str a, sgi_str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        char c = a.p[i], d = b.p[i];
        c = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
        d = (char)(d >= 'A' && d <= 'Z' ? d | 0x20 : d);
        if (c != d)
            return false;
    }
    return true;
}

/* True when the type in the token's header is allowed. The prefix "application/" of the
 * type may be missing (RFC 7515 4.1.9). access_only: true = only access tokens are
 * allowed. */
static bool is_type(sgi_json type, bool access_only)
{
    static const sgi_str prefix = SGI_STR_INIT("application/");
    sgi_str text;
    if (!type.n)
        return !access_only;
    if (!sgi_json_plain_string(type, &text))
        return false;
    if (text.n > prefix.n && same_ascii((sgi_str){text.p, prefix.n}, prefix))
        text = (sgi_str){text.p + prefix.n, text.n - prefix.n};
    return same_ascii(text, SGI_STR("at+jwt")) ||
           (!access_only && same_ascii(text, SGI_STR("JWT")));
}

typedef struct header {
    sgi_crypto_scheme scheme;
    sgi_str kid; /* the name of the token's key; p is NULL when the token names no key */
} header;

/* Reads the header of a token. kid_room receives the decoded name of the token's key. */
static sgi_jwt_fault read_header(sgi_json object, const sgi_jwt_rules *rules,
                                 sgi_buf *kid_room, header *head)
{
    sgi_json kid = sgi_json_get(object, "kid");
    sgi_str name;
    head->scheme = SGI_CRYPTO_NONE;
    if (sgi_json_plain_string(sgi_json_get(object, "alg"), &name))
        head->scheme = sgi_jwa_scheme(name);
    if (!head->scheme || !(rules->schemes & 1u << head->scheme))
        return SGI_JWT_ALGORITHM;
    if (sgi_json_get(object, "crit").n)
        return SGI_JWT_CRITICAL;
    if (!is_type(sgi_json_get(object, "typ"), rules->access_only))
        return SGI_JWT_TYPE;
    head->kid = (sgi_str){NULL, 0};
    if (!kid.n)
        return SGI_JWT_OK;
    if (!sgi_json_decode(kid, kid_room))
        return SGI_JWT_MALFORMED;
    if (kid_room->failed)
        return SGI_JWT_NOMEM;
    head->kid = (sgi_str){kid_room->len ? kid_room->p : "", kid_room->len};
    return SGI_JWT_OK;
}

/* ---- signature ---- */

static sgi_jwt_fault check_signature(const sgi_jwks *keys, const header *head,
                                     sgi_str text, sgi_str signature)
{
    size_t at = 0;
    const sgi_jwk *key = sgi_jwks_find_next(keys, head->scheme, head->kid, &at);
    if (!key)
        return SGI_JWT_UNKNOWN_KEY;
    size_t next = at;
    if (!head->kid.p && sgi_jwks_find_next(keys, head->scheme, head->kid, &next))
        /* the token names no key, and several keys of the set fit */
        return SGI_JWT_UNKNOWN_KEY;
    for (int tries = 0; key && tries < MAX_TRIES; tries++) {
        if (sgi_crypto_verify(key->key, head->scheme, text, signature))
            return SGI_JWT_OK;
        key = sgi_jwks_find_next(keys, head->scheme, head->kid, &at);
    }
    return SGI_JWT_SIGNATURE;
}

/* ---- claims ---- */

/* Reads a time in seconds since 1970. The fraction of a second is dropped. */
static bool read_time(sgi_json value, int64_t *seconds)
{
    double number;
    if (!sgi_json_read_double(value, &number) || number < 0)
        return false;
    *seconds = number >= (double)MAX_TIME ? MAX_TIME : (int64_t)number;
    return true;
}

static sgi_jwt_fault check_times(sgi_json claims, const sgi_jwt_rules *rules,
                                 int64_t now_s, int64_t *expires_s)
{
    sgi_json early[] = {sgi_json_get(claims, "nbf"), sgi_json_get(claims, "iat")};
    int64_t from;
    if (!read_time(sgi_json_get(claims, "exp"), expires_s))
        return SGI_JWT_CLAIMS;
    if (now_s >= sgi_time_add(*expires_s, rules->leeway_s))
        return SGI_JWT_EXPIRED;
    for (size_t i = 0; i < 2; i++) {
        if (!early[i].n)
            continue;
        if (!read_time(early[i], &from))
            return SGI_JWT_CLAIMS;
        if (now_s < sgi_time_sub(from, rules->leeway_s))
            return SGI_JWT_EARLY;
    }
    return SGI_JWT_OK;
}

static sgi_str scheme_and_host(sgi_str uri)
{
    size_t at = 0;
    while (at + 3 <= uri.n && memcmp(uri.p + at, "://", 3) != 0)
        at++;
    if (at + 3 > uri.n)
        return (sgi_str){uri.p, 0};
    for (at += 3; at < uri.n && uri.p[at] != '/' && uri.p[at] != '?';)
        at++;
    return (sgi_str){uri.p, at};
}

bool sgi_resource_same(sgi_str a, sgi_str b)
{
    sgi_str place_a = scheme_and_host(a), place_b = scheme_and_host(b);
    sgi_str rest_a = {a.p + place_a.n, a.n - place_a.n};
    sgi_str rest_b = {b.p + place_b.n, b.n - place_b.n};
    if (place_a.n && rest_a.n == 1 && *rest_a.p == '/')
        rest_a.n = 0;
    if (place_b.n && rest_b.n == 1 && *rest_b.p == '/')
        rest_b.n = 0;
    return same_ascii(place_a, place_b) && sgi_str_eq(rest_a, rest_b);
}

static bool is_audience(sgi_json value, sgi_str audiences, sgi_buf *room)
{
    sgi_buf_truncate(room, 0);
    if (!sgi_json_decode(value, room))
        return false;
    while (audiences.n) {
        size_t len = 0;
        while (len < audiences.n && audiences.p[len] != ' ')
            len++;
        if (len && sgi_resource_same((sgi_str){audiences.p, len}, sgi_buf_str(room)))
            return true;
        len += len < audiences.n;
        audiences = (sgi_str){audiences.p + len, audiences.n - len};
    }
    return false;
}

static sgi_jwt_fault check_audience(sgi_json value, sgi_str audiences, sgi_buf *room)
{
    sgi_json one;
    bool ok = false;
    if (sgi_json_kind_of(value) == SGI_JSON_ARRAY)
        for (size_t at = 0; !ok && !room->failed && sgi_json_next_item(value, &at, &one);)
            ok = is_audience(one, audiences, room);
    else
        ok = is_audience(value, audiences, room);
    if (room->failed)
        return SGI_JWT_NOMEM;
    return ok ? SGI_JWT_OK : SGI_JWT_AUDIENCE;
}

/* True when the text has control characters. A NUL would end the name early in a C
 * string, and line ends would forge lines in a log. In UTF-8, control characters beyond
 * ASCII begin with the byte C2. */
static bool has_controls(sgi_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = (uint8_t)text.p[i];
        uint8_t next = i + 1 < text.n ? (uint8_t)text.p[i + 1] : 0;
        if (c < ' ' || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0))
            return true;
    }
    return false;
}

static sgi_jwt_fault read_subject(sgi_json value, sgi_buf *subject)
{
    bool ok = sgi_json_decode(value, subject);
    if (subject->failed)
        return SGI_JWT_NOMEM;
    return ok && subject->len && subject->len <= SGI_JWT_SUBJECT_MAX &&
                   !has_controls(sgi_buf_str(subject))
               ? SGI_JWT_OK
               : SGI_JWT_SUBJECT;
}

static sgi_jwt_fault read_scopes(sgi_json value, sgi_buf *scopes)
{
    sgi_json one;
    bool ok = true;
    if (sgi_json_kind_of(value) == SGI_JSON_ARRAY) {
        for (size_t at = 0; ok && sgi_json_next_item(value, &at, &one);) {
            if (scopes->len)
                sgi_buf_add_char(scopes, ' ');
            ok = sgi_json_decode(one, scopes);
        }
    } else if (value.n && sgi_json_kind_of(value) != SGI_JSON_NULL) {
        ok = sgi_json_decode(value, scopes);
    }
    if (scopes->failed)
        return SGI_JWT_NOMEM;
    return ok && (!scopes->len || !memchr(scopes->p, 0, scopes->len)) ? SGI_JWT_OK
                                                                      : SGI_JWT_CLAIMS;
}

static sgi_jwt_fault check_claims(sgi_jwt *jwt, sgi_json claims,
                                  const sgi_jwt_rules *rules, int64_t now_s)
{
    sgi_json scope = sgi_json_get(claims, "scope");
    if (!sgi_json_string_is(sgi_json_get(claims, "iss"), rules->issuer))
        return SGI_JWT_ISSUER;
    sgi_jwt_fault fault =
        check_audience(sgi_json_get(claims, "aud"), rules->audiences, &jwt->header);
    if (fault == SGI_JWT_OK)
        fault = check_times(claims, rules, now_s, &jwt->expires_s);
    if (fault == SGI_JWT_OK && sgi_json_get(claims, "cnf").n)
        fault = SGI_JWT_BOUND;
    if (fault == SGI_JWT_OK)
        fault = read_subject(sgi_json_get(claims, "sub"), &jwt->subject);
    if (fault == SGI_JWT_OK)
        fault = read_scopes(scope.n ? scope : sgi_json_get(claims, "scp"), &jwt->scopes);
    return fault;
}

/* ---- the whole check ---- */

sgi_jwt_fault sgi_jwt_check(sgi_jwt *jwt, sgi_json_reader *reader, sgi_str token,
                            const sgi_jwks *keys, const sgi_jwt_rules *rules,
                            int64_t now_s)
{
    sgi_buf *rooms[] = {&jwt->header, &jwt->claims, &jwt->signature, &jwt->subject,
                        &jwt->scopes};
    sgi_str parts[3];
    sgi_json object;
    header head;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        sgi_buf_reset(rooms[i], SGI_JWT_MAX);
    if (token.n > SGI_JWT_MAX)
        return SGI_JWT_TOO_LARGE;
    if (!cut(token, parts))
        return SGI_JWT_MALFORMED;
    sgi_jwt_fault fault = decode(parts[0], &jwt->header);
    if (fault == SGI_JWT_OK)
        fault = read_object(reader, &jwt->header, &object);
    if (fault == SGI_JWT_OK)
        fault = read_header(object, rules, &jwt->subject, &head);
    if (fault == SGI_JWT_OK)
        fault = decode(parts[2], &jwt->signature);
    sgi_str text = {token.p, parts[0].n + 1 + parts[1].n};
    if (fault == SGI_JWT_OK)
        fault = check_signature(keys, &head, text, sgi_buf_str(&jwt->signature));
    if (fault != SGI_JWT_OK && fault != SGI_JWT_UNKNOWN_KEY)
        return fault;
    /* `fault` is SGI_JWT_OK or SGI_JWT_UNKNOWN_KEY here, and is the result if the claims
     * are valid. */
    sgi_jwt_fault is_unknown = fault;
    sgi_buf_truncate(&jwt->subject, 0);
    fault = decode(parts[1], &jwt->claims);
    if (fault == SGI_JWT_OK)
        fault = read_object(reader, &jwt->claims, &object);
    if (fault == SGI_JWT_OK)
        fault = check_claims(jwt, object, rules, now_s);
    return fault == SGI_JWT_OK ? is_unknown : fault;
}
