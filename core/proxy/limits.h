/* The limits of the proxy that no option sets, from the table limits.def. */
#ifndef PROXY_LIMITS_H
#define PROXY_LIMITS_H

enum {
#define LIMIT(name, value, unit, sentence) name = (value),
#include "limits.def"
#undef LIMIT
};

#endif
