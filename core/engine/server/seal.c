/* A sealed text is the base64 of
 *     salt | AES-256-GCM(expiry | bytes) with its tag
 *
 * Each text has its own key: the digest of the server's key and the salt. The nonce is
 * the end of the salt. The salt is a digest of the server's key and the sealed content.
 * So the same content always gives the same text. Caches need this property, because a
 * cursor is part of the key of a cached page. Different contents get different nonces
 * without random bytes, however many texts are made. The digest of kind, owner and
 * subject is authenticated with the text and is not part of the text. */
#include "engine/server/seal.h"

#define SALT 24
#define EXPIRY 8
#define OVERHEAD (SALT + EXPIRY + SGI_AEAD_TAG)

bool sgi_seal_init(sgi_seal *seal, sgi_engine *engine, const void *key, const void *older)
{
    *seal = (sgi_seal){.engine = engine, .count = 1, .shared = key != NULL};
    if (!key)
        return sgi_random(&engine->env, seal->keys[0], SGI_AEAD_KEY);
    memcpy(seal->keys[0], key, SGI_AEAD_KEY);
    if (older)
        memcpy(seal->keys[seal->count++], older, SGI_AEAD_KEY);
    return true;
}

void sgi_seal_set_kept_key(sgi_seal *seal, const uint8_t *key)
{
    if (memcmp(seal->keys[0], key, SGI_AEAD_KEY) != 0) {
        memcpy(seal->keys[1], seal->keys[0], SGI_AEAD_KEY);
        memcpy(seal->keys[0], key, SGI_AEAD_KEY);
        seal->count = 2;
    }
    seal->kept = true;
}

static sgi_str view(const uint8_t *bytes, size_t n)
{
    return (sgi_str){(const char *)bytes, n};
}

static bool digest_purpose(const sgi_seal *seal, const sgi_seal_purpose *good_for,
                           uint8_t out[SGI_DIGEST_SIZE])
{
    const uint8_t kind = (uint8_t)good_for->kind;
    sgi_str parts[3 + SGI_SEAL_PARTS] = {SGI_STR("segue seal 1"), view(&kind, 1),
                                         view(good_for->owner, SGI_DIGEST_SIZE)};
    for (size_t i = 0; i < good_for->count; i++)
        parts[3 + i] = good_for->what[i];
    return sgi_engine_digest(seal->engine, out, parts, 3 + good_for->count);
}

static bool make_salt(const sgi_seal *seal, sgi_str purpose, sgi_str plain,
                      uint8_t salt[SALT])
{
    uint8_t digest[SGI_DIGEST_SIZE];
    const sgi_str parts[] = {SGI_STR("segue seal salt 1"),
                             view(seal->keys[0], SGI_AEAD_KEY), purpose, plain};
    if (!sgi_engine_digest(seal->engine, digest, parts, 4))
        return false;
    memcpy(salt, digest, SALT);
    return true;
}

static bool derive(const sgi_seal *seal, int32_t which, const uint8_t salt[SALT],
                   uint8_t key[SGI_AEAD_KEY])
{
    const sgi_str parts[] = {SGI_STR("segue seal key 1"),
                             view(seal->keys[which], SGI_AEAD_KEY), view(salt, SALT)};
    return sgi_engine_digest(seal->engine, key, parts, 3);
}

static const uint8_t *nonce_of(const uint8_t salt[SALT])
{
    return salt + SALT - SGI_AEAD_NONCE;
}

static void write_expiry(sgi_buf *out, int64_t ms)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        sgi_buf_add_char(out, (char)(uint8_t)((uint64_t)ms >> shift));
}

static int64_t read_expiry(const uint8_t *bytes)
{
    uint64_t ms = 0;
    for (size_t i = 0; i < EXPIRY; i++)
        ms = ms << 8 | bytes[i];
    return (int64_t)ms;
}

/* ---- sealing a text ---- */

static bool seal_bytes(const sgi_seal *seal, const sgi_seal_purpose *good_for,
                       sgi_str plain, uint8_t *out)
{
    uint8_t digest[SGI_DIGEST_SIZE] = {0}, key[SGI_AEAD_KEY];
    sgi_str purpose = view(digest, sizeof digest);
    return digest_purpose(seal, good_for, digest) &&
           make_salt(seal, purpose, plain, out) && derive(seal, 0, out, key) &&
           seal->engine->aead->seal(key, nonce_of(out), purpose, plain, out + SALT);
}

bool sgi_seal_write(const sgi_seal *seal, const sgi_seal_purpose *good_for,
                    int64_t expires_ms, sgi_str bytes, sgi_buf *out)
{
    sgi_buf plain, sealed;
    sgi_buf_init(&plain, sgi_engine_mem(seal->engine));
    sgi_buf_init(&sealed, sgi_engine_mem(seal->engine));
    write_expiry(&plain, expires_ms);
    sgi_buf_add_str(&plain, bytes);
    bool ok = !plain.failed && sgi_buf_reserve(&sealed, bytes.n + OVERHEAD) &&
              seal_bytes(seal, good_for, sgi_buf_str(&plain), (uint8_t *)sealed.p);
    if (ok)
        sgi_buf_add_base64(out, sealed.p, bytes.n + OVERHEAD, true);
    out->failed |= !ok;
    sgi_buf_free(&plain);
    sgi_buf_free(&sealed);
    return !out->failed;
}

/* ---- opening a text ---- */

static bool open_with(const sgi_seal *seal, int32_t which, sgi_str purpose,
                      sgi_str sealed, uint8_t *plain)
{
    uint8_t key[SGI_AEAD_KEY];
    const uint8_t *salt = (const uint8_t *)sealed.p;
    sgi_str rest = {sealed.p + SALT, sealed.n - SALT};
    return derive(seal, which, salt, key) &&
           seal->engine->aead->open(key, nonce_of(salt), purpose, rest, plain);
}

static segue_status open_bytes(const sgi_seal *seal, const sgi_seal_purpose *good_for,
                               sgi_str sealed, sgi_buf *out)
{
    uint8_t purpose[SGI_DIGEST_SIZE];
    sgi_buf plain;
    segue_status status = SEGUE_E_INVALID;
    sgi_buf_init(&plain, sgi_engine_mem(seal->engine));
    if (!sgi_buf_reserve(&plain, sealed.n) || !digest_purpose(seal, good_for, purpose)) {
        sgi_buf_free(&plain);
        return SEGUE_E_NOMEM;
    }
    uint8_t *bytes = (uint8_t *)plain.p;
    for (int32_t i = 0; i < seal->count && status != SEGUE_OK; i++)
        if (open_with(seal, i, view(purpose, sizeof purpose), sealed, bytes))
            status = SEGUE_OK;
    int64_t expires_ms = status == SEGUE_OK ? read_expiry(bytes) : 0;
    if (expires_ms && expires_ms <= sgi_wall_now(&seal->engine->env))
        status = SEGUE_E_TIMEOUT;
    if (status == SEGUE_OK && !sgi_buf_reserve(out, sealed.n))
        status = SEGUE_E_NOMEM;
    if (status == SEGUE_OK)
        sgi_buf_add(out, bytes + EXPIRY, sealed.n - OVERHEAD);
    sgi_buf_free(&plain);
    return status;
}

segue_status sgi_seal_open(const sgi_seal *seal, const sgi_seal_purpose *good_for,
                           sgi_str text, sgi_buf *out)
{
    sgi_buf sealed, again;
    segue_status status = SEGUE_E_INVALID;
    sgi_buf_init(&sealed, sgi_engine_mem(seal->engine));
    sgi_buf_init(&again, sgi_engine_mem(seal->engine));
    bool is_base64 = sgi_buf_add_unbase64(&sealed, text);
    if (is_base64 && sealed.len >= OVERHEAD)
        sgi_buf_add_base64(&again, sealed.p, sealed.len, true);
    if (sealed.failed || again.failed)
        status = SEGUE_E_NOMEM;
    /* A sealed text has only one valid spelling: the decoded text, encoded again, must
     * give the same text. */
    else if (sgi_str_eq(sgi_buf_str(&again), text) && again.len)
        status = open_bytes(seal, good_for, sgi_buf_str(&sealed), out);
    sgi_buf_free(&again);
    sgi_buf_free(&sealed);
    return status;
}
