/* Helpers for tests that the work for a peer's input is proportional to the size of the
 * input. Such a test processes inputs of the sizes n, 2n and 4n and compares the costs.
 * Debug builds count the work done on bytes (SGI_WORK). No clock is involved, so a busy
 * machine changes nothing. */
#ifndef LINEAR_WORK_H
#define LINEAR_WORK_H

#include <stddef.h>
#include <stdint.h>

#define LINEAR_FIRST 1000

/* Four times the input may cost at most this many times the work; more is not linear.
 * Buffers grow by half and maps double, so their copies come in steps. */
#define LINEAR_MOST 6

void expect_linear(const char *what, uint64_t once, uint64_t twice, uint64_t four);

/* A text made of n parts; the caller frees p. */
typedef struct text {
    char *p;
    size_t len, room;
} text;

void text_add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
