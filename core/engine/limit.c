#include "engine/limit.h"

#include <stdio.h>

sgi_limit_told sgi_limit_tell(const char *what, sgi_limit limit, const char *reason)
{
    return sgi_limit_advise(what, limit, reason, NULL);
}

sgi_limit_told sgi_limit_advise(const char *what, sgi_limit limit, const char *reason,
                                const char *advice)
{
    sgi_limit_told told;
    long long value = (long long)limit.value;
    snprintf(told.text, sizeof told.text, "%s: %s is %lld%s%s", what, limit.name, value,
             advice ? "; " : "", advice ? advice : "");
    snprintf(told.data, sizeof told.data,
             "{\"reason\":\"%s\",\"limit\":\"%s\",\"value\":%lld}", reason, limit.name,
             value);
    return told;
}
