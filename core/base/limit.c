#include "base/limit.h"

#include <stdio.h>

sgi_limit_text sgi_limit_describe(const char *what, sgi_limit limit, const char *reason)
{
    return sgi_limit_describe_with_advice(what, limit, reason, NULL);
}

sgi_limit_text sgi_limit_describe_with_advice(const char *what, sgi_limit limit,
                                              const char *reason, const char *advice)
{
    sgi_limit_text told;
    long long value = (long long)limit.value;
    snprintf(told.text, sizeof told.text, "%s: %s is %lld%s%s", what, limit.name, value,
             advice ? "; " : "", advice ? advice : "");
    snprintf(told.data, sizeof told.data,
             "{\"reason\":\"%s\",\"limit\":\"%s\",\"value\":%lld}", reason, limit.name,
             value);
    return told;
}

bool sgi_ranges_check(const sgi_range *ranges, size_t count, char *why, size_t size)
{
    for (const sgi_range *range = ranges; range < ranges + count; range++) {
        bool is_low = range->value < range->least;
        if (!is_low && range->value <= range->most)
            continue;
        snprintf(why, size, "%s is %lld: it has to be at %s %lld", range->name,
                 (long long)range->value, is_low ? "least" : "most",
                 (long long)(is_low ? range->least : range->most));
        return false;
    }
    return true;
}
