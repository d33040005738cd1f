/* Sealed texts. A text that was changed, is used for something else, is too old, or comes
 * to a server with another key opens to nothing. The format stays, because servers of
 * several releases may share a key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/server/seal.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

#define EXPIRES (FAKE_EPOCH + 1000)

static test_mem tm;
static fake_host host;
static sgi_seal ours;
static const uint8_t ann[SGI_DIGEST_SIZE] = {1}, bob[SGI_DIGEST_SIZE] = {2};
static const sgi_str call[] = {SGI_STR_INIT("tools/call"), SGI_STR_INIT("ab"),
                               SGI_STR_INIT("{}")};
static const sgi_seal_purpose of_ann = {SGI_SEAL_ROUND, ann, call, 3};

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 1);
    host.engine.digest = sgi_crypto_digest;
    return sgi_seal_init(&ours, &host.engine, NULL, NULL) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

/* Returns the sealed text of these bytes; the caller frees it. */
static char *seal(const sgi_seal *with, const sgi_seal_purpose *good_for, int64_t expires,
                  const char *bytes)
{
    sgi_buf out;
    sgi_buf_init(&out, &sgi_mem_libc);
    assert_true(sgi_seal_write(with, good_for, expires, sgi_str_of(bytes), &out));
    assert_true(sgi_buf_terminate(&out));
    return out.p;
}

static segue_status open_text(const sgi_seal *with, const sgi_seal_purpose *good_for,
                              const char *text, size_t len, const char *bytes)
{
    sgi_buf out;
    sgi_buf_init(&out, &sgi_mem_libc);
    segue_status status = sgi_seal_open(with, good_for, (sgi_str){text, len}, &out);
    if (status == SEGUE_OK)
        assert_true(sgi_str_eq(sgi_buf_str(&out), sgi_str_of(bytes)));
    else
        assert_int_equal(out.len, 0);
    sgi_buf_free(&out);
    return status;
}

static segue_status opens(const sgi_seal *with, const sgi_seal_purpose *good_for,
                          const char *text, const char *bytes)
{
    return open_text(with, good_for, text, strlen(text), bytes);
}

static void what_was_sealed_comes_back(void **state)
{
    (void)state;
    char bytes[101];
    for (size_t n = 0; n <= 100; n++) {
        memset(bytes, 'a' + (int)(n % 26), n);
        bytes[n] = 0;
        char *text = seal(&ours, &of_ann, 0, bytes);
        assert_int_equal(opens(&ours, &of_ann, text, bytes), SEGUE_OK);
        assert_null(n > 7 ? strstr(text, bytes) : NULL);
        assert_null(strpbrk(text, "+/=\"\\ "));
        free(text);
    }
}

static void every_change_is_found(void **state)
{
    (void)state;
    char *text = seal(&ours, &of_ann, EXPIRES, "the secret");
    size_t len = strlen(text);
    char *other = malloc(len + 9);
    for (size_t i = 0; i < len; i++)
        for (int c = 1; c < 256; c++) {
            memcpy(other, text, len);
            if (c == (uint8_t)text[i])
                continue;
            other[i] = (char)c;
            if (open_text(&ours, &of_ann, other, len, "") != SEGUE_E_INVALID)
                fail_msg("byte %zu may be %d", i, c);
        }
    for (size_t n = 0; n < len; n++)
        assert_int_equal(open_text(&ours, &of_ann, text, n, ""), SEGUE_E_INVALID);
    static const char *const tails[] = {"A", "AA", "AAAA", "=", "==", "AAAAAAAA", "\n"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        snprintf(other, len + 9, "%s%s", text, tails[i]);
        assert_int_equal(opens(&ours, &of_ann, other, ""), SEGUE_E_INVALID);
        snprintf(other, len + 9, "%s%s", tails[i], text);
        assert_int_equal(opens(&ours, &of_ann, other, ""), SEGUE_E_INVALID);
    }
    free(other);
    free(text);
}

static void it_is_good_for_one_thing(void **state)
{
    (void)state;
    static const sgi_str name[] = {SGI_STR_INIT("tools/call"), SGI_STR_INIT("ac"),
                                   SGI_STR_INIT("{}")};
    static const sgi_str cut[] = {SGI_STR_INIT("tools/calla"), SGI_STR_INIT("b"),
                                  SGI_STR_INIT("{}")};
    static const sgi_str more[] = {SGI_STR_INIT("tools/call"), SGI_STR_INIT("ab"),
                                   SGI_STR_INIT("{}"), SGI_STR_INIT("")};
    static const sgi_str method[] = {SGI_STR_INIT("prompts/get"), SGI_STR_INIT("ab"),
                                     SGI_STR_INIT("{}")};
    const sgi_seal_purpose others[] = {
        {SGI_SEAL_CURSOR, ann, call, 3}, {SGI_SEAL_ROUND, bob, call, 3},
        {SGI_SEAL_ROUND, ann, name, 3},  {SGI_SEAL_ROUND, ann, cut, 3},
        {SGI_SEAL_ROUND, ann, more, 4},  {SGI_SEAL_ROUND, ann, call, 2},
        {SGI_SEAL_ROUND, ann, method, 3}};
    char *text = seal(&ours, &of_ann, 0, "x");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(opens(&ours, &others[i], text, "x"), SEGUE_E_INVALID);
        char *other = seal(&ours, &others[i], 0, "x");
        assert_string_not_equal(other, text);
        free(other);
    }
    free(text);
}

/* Caches identify a page by its cursor, so the same cursor has the same text. A different
 * cursor has a completely different text. */
static void the_same_is_the_same_text(void **state)
{
    (void)state;
    char *a = seal(&ours, &of_ann, 5, "1");
    char *b = seal(&ours, &of_ann, 5, "1");
    char *c = seal(&ours, &of_ann, 5, "2");
    char *d = seal(&ours, &of_ann, 6, "1");
    assert_string_equal(a, b);
    assert_memory_not_equal(a, c, 8);
    assert_memory_not_equal(a, d, 8);
    free(a);
    free(b);
    free(c);
    free(d);
}

static void its_time_ends(void **state)
{
    (void)state;
    char *text = seal(&ours, &of_ann, EXPIRES, "x");
    char *lasting = seal(&ours, &of_ann, 0, "y");
    assert_int_equal(opens(&ours, &of_ann, text, "x"), SEGUE_OK);
    fake_host_advance(&host, 999);
    assert_int_equal(opens(&ours, &of_ann, text, "x"), SEGUE_OK);
    fake_host_advance(&host, 1);
    assert_int_equal(opens(&ours, &of_ann, text, "x"), SEGUE_E_TIMEOUT);
    assert_int_equal(opens(&ours, &of_ann, lasting, "y"), SEGUE_OK);
    text[0] = text[0] == 'A' ? 'B' : 'A';
    assert_int_equal(opens(&ours, &of_ann, text, "x"), SEGUE_E_INVALID);
    free(text);
    free(lasting);
}

static void keys_are_replaced(void **state)
{
    (void)state;
    const uint8_t first[SGI_AEAD_KEY] = {1}, second[SGI_AEAD_KEY] = {2};
    sgi_seal before, after, rolling, stranger;
    assert_true(sgi_seal_init(&before, &host.engine, first, NULL));
    assert_true(sgi_seal_init(&rolling, &host.engine, second, first));
    assert_true(sgi_seal_init(&after, &host.engine, second, NULL));
    assert_true(sgi_seal_init(&stranger, &host.engine, NULL, NULL));
    assert_true(before.shared && rolling.shared && !stranger.shared && !ours.shared);
    char *old = seal(&before, &of_ann, 0, "old");
    char *new = seal(&rolling, &of_ann, 0, "new");
    assert_int_equal(opens(&before, &of_ann, old, "old"), SEGUE_OK);
    assert_int_equal(opens(&rolling, &of_ann, old, "old"), SEGUE_OK);
    assert_int_equal(opens(&after, &of_ann, old, "old"), SEGUE_E_INVALID);
    assert_int_equal(opens(&before, &of_ann, new, "new"), SEGUE_E_INVALID);
    assert_int_equal(opens(&rolling, &of_ann, new, "new"), SEGUE_OK);
    assert_int_equal(opens(&after, &of_ann, new, "new"), SEGUE_OK);
    assert_int_equal(opens(&stranger, &of_ann, new, "new"), SEGUE_E_INVALID);
    assert_int_equal(opens(&ours, &of_ann, new, "new"), SEGUE_E_INVALID);
    free(old);
    free(new);
}

/* A release must open the texts of the release before it, otherwise it would break
 * calls. */
static void its_form_stays(void **state)
{
    (void)state;
    const uint8_t key[SGI_AEAD_KEY] = {7};
    sgi_seal shared;
    assert_true(sgi_seal_init(&shared, &host.engine, key, NULL));
    char *text = seal(&shared, &of_ann, 0, "payload");
    assert_string_equal(
        text,
        "ZPVEb98mVCyG3XXQmJJKHH7QwLLyyxszvLdjYkTRlGKF8rhgzo6dVBIp_LnD_boIMl1dcCuBnw");
    free(text);
}

/* Test case 14 of the specification of GCM. */
static void the_cipher_is_aes_256_gcm(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e,
                                       0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18,
                                       0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0,
                                       0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
    const uint8_t key[SGI_AEAD_KEY] = {0}, nonce[SGI_AEAD_NONCE] = {0};
    uint8_t sealed[32], plain[16] = {0};
    const sgi_aead *aead = &sgi_crypto_aead;
    sgi_str zeros = {(const char *)plain, sizeof plain};
    sgi_str all = {(const char *)sealed, sizeof sealed};
    assert_true(aead->seal(key, nonce, (sgi_str){0}, zeros, sealed));
    assert_memory_equal(sealed, expected, sizeof expected);
    assert_true(aead->open(key, nonce, (sgi_str){0}, all, plain));
    assert_false(aead->open(key, nonce, SGI_STR("x"), all, plain));
    all.n = SGI_AEAD_TAG - 1;
    assert_false(aead->open(key, nonce, (sgi_str){0}, all, plain));
}

static void without_memory_it_is_said(void **state)
{
    (void)state;
    char *text = seal(&ours, &of_ann, 0, "some bytes");
    size_t failures = 0;
    for (size_t n = 1; n < 40; n++) {
        sgi_buf out, back;
        test_mem_rearm(&tm);
        tm.fail_at = n;
        sgi_buf_init(&out, &tm.mem);
        sgi_buf_init(&back, &tm.mem);
        bool ok = sgi_seal_write(&ours, &of_ann, 0, SGI_STR("some bytes"), &out);
        assert_true(ok != out.failed);
        segue_status status = sgi_seal_open(&ours, &of_ann, sgi_str_of(text), &back);
        assert_true(status == SEGUE_OK || status == SEGUE_E_NOMEM);
        failures += (size_t)!ok + (size_t)(status != SEGUE_OK);
        assert_true(tm.failed == 0 || !ok || status == SEGUE_E_NOMEM);
        sgi_buf_free(&out);
        sgi_buf_free(&back);
    }
    assert_true(failures >= 5);
    test_mem_rearm(&tm);
    free(text);
}

static void without_chance_there_is_no_key(void **state)
{
    (void)state;
    sgi_seal none;
    const uint8_t key[SGI_AEAD_KEY] = {0};
    host.random_fails = true;
    assert_false(sgi_seal_init(&none, &host.engine, NULL, NULL));
    assert_true(sgi_seal_init(&none, &host.engine, key, NULL));
    host.random_fails = false;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_sealed_comes_back),
        TEST(every_change_is_found),
        TEST(it_is_good_for_one_thing),
        TEST(the_same_is_the_same_text),
        TEST(its_time_ends),
        TEST(keys_are_replaced),
        TEST(its_form_stays),
        TEST(the_cipher_is_aes_256_gcm),
        TEST(without_memory_it_is_said),
        TEST(without_chance_there_is_no_key),
    };
    return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
