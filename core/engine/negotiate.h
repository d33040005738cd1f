/* The negotiation matrix (core/docs/requirements.md 5.3) as one pure function: what may
 * be used for a request, given the version in force, what the client declared and which
 * dialects are switched on. */
#ifndef SGI_NEGOTIATE_H
#define SGI_NEGOTIATE_H

#include "base/base.h"

typedef enum sgi_version {
    SGI_VERSION_UNKNOWN = 0,
    SGI_VERSION_2024_11_05,
    SGI_VERSION_2025_03_26,
    SGI_VERSION_2025_06_18,
    SGI_VERSION_2025_11_25,
    SGI_VERSION_DRAFT_2026_V1,
    SGI_VERSION_2026_07_28
} sgi_version;

sgi_version sgi_version_parse(sgi_str text);
const char *sgi_version_name(sgi_version version);

static inline bool sgi_version_is_modern(sgi_version version)
{
    return version == SGI_VERSION_2026_07_28;
}

/* A call that asks its client is answered with the questions, and comes again with the
 * answers (SEP-2322); before, the server asks by requests of its own. */
static inline bool sgi_version_has_rounds(sgi_version version)
{
    return version >= SGI_VERSION_DRAFT_2026_V1;
}

/* Dialects, as a set. The plain response is always possible and has no bit. */
enum sgi_dialect_bit {
    SGI_DIALECT_L = 1,   /* tasks of 2025-11-25 */
    SGI_DIALECT_S = 2,   /* SEP-1905, streaming */
    SGI_DIALECT_D = 4,   /* SEP-2557 */
    SGI_DIALECT_X = 8,   /* SEP-2663, io.modelcontextprotocol/tasks */
    SGI_DIALECT_E = 16,  /* SEP-2694, tasks/stream */
    SGI_DIALECT_P = 32,  /* PR 776 */
    SGI_DIALECT_PN = 64, /* SEP-2998 */
    SGI_DIALECT_Z = 128, /* SEP-975 */
    SGI_DIALECT_I = 256, /* SEP-1905, immediate */
    /* ways of S and I, no dialects of their own; segue.h says what they mean */
    SGI_DIALECT_ONE_RESPONSE = 512,
    SGI_DIALECT_TRACKING = 1024,
    SGI_DIALECT_UNDECLARED_MODES = 2048,
    SGI_DIALECT_FROM_START = 4096,
    SGI_DIALECT_PARTIAL_INDEX = 8192 /* of P */
};

/* Those whose methods are of 2026-07-28. */
#define SGI_DIALECTS_MODERN (SGI_DIALECT_X | SGI_DIALECT_E | SGI_DIALECT_PN)

/* D has to be asked for. */
#define SGI_DIALECTS_DEFAULT                                                             \
    (SGI_DIALECT_L | SGI_DIALECT_S | SGI_DIALECT_I | SGI_DIALECT_X | SGI_DIALECT_E |     \
     SGI_DIALECT_P | SGI_DIALECT_PARTIAL_INDEX | SGI_DIALECT_PN | SGI_DIALECT_Z)
#define SGI_DIALECTS_KNOWN                                                               \
    (SGI_DIALECTS_DEFAULT | SGI_DIALECT_ONE_RESPONSE | SGI_DIALECT_TRACKING |            \
     SGI_DIALECT_UNDECLARED_MODES | SGI_DIALECT_FROM_START | SGI_DIALECT_D)

/* What a client says, in the session (legacy) or in this request (modern). */
enum sgi_declared_bit {
    SGI_SAYS_TASK_PARAM = 1,     /* params.task, and the tasks capability of L */
    SGI_SAYS_RESPONSE_MODES = 2, /* tasks.responses.modes and responseModes */
    SGI_SAYS_ALLOW_PARTIAL = 4,  /* _meta.allowPartial: true */
    SGI_SAYS_RESUMABLE = 8,      /* capability resumableRequests */
    SGI_SAYS_TASKS_EXTENSION = 16,
    SGI_SAYS_PARTIAL_RESULTS = 32 /* capability partialResults and partialResultToken */
};

/* The set of dialects the server may use; declared and enabled are sets of the above. */
uint32_t sgi_negotiate(sgi_version version, uint32_t declared, uint32_t enabled);

/* What becomes of a call of a tool. */
typedef enum sgi_verdict {
    SGI_VERDICT_PLAIN = 0,          /* one response with the result */
    SGI_VERDICT_TASK,               /* a task */
    SGI_VERDICT_MISSING_CAPABILITY, /* modern: -32021 */
    SGI_VERDICT_METHOD_NOT_FOUND    /* legacy: -32601 */
} sgi_verdict;

sgi_verdict sgi_decide(sgi_version version, uint32_t dialects, int32_t task_policy);

#endif
