/* Cells of the matrix, read row by row: a version admits a dialect when the client said
 * what the cell asks for. P yields to a task of the same request, so it is dropped beside
 * L and S, where the client asks for one (C-14); with D only the call itself tells. E is
 * the stream of an X task: without X there is nothing it could stream. */
#include "engine/negotiate.h"

#include <segue/segue.h>

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

static const struct cell {
    uint8_t from, upto; /* versions */
    uint8_t declared;   /* all of these; 0 = nothing is asked for */
    uint8_t dialect;
    uint8_t unless; /* ... and none of these was admitted before it */
    uint8_t beside; /* ... and all of these were */
} cells[] = {
    {SGI_VERSION_2025_11_25, SGI_VERSION_2025_11_25, SGI_SAYS_TASK_PARAM, SGI_DIALECT_L,
     0, 0},
    {SGI_VERSION_2025_11_25, SGI_VERSION_2025_11_25,
     SGI_SAYS_TASK_PARAM | SGI_SAYS_RESPONSE_MODES, SGI_DIALECT_S, 0, 0},
    {SGI_VERSION_DRAFT_2026_V1, SGI_VERSION_DRAFT_2026_V1, 0, SGI_DIALECT_D, 0, 0},
    {SGI_VERSION_2024_11_05, SGI_VERSION_DRAFT_2026_V1, SGI_SAYS_ALLOW_PARTIAL,
     SGI_DIALECT_P, SGI_DIALECT_L | SGI_DIALECT_S, 0},
    {SGI_VERSION_2024_11_05, SGI_VERSION_2025_11_25, SGI_SAYS_RESUMABLE, SGI_DIALECT_Z, 0,
     0},
    {SGI_VERSION_2026_07_28, SGI_VERSION_2026_07_28, SGI_SAYS_TASKS_EXTENSION,
     SGI_DIALECT_X, 0, 0},
    {SGI_VERSION_2026_07_28, SGI_VERSION_2026_07_28, SGI_SAYS_TASKS_EXTENSION,
     SGI_DIALECT_E, 0, SGI_DIALECT_X},
    {SGI_VERSION_2026_07_28, SGI_VERSION_2026_07_28, SGI_SAYS_PARTIAL_RESULTS,
     SGI_DIALECT_PN, 0, 0},
};

uint32_t sgi_negotiate(sgi_version version, uint32_t declared, uint32_t enabled)
{
    uint32_t admitted = 0;
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        const struct cell *cell = &cells[i];
        if (version >= cell->from && version <= cell->upto &&
            (declared & cell->declared) == cell->declared && !(admitted & cell->unless) &&
            (admitted & cell->beside) == cell->beside)
            admitted |= cell->dialect & enabled;
    }
    return admitted;
}

sgi_verdict sgi_decide(sgi_version version, uint32_t dialects, int32_t task_policy)
{
    bool can_be_task = dialects & (SGI_DIALECT_L | SGI_DIALECT_D | SGI_DIALECT_X);
    if (task_policy == SEGUE_TASK_NEVER)
        return dialects & SGI_DIALECT_L ? SGI_VERDICT_METHOD_NOT_FOUND
                                        : SGI_VERDICT_PLAIN;
    if (can_be_task)
        return SGI_VERDICT_TASK;
    if (task_policy == SEGUE_TASK_MAY)
        return SGI_VERDICT_PLAIN;
    return sgi_version_is_modern(version) ? SGI_VERDICT_MISSING_CAPABILITY
                                          : SGI_VERDICT_METHOD_NOT_FOUND;
}
