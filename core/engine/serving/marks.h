/* The resources that one subscriber wants to hear of, and which of them have changed
 * since it was told. A change is a mark, so however often a resource changes, and however
 * slow its subscriber is, nothing queues. */
#ifndef SGI_MARKS_H
#define SGI_MARKS_H

#include "base/map.h"
#include "engine/limit.h"

/* Of one subscriber: so many, and so many bytes of URIs. */
#define SGI_MARKS_MAX 1000
#define SGI_MARKS_MAX_BYTES ((size_t)256 * 1024)

typedef struct sgi_mark {
    sgi_map_node node;
    TAILQ_ENTRY(sgi_mark) by_age;
    TAILQ_ENTRY(sgi_mark) link; /* while it is set */
    bool set;
    size_t len;
    char uri[];
} sgi_mark;

typedef struct sgi_marks {
    const sgi_mem *mem;
    sgi_map by_uri;
    size_t bytes;
    TAILQ_HEAD(, sgi_mark) all; /* oldest first */
    TAILQ_HEAD(, sgi_mark) due; /* in the order they were set */
} sgi_marks;

/* NULL when out of memory. */
sgi_marks *sgi_marks_new(const sgi_env *env);
/* NULL is no-op. */
void sgi_marks_free(sgi_marks *marks);
/* SEGUE_OK also when it is there; SEGUE_E_LIMIT when there are too many, which
 * sgi_marks_tell puts into words. */
segue_status sgi_marks_add(sgi_marks *marks, sgi_str uri);
sgi_limit_told sgi_marks_tell(const sgi_marks *marks);
void sgi_marks_remove(sgi_marks *marks, sgi_str uri);
/* The resource has changed; false when nobody asked for it. marks may be NULL. */
bool sgi_marks_set(sgi_marks *marks, sgi_str uri);
/* Takes off the next mark that is set; NULL when none is. Good until the next call. marks
 * may be NULL. */
const sgi_mark *sgi_marks_next(sgi_marks *marks);

#endif
