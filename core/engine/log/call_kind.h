/* The kinds of calls. Each method that runs a handler has a kind, which describes how the
 * results of this method differ from other results (R-1905-64). An operation itself knows
 * only segments and fields. */
#ifndef SGI_CALL_KIND_H
#define SGI_CALL_KIND_H

#include "base/base.h"

/* The forms of a JSON object that can be a segment. */
enum sgi_shape {
    SGI_SHAPE_BLOCK = 1, /* a content block; the object has a member "type" */
    /* contents of a resource; the object has a member "uri", and a member "text" or
     * "blob" */
    SGI_SHAPE_CONTENTS = 2,
    /* a message of a prompt; the object has a member "role" and a content block in
     * "content" */
    SGI_SHAPE_MESSAGE = 4
};

/* A member that every result of a kind has, with the value for a handler that sets
 * none. */
typedef struct sgi_call_default_member {
    const char *name;
    const char *json;
} sgi_call_default_member;

typedef struct sgi_call_kind {
    const char *method;
    /* name of the result's member that is the list of segments; NULL = the result has no
     * list */
    const char *list;
    /* the forms that a segment of this kind can have: a set of sgi_shape */
    uint32_t shape;
    /* a member that every result of this kind has; name = NULL: there is no such
     * member */
    sgi_call_default_member standard;
    /* in 2026-07-28 the result has ttlMs and cacheScope, from the options of the called
     * item */
    bool ages;
    /* Members of the result before the handler sets them, as a JSON object; NULL = no
     * members. Only answers to questions have such members, because some of their members
     * are required. */
    const char *opening;
    /* The segments are pieces of one message. In the whole result, text pieces are
     * joined, and a single block has no list around it. */
    bool is_message;
} sgi_call_kind;

extern const sgi_call_kind sgi_call_tool;       /* the kind of tools/call */
extern const sgi_call_kind sgi_call_resource;   /* the kind of resources/read */
extern const sgi_call_kind sgi_call_prompt;     /* the kind of prompts/get */
extern const sgi_call_kind sgi_call_completion; /* the kind of completion/complete */
/* the kind of the question which items a caller sees (engine/server/sight.h); its result
 * reaches no client */
extern const sgi_call_kind sgi_call_list;

/* Returns a description of the segments of this kind, for error messages. */
const char *sgi_call_kind_shape_text(const sgi_call_kind *kind);

/* The two kinds below belong to questions that a server asks its client
 * (engine/reverse). */
extern const sgi_call_kind sgi_call_sampling;    /* the kind of sampling/createMessage */
extern const sgi_call_kind sgi_call_elicitation; /* the kind of elicitation/create */

/* Returns the kind of a question with this method. Returns NULL when the method does not
 * ask a question. */
const sgi_call_kind *sgi_question_kind(sgi_str method);
static inline bool sgi_call_is_question(const sgi_call_kind *kind)
{
    return kind->opening != NULL;
}

#endif
