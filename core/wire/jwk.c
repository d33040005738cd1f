/* The keys of a key set are made and checked when the set is read, so a token can only
 * choose among checked keys. Symmetric keys ("oct") are ignored, because everybody can
 * read a key set. */
#include "wire/jwk.h"

static const struct {
    sgi_str name;
    sgi_crypto_scheme scheme;
} names[] = {
    {SGI_STR_INIT("RS256"), SGI_CRYPTO_RS256},
    {SGI_STR_INIT("RS384"), SGI_CRYPTO_RS384},
    {SGI_STR_INIT("RS512"), SGI_CRYPTO_RS512},
    {SGI_STR_INIT("PS256"), SGI_CRYPTO_PS256},
    {SGI_STR_INIT("PS384"), SGI_CRYPTO_PS384},
    {SGI_STR_INIT("PS512"), SGI_CRYPTO_PS512},
    {SGI_STR_INIT("ES256"), SGI_CRYPTO_ES256},
    {SGI_STR_INIT("ES384"), SGI_CRYPTO_ES384},
    {SGI_STR_INIT("EdDSA"), SGI_CRYPTO_EDDSA},
    /* "Ed25519" is RFC 9864's name for EdDSA with this curve */
    {SGI_STR_INIT("Ed25519"), SGI_CRYPTO_EDDSA},
};

#define BIT(scheme) (1u << (scheme))
#define OF_RSA                                                                           \
    (BIT(SGI_CRYPTO_RS256) | BIT(SGI_CRYPTO_RS384) | BIT(SGI_CRYPTO_RS512) |             \
     BIT(SGI_CRYPTO_PS256) | BIT(SGI_CRYPTO_PS384) | BIT(SGI_CRYPTO_PS512))

sgi_crypto_scheme sgi_jwa_scheme(sgi_str name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sgi_str_eq(name, names[i].name))
            return names[i].scheme;
    return SGI_CRYPTO_NONE;
}

void sgi_jwks_init(sgi_jwks *set, const sgi_mem *mem)
{
    *set = (sgi_jwks){0};
    sgi_buf_init(&set->names, mem);
}

void sgi_jwks_free(sgi_jwks *set)
{
    for (size_t i = 0; i < set->count; i++)
        sgi_crypto_key_free(set->keys[i].key);
    sgi_free(set->names.mem, set->keys, sizeof *set->keys * SGI_JWKS_MAX);
    sgi_buf_free(&set->names);
    set->keys = NULL;
    set->count = 0;
}

/* ---- one key ---- */

/* Decodes a base64url number of the key and appends it to `room`. Returns a view of the
 * decoded number, or an empty view when the number is malformed or empty. */
static sgi_str number(sgi_json key, const char *name, sgi_buf *room)
{
    sgi_str text;
    size_t from = room->len;
    if (!sgi_json_plain_string(sgi_json_get(key, name), &text) ||
        !sgi_buf_add_unbase64(room, text) || room->len == from)
        return (sgi_str){0};
    return (sgi_str){room->p + from, room->len - from};
}

static bool says(sgi_json value, const char *text)
{
    return sgi_json_string_is(value, sgi_str_of(text));
}

/* True when the key may check signatures. A key without "use" and "key_ops" may check
 * signatures. */
static bool is_for_signatures(sgi_json key)
{
    sgi_json use = sgi_json_get(key, "use");
    sgi_json operations = sgi_json_get(key, "key_ops"), one;
    if (use.n && !says(use, "sig"))
        return false;
    if (!operations.n)
        return true;
    if (sgi_json_kind_of(operations) != SGI_JSON_ARRAY)
        return false;
    for (size_t at = 0; sgi_json_next_item(operations, &at, &one);)
        if (says(one, "verify"))
            return true;
    return false;
}

static sgi_crypto_key *make_rsa(sgi_json json, sgi_buf *room)
{
    sgi_str e = number(json, "e", room);
    size_t len = e.n;
    /* Decoding n can move `room` in memory, so the pointer of e is invalid afterwards.
     * The bytes of e lie directly before the bytes of n. */
    sgi_str n = number(json, "n", room);
    return len && n.n ? sgi_crypto_key_new_rsa(n, (sgi_str){n.p - len, len}) : NULL;
}

static sgi_crypto_key *make_ec(sgi_json json, int32_t bits, sgi_buf *room)
{
    size_t len = number(json, "x", room).n;
    sgi_str y = number(json, "y", room);
    return len && y.n ? sgi_crypto_key_new_ec(bits, (sgi_str){y.p - len, len}, y) : NULL;
}

static void make(sgi_jwk *key, sgi_json json, sgi_buf *room)
{
    sgi_json type = sgi_json_get(json, "kty"), curve = sgi_json_get(json, "crv");
    sgi_buf_reset(room, SIZE_MAX);
    if (says(type, "RSA")) {
        key->schemes = OF_RSA;
        key->key = make_rsa(json, room);
    } else if (says(type, "EC") && says(curve, "P-256")) {
        key->schemes = BIT(SGI_CRYPTO_ES256);
        key->key = make_ec(json, 256, room);
    } else if (says(type, "EC") && says(curve, "P-384")) {
        key->schemes = BIT(SGI_CRYPTO_ES384);
        key->key = make_ec(json, 384, room);
    } else if (says(type, "OKP") && says(curve, "Ed25519")) {
        key->schemes = BIT(SGI_CRYPTO_EDDSA);
        key->key = sgi_crypto_key_new_ed25519(number(json, "x", room));
    }
}

/* Restricts the key to the one signature scheme that "alg" names, if "alg" is present. */
static void restrict_to(sgi_jwk *key, sgi_json algorithm)
{
    sgi_str name;
    if (!algorithm.n)
        return;
    sgi_crypto_scheme scheme =
        sgi_json_plain_string(algorithm, &name) ? sgi_jwa_scheme(name) : SGI_CRYPTO_NONE;
    key->schemes &= scheme ? BIT(scheme) : 0;
}

static void add_key(sgi_jwks *set, sgi_json json, sgi_buf *room)
{
    sgi_jwk *key = &set->keys[set->count];
    sgi_json kid = sgi_json_get(json, "kid");
    *key = (sgi_jwk){.kid_at = set->names.len};
    if (sgi_json_kind_of(json) != SGI_JSON_OBJECT ||
        (kid.n && sgi_json_kind_of(kid) != SGI_JSON_STRING) || !is_for_signatures(json))
        return;
    make(key, json, room);
    restrict_to(key, sgi_json_get(json, "alg"));
    if (!key->key || !key->schemes) {
        sgi_crypto_key_free(key->key);
        return;
    }
    if (kid.n)
        sgi_json_decode(kid, &set->names);
    key->kid = (sgi_str){kid.n ? "" : NULL, set->names.len - key->kid_at};
    set->count++;
}

/* ---- the set ---- */

static const char *read_text(sgi_json_reader *reader, sgi_str text, sgi_json *list)
{
    if (text.n > SGI_JWKS_BYTES)
        return "the key set is too large";
    if (!sgi_json_read(reader, text, NULL, 0, NULL, NULL))
        return "the key set is not JSON";
    *list = sgi_json_get(sgi_json_trim(text), "keys");
    if (sgi_json_kind_of(sgi_json_trim(text)) != SGI_JSON_OBJECT ||
        sgi_json_kind_of(*list) != SGI_JSON_ARRAY)
        return "the key set is not an object with an array \"keys\"";
    return NULL;
}

bool sgi_jwks_read(sgi_jwks *set, sgi_json_reader *reader, sgi_str text,
                   const char **problem)
{
    const sgi_mem *mem = set->names.mem;
    sgi_json list, one;
    sgi_jwks fresh;
    sgi_buf room;
    *problem = read_text(reader, text, &list);
    if (*problem)
        return false;
    sgi_jwks_init(&fresh, mem);
    sgi_buf_init(&room, mem);
    fresh.keys = sgi_alloc(mem, sizeof *fresh.keys * SGI_JWKS_MAX);
    bool ok = fresh.keys != NULL;
    for (size_t at = 0;
         ok && fresh.count < SGI_JWKS_MAX && sgi_json_next_item(list, &at, &one);) {
        add_key(&fresh, one, &room);
        ok = !room.failed && !fresh.names.failed;
    }
    sgi_buf_free(&room);
    if (!ok) {
        *problem = "out of memory";
        sgi_jwks_free(&fresh);
        return false;
    }
    for (size_t i = 0; i < fresh.count; i++)
        if (fresh.keys[i].kid.p)
            fresh.keys[i].kid.p =
                fresh.names.len ? fresh.names.p + fresh.keys[i].kid_at : "";
    sgi_jwks_free(set);
    *set = fresh;
    return true;
}

const sgi_jwk *sgi_jwks_find_next(const sgi_jwks *set, sgi_crypto_scheme scheme,
                                  sgi_str kid, size_t *at)
{
    while (*at < set->count) {
        const sgi_jwk *key = &set->keys[(*at)++];
        if (key->schemes & BIT(scheme) &&
            (!kid.p || (key->kid.p && sgi_str_eq(key->kid, kid))))
            return key;
    }
    return NULL;
}
