#include "base/limit.h"

#include <stdio.h>

enum { OPTION, FIXED };

static const struct {
    const char *name;
    int kind;
} rows[SGI_LIMIT_COUNT] = {
    [SGI_LIMIT_NONE] = {"", FIXED},
#define LIMIT(id, name, kind) [SGI_LIMIT_##id] = {#name, kind},
#include "base/limits.def"
#undef LIMIT
};

const char *sgi_limit_name(sgi_limit_id id)
{
    return rows[id].name;
}

/* Writes a name in camelCase: max_tasks becomes maxTasks. */
static void write_camel(const char *name, char *out, size_t size)
{
    size_t len = 0;
    for (; *name && len + 1 < size; name++) {
        bool is_next = *name == '_' && name[1] >= 'a' && name[1] <= 'z';
        out[len++] = is_next ? (char)(*++name - 'a' + 'A') : *name;
    }
    out[len] = '\0';
}

sgi_limit_text sgi_limit_describe(bool is_camel, const char *what, sgi_limit limit,
                                  const char *reason, const char *advice)
{
    sgi_limit_text told;
    char camel[32];
    const char *name = rows[limit.id].name;
    bool is_fixed = rows[limit.id].kind == FIXED;
    long long value = (long long)limit.value;
    if (is_camel) {
        write_camel(name, camel, sizeof camel);
        name = camel;
    }
    if (is_fixed)
        name = "at most";
    snprintf(told.text, sizeof told.text, "%s: %s%s %lld%s%s", what, name,
             is_fixed ? "" : " is", value, advice ? "; " : "", advice ? advice : "");
    snprintf(told.data, sizeof told.data,
             "{\"reason\":\"%s\",\"limit\":\"%s\",\"value\":%lld}", reason,
             sgi_limit_name(limit.id), value);
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
