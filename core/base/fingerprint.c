#include "base/fingerprint.h"

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

/* Words are stored with their lowest byte first. Compilers make one load or store of each
 * function in this form. */
static inline uint64_t read_word(const uint8_t *at)
{
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
           (uint64_t)at[3] << 24 | (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 |
           (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

static inline void write_word(uint8_t *at, uint64_t word)
{
    at[0] = (uint8_t)word;
    at[1] = (uint8_t)(word >> 8);
    at[2] = (uint8_t)(word >> 16);
    at[3] = (uint8_t)(word >> 24);
    at[4] = (uint8_t)(word >> 32);
    at[5] = (uint8_t)(word >> 40);
    at[6] = (uint8_t)(word >> 48);
    at[7] = (uint8_t)(word >> 56);
}

/* The state of SipHash, which is passed by value, so that it stays in registers. */
typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static inline sip sip_round(sip s)
{
    s.a += s.b;
    s.b = ROTL(s.b, 13) ^ s.a;
    s.a = ROTL(s.a, 32);
    s.c += s.d;
    s.d = ROTL(s.d, 16) ^ s.c;
    s.a += s.d;
    s.d = ROTL(s.d, 21) ^ s.a;
    s.c += s.b;
    s.b = ROTL(s.b, 17) ^ s.c;
    s.c = ROTL(s.c, 32);
    return s;
}

static inline sip absorb(sip s, uint64_t word)
{
    s.d ^= word;
    s = sip_round(s);
    s.a ^= word;
    return s;
}

static inline sip absorb_part(sip s, sgi_str part)
{
    const uint8_t *at = (const uint8_t *)part.p;
    size_t left = part.n;
    SGI_WORK(part.n);
    s = absorb(s, part.n);
    for (; left >= 8; left -= 8, at += 8)
        s = absorb(s, read_word(at));
    if (left) {
        uint8_t rest[8] = {0};
        memcpy(rest, at, left);
        s = absorb(s, read_word(rest));
    }
    return s;
}

static inline sip finish(sip s)
{
    return sip_round(sip_round(sip_round(s)));
}

static inline uint64_t fold(sip s)
{
    return s.a ^ s.b ^ s.c ^ s.d;
}

void sgi_fingerprint(uint8_t out[SGI_FINGERPRINT_SIZE],
                     const uint8_t key[SGI_FINGERPRINT_SIZE], const sgi_str *parts,
                     size_t count)
{
    uint64_t first = read_word(key), second = read_word(key + 8), bytes = 0;
    sip s = {first ^ 0x736f6d6570736575u, second ^ 0x646f72616e646f6du ^ 0xee,
             first ^ 0x6c7967656e657261u, second ^ 0x7465646279746573u};
    for (size_t i = 0; i < count; i++) {
        s = absorb_part(s, parts[i]);
        bytes += 8 + (parts[i].n + 7) / 8 * 8;
    }
    s = absorb(s, bytes << 56);
    s.c ^= 0xee;
    s = finish(s);
    write_word(out, fold(s));
    s.b ^= 0xdd;
    write_word(out + 8, fold(finish(s)));
}
