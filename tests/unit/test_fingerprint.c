/* The values are those of another implementation: OpenSSL's SIPHASH with one round for
 * each word, three at the end, 16 bytes of output and the key 00 01 ... 0f. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/fingerprint.h"

#define X100                                                                             \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"                                 \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void must_be(const char *hex, const sgi_str *parts, size_t count)
{
    uint8_t key[SGI_FINGERPRINT_SIZE], print[SGI_FINGERPRINT_SIZE];
    char text[2 * SGI_FINGERPRINT_SIZE + 1];
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)i;
    sgi_fingerprint(print, key, parts, count);
    for (size_t i = 0; i < sizeof print; i++)
        sprintf(text + 2 * i, "%02X", print[i]);
    assert_string_equal(text, hex);
}

static void is_siphash_1_3_of_128_bits(void **state)
{
    (void)state;
    const sgi_str empty[] = {SGI_STR("")};
    const sgi_str one[] = {SGI_STR("tools/call")};
    const sgi_str apart[] = {SGI_STR("a"), SGI_STR("bcdefgh")};
    const sgi_str apart_later[] = {SGI_STR("ab"), SGI_STR("cdefgh")};
    const sgi_str large[] = {SGI_STR(X100), SGI_STR("12345678")};
    must_be("E77EBCB22788A5BEFD62DB6ADD303001", NULL, 0);
    must_be("DFE380971DF8B3E211F18F3EE3F3FB25", empty, 1);
    must_be("941A2A8630B4570B2346787407F424B6", one, 1);
    must_be("E0AD3B4A50756BDBADC5BE2BFB867880", apart, 2);
    must_be("72BB33F0A0DC1A8F68C5831F48D4FF10", apart_later, 2);
    must_be("8A0B0F369182BEE0F7BE282308257243", large, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_siphash_1_3_of_128_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
