/* The methods that run a handler, and all that differs in their results (R-1905-64): the
 * operation behind them knows only segments and fields. */
#ifndef SGI_CALL_KIND_H
#define SGI_CALL_KIND_H

#include "base/base.h"

/* What a segment is. */
enum sgi_shape {
    SGI_SHAPE_BLOCK = 1,    /* a content block: has a type */
    SGI_SHAPE_CONTENTS = 2, /* contents of a resource: has a uri, and text or a blob */
    SGI_SHAPE_MESSAGE = 4   /* a message of a prompt: has a role and a content block */
};

/* A member that a result has even when its handler did not set it. */
typedef struct sgi_call_default {
    const char *name;
    const char *json;
} sgi_call_default;

typedef struct sgi_call_kind {
    const char *method;
    const char *list; /* the member that the segments make; NULL = none is sent */
    uint32_t shape;   /* of its segments */
    sgi_call_default standard; /* name NULL = there is none */
    bool ages;                 /* 2026-07-28: it has ttlMs and cacheScope, of its item */
    /* An object: what its result says until its handler says otherwise; NULL = nothing.
     * Set for questions, whose results have members that are required. */
    const char *opening;
    /* The segments are pieces of one message: who gets it whole gets text in one, and an
     * only block without a list around it. */
    bool is_message;
} sgi_call_kind;

extern const sgi_call_kind sgi_call_tool;       /* tools/call */
extern const sgi_call_kind sgi_call_resource;   /* resources/read */
extern const sgi_call_kind sgi_call_prompt;     /* prompts/get */
extern const sgi_call_kind sgi_call_completion; /* completion/complete */

/* What its result is made of, for a message. */
const char *sgi_shape_text(const sgi_call_kind *kind);

/* Questions: what a server asks its client (engine/hosting). */
extern const sgi_call_kind sgi_call_sampling;    /* sampling/createMessage */
extern const sgi_call_kind sgi_call_elicitation; /* elicitation/create */

/* The question that this method asks; NULL when it is none. */
const sgi_call_kind *sgi_question_kind(sgi_str method);
static inline bool sgi_call_is_question(const sgi_call_kind *kind)
{
    return kind->opening != NULL;
}

#endif
