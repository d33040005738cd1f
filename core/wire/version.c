#include "wire/version.h"

#include <string.h>

#include "wire/jsonrpc.h"

const sgi_version_facts sgi_versions[] = {
    [SGI_VERSION_UNKNOWN] = {.name = SGI_STR_INIT(""),
                             .not_found_code = SGI_RPC_RESOURCE_NOT_FOUND,
                             .refuses_arguments = true,
                             .has_subscribe = true},
    [SGI_VERSION_2024_11_05] = {.name = SGI_STR_INIT("2024-11-05"),
                                .not_found_code = SGI_RPC_RESOURCE_NOT_FOUND,
                                .has_handshake = true,
                                .refuses_arguments = true,
                                .has_subscribe = true},
    [SGI_VERSION_2025_03_26] = {.name = SGI_STR_INIT("2025-03-26"),
                                .not_found_code = SGI_RPC_RESOURCE_NOT_FOUND,
                                .has_handshake = true,
                                .has_batches = true,
                                .refuses_arguments = true,
                                .has_subscribe = true},
    [SGI_VERSION_2025_06_18] = {.name = SGI_STR_INIT("2025-06-18"),
                                .not_found_code = SGI_RPC_RESOURCE_NOT_FOUND,
                                .has_handshake = true,
                                .refuses_arguments = true,
                                .has_subscribe = true},
    [SGI_VERSION_2025_11_25] = {.name = SGI_STR_INIT("2025-11-25"),
                                .not_found_code = SGI_RPC_RESOURCE_NOT_FOUND,
                                .has_handshake = true,
                                .primes_streams = true,
                                .has_tasks_both_ways = true,
                                .has_subscribe = true},
    [SGI_VERSION_DRAFT_2026_V1] = {.name = SGI_STR_INIT("DRAFT-2026-v1"),
                                   .not_found_code = SGI_RPC_RESOURCE_NOT_FOUND,
                                   .header_repeats = SGI_REPEATS_TASK_IDS,
                                   .primes_streams = true,
                                   .has_rounds = true,
                                   .has_subscribe = true},
    [SGI_VERSION_2026_07_28] = {.name = SGI_STR_INIT("2026-07-28"),
                                .not_found_code = SGI_RPC_INVALID_PARAMS,
                                .header_repeats = SGI_REPEATS_ALL,
                                .is_stateless = true,
                                .primes_streams = true,
                                .has_rounds = true,
                                .has_result_types = true,
                                .has_cache_hints = true,
                                .has_any_output = true,
                                .has_extensions = true,
                                .has_log_level_in_meta = true,
                                .cancels_by_closing = true},
};

sgi_version sgi_version_parse(sgi_str text)
{
    /* the newest version, which nearly all requests have, is compared first */
    for (int v = SGI_VERSION_2026_07_28; v >= SGI_VERSION_2024_11_05; v--)
        if (sgi_str_eq(text, sgi_versions[v].name))
            return (sgi_version)v;
    return SGI_VERSION_UNKNOWN;
}

bool sgi_version_name_has_mismatch_code(sgi_str name)
{
    sgi_str first = sgi_versions[SGI_VERSION_MODERN].name;
    return name.n == first.n && memcmp(name.p, first.p, first.n) >= 0;
}
