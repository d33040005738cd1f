#include "support/linear_work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

void expect_linear(const char *what, uint64_t once, uint64_t twice, uint64_t four)
{
    if (twice > once * (LINEAR_MOST - 2) || four > once * LINEAR_MOST)
        fail_msg("%s: work %llu, %llu, %llu for n, 2n, 4n", what,
                 (unsigned long long)once, (unsigned long long)twice,
                 (unsigned long long)four);
}

void text_add(text *t, const char *format, ...)
{
    char part[256];
    va_list args;
    va_start(args, format);
    size_t n = (size_t)vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (t->len + n + 1 > t->room) {
        t->room = 2 * (t->len + n + 1);
        t->p = realloc(t->p, t->room);
    }
    memcpy(t->p + t->len, part, n + 1);
    t->len += n;
}
