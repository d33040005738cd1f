#include "base/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

int32_t sgi_crypto_random(void *user, void *bytes, size_t len)
{
    (void)user;
    return len <= INT32_MAX && RAND_bytes(bytes, (int)len) == 1 ? 0 : -1;
}

bool sgi_crypto_digest(uint8_t out[SGI_DIGEST_SIZE], const sgi_str *parts, size_t count)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    for (size_t i = 0; ok && i < count; i++) {
        uint64_t len = parts[i].n;
        ok = EVP_DigestUpdate(context, &len, sizeof len) &&
             EVP_DigestUpdate(context, parts[i].p, parts[i].n);
    }
    ok = ok && EVP_DigestFinal_ex(context, out, NULL);
    EVP_MD_CTX_free(context);
    return ok;
}

bool sgi_crypto_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}
