#include "base/percent.h"

int sgi_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool sgi_percent_decode(char *to, size_t size, sgi_str from)
{
    size_t n = 0;
    for (size_t i = 0; i < from.n; i++) {
        char c = from.p[i];
        if (c == '%') {
            int high = i + 2 < from.n ? sgi_hex_digit(from.p[i + 1]) : -1;
            int low = i + 2 < from.n ? sgi_hex_digit(from.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (!c || n + 1 >= size)
            return false;
        to[n++] = c;
    }
    to[n] = 0;
    return true;
}
