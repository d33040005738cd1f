#include "wire/version.h"

#include <string.h>

static const sgi_str version_names[] = {
    [SGI_VERSION_UNKNOWN] = SGI_STR_INIT(""),
    [SGI_VERSION_2024_11_05] = SGI_STR_INIT("2024-11-05"),
    [SGI_VERSION_2025_03_26] = SGI_STR_INIT("2025-03-26"),
    [SGI_VERSION_2025_06_18] = SGI_STR_INIT("2025-06-18"),
    [SGI_VERSION_2025_11_25] = SGI_STR_INIT("2025-11-25"),
    [SGI_VERSION_DRAFT_2026_V1] = SGI_STR_INIT("DRAFT-2026-v1"),
    [SGI_VERSION_2026_07_28] = SGI_STR_INIT("2026-07-28"),
};

sgi_version sgi_version_parse(sgi_str text)
{
    for (int v = SGI_VERSION_2024_11_05; v <= SGI_VERSION_2026_07_28; v++)
        if (sgi_str_eq(text, version_names[v]))
            return (sgi_version)v;
    return SGI_VERSION_UNKNOWN;
}

const char *sgi_version_name(sgi_version version)
{
    return version_names[version].p;
}

bool sgi_version_name_is_modern(sgi_str name)
{
    sgi_str first = version_names[SGI_VERSION_MODERN];
    return name.n == first.n && memcmp(name.p, first.p, first.n) >= 0;
}
