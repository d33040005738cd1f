/* The rows of the negotiation matrix, which are applied in this order. A row admits its
 * dialect in a range of versions when the client has declared what the row requires.
 * Pieces of a plain result (dialect P) are left out when the client can get a task (L) or
 * segments of a task (S) for the same request (C-14). In DRAFT-2026-v1 (dialect D) the
 * server decides at each call whether the call becomes a task. Event streams (dialect E)
 * show the tasks of 2026-07-28 (dialect X), so E is admitted only together with X. */
#include "engine/negotiate.h"

#include <segue/segue.h>

static const struct cell {
    uint8_t from, upto; /* the first and the last protocol version of the row */
    /* the declarations that the client must have made: a set of sgi_declared_bit; 0 =
     * none is required */
    uint8_t declared;
    uint8_t dialect;
    /* the dialect is left out if an earlier row has admitted one of these dialects */
    uint8_t unless;
    /* the dialect is admitted only if earlier rows have admitted all of these dialects */
    uint8_t beside;
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

uint32_t sgi_negotiate_dialects(sgi_version version, uint32_t declared, uint32_t enabled)
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

sgi_verdict sgi_decide_task(sgi_version version, uint32_t dialects, int32_t task_policy)
{
    bool can_be_task = dialects & (SGI_DIALECT_L | SGI_DIALECT_D | SGI_DIALECT_X);
    if (task_policy == SEGUE_TASK_NEVER)
        return dialects & SGI_DIALECT_L ? SGI_VERDICT_METHOD_NOT_FOUND
                                        : SGI_VERDICT_PLAIN;
    if (can_be_task)
        return SGI_VERDICT_TASK;
    if (task_policy == SEGUE_TASK_MAY)
        return SGI_VERDICT_PLAIN;
    return sgi_facts(version)->is_stateless ? SGI_VERDICT_MISSING_CAPABILITY
                                            : SGI_VERDICT_METHOD_NOT_FOUND;
}
