/* Turns a long double into a double on aarch64, where a long double has 128 bits. Of all
 * that a bundled build links, only curl's printf asks for it, for "%Lf", which nothing
 * uses. The runtime library of zig has it, too, but in one object with its own memcpy
 * and its own stack guard, which has a fixed value: these would then stand in for those
 * of the C library. The check of packages refuses that. */
#include <stdlib.h>

#ifdef __aarch64__
double __trunctfdf2(long double value);

double __trunctfdf2(long double value)
{
    (void)value;
    abort();
}
#endif
