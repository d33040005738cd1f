/* The kinds of calls. A kind belongs to a method that runs a handler, and describes how
 * the results of this method differ from other results (R-1905-64). An operation itself
 * knows only segments and fields. */
#ifndef SGI_CALL_KIND_H
#define SGI_CALL_KIND_H

#include "base/base.h"

/* The forms of a JSON object that can be a segment. */
enum sgi_shape {
    SGI_SHAPE_BLOCK = 1, /* a content block; the object has a type */
    /* contents of a resource; the object has a uri, and text or a blob */
    SGI_SHAPE_CONTENTS = 2,
    /* a message of a prompt; the object has a role and a content block in `content` */
    SGI_SHAPE_MESSAGE = 4
};

/* A member that every result has, and its value when the handler does not set it. */
typedef struct sgi_call_default {
    const char *name;
    const char *json;
} sgi_call_default;

typedef struct sgi_call_kind {
    const char *method;
    /* name of the member that is the list of segments; NULL = the result has no list */
    const char *list;
    uint32_t shape; /* the forms that a segment may have: a set of enum sgi_shape */
    /* a member that every result has; name NULL = there is no such member */
    sgi_call_default standard;
    /* since 2026-07-28 the result has the ttlMs and cacheScope of the called item */
    bool ages;
    /* Members that the result has until the handler sets them, as a JSON object; NULL =
     * none. Only answers to questions have such members, because some members of their
     * results are required. */
    const char *opening;
    /* The segments are pieces of one message. In the whole result, text pieces are
     * joined, and a single block is written without a list around it. */
    bool is_message;
} sgi_call_kind;

extern const sgi_call_kind sgi_call_tool;       /* the kind of tools/call */
extern const sgi_call_kind sgi_call_resource;   /* the kind of resources/read */
extern const sgi_call_kind sgi_call_prompt;     /* the kind of prompts/get */
extern const sgi_call_kind sgi_call_completion; /* the kind of completion/complete */

/* Returns a description of the object that a segment of this kind has to be, for error
 * messages. */
const char *sgi_shape_text(const sgi_call_kind *kind);

/* The kinds of answers to questions that a server asks its client (engine/reverse). */
extern const sgi_call_kind sgi_call_sampling;    /* the kind of sampling/createMessage */
extern const sgi_call_kind sgi_call_elicitation; /* the kind of elicitation/create */

/* Returns the kind for a question with this method; NULL when the method is not that of a
 * question. */
const sgi_call_kind *sgi_question_kind(sgi_str method);
static inline bool sgi_call_is_question(const sgi_call_kind *kind)
{
    return kind->opening != NULL;
}

#endif
