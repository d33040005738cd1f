/* Reads the bytes of a fuzzer as a sequence of decisions. After the last byte every
 * decision is zero and `left` is 0, so a program that checks `left` always ends. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct fuzz_input {
    const uint8_t *p;
    size_t left;
} fuzz_input;

static inline uint8_t fuzz_byte(fuzz_input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->p++;
}

/* Returns a number below n, which is at most 256. */
static inline uint32_t fuzz_below(fuzz_input *in, uint32_t n)
{
    return fuzz_byte(in) % n;
}

static inline bool fuzz_one_in(fuzz_input *in, uint32_t n)
{
    return fuzz_below(in, n) == 1;
}

/* Checks an invariant; the fuzzer aborts when it does not hold. */
#define fuzz_check(holds) fuzz_check_at((holds), __FILE__, __LINE__, #holds)

static inline void fuzz_check_at(bool holds, const char *file, int line, const char *text)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
    abort();
}

#endif
