/* The negotiation matrix (core/docs/requirements.md 5.3) as one pure function. The
 * function returns the dialects that a request may use. The result depends on the version
 * of the conversation, the declarations of the client, and the dialects that are switched
 * on. */
#ifndef SGI_NEGOTIATE_H
#define SGI_NEGOTIATE_H

#include "wire/version.h"

/* The dialects, as bits of a set. The plain response is always possible, so it has no
 * bit. */
enum sgi_dialect_bit {
    SGI_DIALECT_L = 1, /* L: tasks of 2025-11-25 (SEP-1686) */
    SGI_DIALECT_S = 2, /* S: segments of the tasks of 2025-11-25 (SEP-1905) */
    SGI_DIALECT_D = 4, /* D: tasks of DRAFT-2026-v1 (SEP-2557) */
    /* X: tasks of the extension io.modelcontextprotocol/tasks (SEP-2663) */
    SGI_DIALECT_X = 8,
    /* E: event streams of the tasks of 2026-07-28, by tasks/stream (SEP-2694) */
    SGI_DIALECT_E = 16,
    SGI_DIALECT_P = 32,  /* P: pieces of a plain result by further responses (PR 776) */
    SGI_DIALECT_PN = 64, /* PN: pieces of a plain result by notifications (SEP-2998) */
    SGI_DIALECT_Z = 128, /* Z: requests that resume over any transport (SEP-975) */
    /* I: a call that asks for a task gets its result at once if the result is ready
     * (SEP-1905) */
    SGI_DIALECT_I = 256,
    /* The bits from here on are not dialects. Each bit selects a way in which the server
     * follows a draft that allows several ways (enum segue_draft_way of segue.h). */
    SGI_DIALECT_ONE_RESPONSE = 512,
    SGI_DIALECT_TRACKING = 1024,
    SGI_DIALECT_UNDECLARED_MODES = 2048,
    SGI_DIALECT_FROM_START = 4096,
    /* P: a response gives the index of its blocks in the result */
    SGI_DIALECT_PARTIAL_INDEX = 8192
};

/* All dialects except D (tasks of DRAFT-2026-v1), which the application must switch
 * on. */
#define SGI_DIALECTS_DEFAULT                                                             \
    (SGI_DIALECT_L | SGI_DIALECT_S | SGI_DIALECT_I | SGI_DIALECT_X | SGI_DIALECT_E |     \
     SGI_DIALECT_P | SGI_DIALECT_PARTIAL_INDEX | SGI_DIALECT_PN | SGI_DIALECT_Z)
#define SGI_DIALECTS_KNOWN                                                               \
    ((SGI_DIALECTS_DEFAULT | SGI_DIALECT_D) & ~SGI_DIALECT_PARTIAL_INDEX)

/* Each bit of segue_draft_way inverts one of the five bits from SGI_DIALECT_ONE_RESPONSE
 * on. The lowest bit inverts SGI_DIALECT_ONE_RESPONSE, the second bit
 * SGI_DIALECT_TRACKING, and so on. */
#define SGI_WAYS_KNOWN 0x1f
#define SGI_DIALECTS_FLIPPED(ways) ((ways)*SGI_DIALECT_ONE_RESPONSE)

/* What the client has declared: for the whole session in the versions that begin with
 * `initialize`, for each request in 2026-07-28. */
enum sgi_declared_bit {
    /* the member params.task and the tasks capability of 2025-11-25 */
    SGI_SAYS_TASK_PARAM = 1,
    /* the capability tasks.responses.modes and the member responseModes */
    SGI_SAYS_RESPONSE_MODES = 2,
    SGI_SAYS_ALLOW_PARTIAL = 4, /* the member _meta.allowPartial: true */
    SGI_SAYS_RESUMABLE = 8,     /* the capability resumableRequests */
    SGI_SAYS_TASKS_EXTENSION = 16,
    /* the capability partialResults and the member partialResultToken */
    SGI_SAYS_PARTIAL_RESULTS = 32
};

/* Returns the set of dialects that the server may use. declared: a set of
 * sgi_declared_bit. enabled: the dialects that are switched on, a set of
 * sgi_dialect_bit. */
uint32_t sgi_negotiate_dialects(sgi_version version, uint32_t declared, uint32_t enabled);

/* The kind of answer that a call of a tool gets. */
typedef enum sgi_verdict {
    SGI_VERDICT_PLAIN = 0,          /* one response, with the result */
    SGI_VERDICT_TASK,               /* a task */
    SGI_VERDICT_MISSING_CAPABILITY, /* the error -32021 (2026-07-28) */
    SGI_VERDICT_METHOD_NOT_FOUND    /* the error -32601 (versions before 2026-07-28) */
} sgi_verdict;

sgi_verdict sgi_decide_task(sgi_version version, uint32_t dialects, int32_t task_policy);

#endif
