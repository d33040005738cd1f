/* Sealed texts: only a text that was sealed opens, and it opens to what was sealed. A
 * text that opens equals the one that sealing its contents makes.
 *
 * Input: one byte of decisions, then a text. With the lowest bit the text is sealed
 * first, and the next two bytes change one byte of it. */
#include "engine/server/seal.h"
#include "support/fake_host.h"
#include "support/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t owner[SGI_DIGEST_SIZE] = {9};
static const sgi_str what[] = {SGI_STR_INIT("tools/call"), SGI_STR_INIT("x")};

static void check_open(const sgi_seal *seal, const sgi_seal_purpose *good_for,
                       sgi_str text)
{
    sgi_buf bytes, again;
    sgi_buf_init(&bytes, &sgi_mem_libc);
    sgi_buf_init(&again, &sgi_mem_libc);
    segue_status status = sgi_seal_open(seal, good_for, text, &bytes);
    fuzz_check(status == SEGUE_OK || status == SEGUE_E_INVALID);
    if (status == SEGUE_OK) {
        fuzz_check(sgi_seal_write(seal, good_for, 0, sgi_buf_str(&bytes), &again));
        fuzz_check(sgi_str_eq(sgi_buf_str(&again), text));
    } else {
        fuzz_check(!bytes.len);
    }
    sgi_buf_free(&bytes);
    sgi_buf_free(&again);
}

static void check_changed(const sgi_seal *seal, const sgi_seal_purpose *good_for,
                          fuzz_input *in)
{
    sgi_buf text, bytes;
    uint8_t place = fuzz_byte(in), by = fuzz_byte(in);
    sgi_buf_init(&text, &sgi_mem_libc);
    sgi_buf_init(&bytes, &sgi_mem_libc);
    sgi_str plain = {(const char *)in->p, in->left};
    fuzz_check(sgi_seal_write(seal, good_for, 0, plain, &text));
    text.p[place % text.len] ^= (char)by;
    segue_status status = sgi_seal_open(seal, good_for, sgi_buf_str(&text), &bytes);
    fuzz_check(status == (by ? SEGUE_E_INVALID : SEGUE_OK));
    fuzz_check(by || sgi_str_eq(sgi_buf_str(&bytes), plain));
    sgi_buf_free(&text);
    sgi_buf_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t key[SGI_AEAD_KEY] = {1}, older[SGI_AEAD_KEY] = {2};
    const sgi_seal_purpose good_for = {SGI_SEAL_ROUND, owner, what, 2};
    fuzz_input in = {data, size};
    fake_host host;
    sgi_seal seal;
    fake_host_init(&host, &sgi_mem_libc, 1);
    host.engine.digest = sgi_crypto_digest;
    fuzz_check(sgi_seal_init(&seal, &host.engine, key, older));
    if (fuzz_byte(&in) & 1)
        check_changed(&seal, &good_for, &in);
    else
        check_open(&seal, &good_for, (sgi_str){(const char *)in.p, in.left});
    fake_host_free(&host);
    return 0;
}
