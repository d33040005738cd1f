/* For tests that what a peer sends costs work in proportion to its size: n, 2n and 4n of
 * something, and what each of them cost. Debug builds count the work that is done to
 * bytes (SGI_WORK): no clock is asked, and a busy machine changes nothing. */
#ifndef LINEAR_WORK_H
#define LINEAR_WORK_H

#include <stddef.h>
#include <stdint.h>

#define LINEAR_FIRST 1000

/* Growth by more than this for four times the input is not linear. Buffers grow by half,
 * maps double: their copies come in steps. */
#define LINEAR_MOST 6

void expect_linear(const char *what, uint64_t once, uint64_t twice, uint64_t four);

/* A text that is made of n parts; p is the caller's to free. */
typedef struct text {
    char *p;
    size_t len, room;
} text;

void text_add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
