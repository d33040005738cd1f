/* A result that a server sent, with the members that the client looks at first. */
#ifndef SGI_RESULT_H
#define SGI_RESULT_H

#include "wire/json_read.h"

typedef struct sgi_result {
    sgi_json json; /* the whole result; empty = there is none */
    sgi_json type; /* resultType; in versions before 2026-07-28 a result has none */
    sgi_json content;
    sgi_json meta; /* _meta */
} sgi_result;

/* parts: those of the message in which the result came; NULL = it did not come in a
 * message. */
static inline sgi_result sgi_result_of(sgi_json json, const sgi_json_part *parts)
{
    static const sgi_str names[] = {SGI_STR_INIT("resultType"), SGI_STR_INIT("content"),
                                    SGI_STR_INIT("_meta")};
    sgi_json found[3];
    if (parts)
        sgi_json_pick_part(&parts[0], json, names, 3, found);
    else
        sgi_json_pick(json, names, 3, found);
    return (sgi_result){json, found[0], found[1], found[2]};
}

/* True when the result ends its call. */
static inline bool sgi_result_is_complete(const sgi_result *result)
{
    return !result->type.n || sgi_json_string_is(result->type, SGI_STR("complete"));
}

#endif
