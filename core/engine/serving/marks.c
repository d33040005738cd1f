#include "engine/serving/marks.h"

sgi_marks *sgi_marks_new(const sgi_env *env)
{
    sgi_marks *marks = sgi_zalloc(env->mem, sizeof *marks);
    if (!marks)
        return NULL;
    marks->mem = env->mem;
    sgi_map_init(&marks->by_uri, env);
    TAILQ_INIT(&marks->all);
    TAILQ_INIT(&marks->due);
    return marks;
}

static sgi_mark *find(const sgi_marks *marks, sgi_str uri)
{
    sgi_map_node *node = sgi_map_find(&marks->by_uri, uri);
    return node ? SGI_OWNER(node, sgi_mark, node) : NULL;
}

static void drop(sgi_marks *marks, sgi_mark *mark)
{
    if (mark->set)
        TAILQ_REMOVE(&marks->due, mark, link);
    TAILQ_REMOVE(&marks->all, mark, by_age);
    marks->bytes -= mark->len;
    sgi_map_remove(&marks->by_uri, &mark->node);
    sgi_release(marks->mem, mark, sizeof *mark + mark->len);
}

void sgi_marks_free(sgi_marks *marks)
{
    sgi_map_node *node;
    if (!marks)
        return;
    while ((node = sgi_map_any(&marks->by_uri)))
        drop(marks, SGI_OWNER(node, sgi_mark, node));
    sgi_map_free(&marks->by_uri);
    sgi_release(marks->mem, marks, sizeof *marks);
}

sgi_limit_told sgi_marks_tell(const sgi_marks *marks)
{
    sgi_limit count = {"max_subscriptions", SGI_MARKS_MAX};
    sgi_limit bytes = {"max_subscription_bytes", SGI_MARKS_MAX_BYTES};
    return sgi_limit_tell("Too many subscriptions",
                          marks->by_uri.count == SGI_MARKS_MAX ? count : bytes, "limit");
}

segue_status sgi_marks_add(sgi_marks *marks, sgi_str uri)
{
    if (find(marks, uri))
        return SEGUE_OK;
    if (marks->by_uri.count == SGI_MARKS_MAX ||
        marks->bytes + uri.n > SGI_MARKS_MAX_BYTES)
        return SEGUE_E_LIMIT;
    sgi_mark *mark = sgi_zalloc(marks->mem, sizeof *mark + uri.n);
    if (!mark)
        return SEGUE_E_NOMEM;
    mark->len = uri.n;
    memcpy(mark->uri, uri.p, uri.n);
    TAILQ_INSERT_TAIL(&marks->all, mark, by_age);
    marks->bytes += mark->len;
    sgi_map_put(&marks->by_uri, &mark->node, (sgi_str){mark->uri, mark->len});
    return SEGUE_OK;
}

void sgi_marks_remove(sgi_marks *marks, sgi_str uri)
{
    sgi_mark *mark = find(marks, uri);
    if (mark)
        drop(marks, mark);
}

bool sgi_marks_set(sgi_marks *marks, sgi_str uri)
{
    sgi_mark *mark = marks ? find(marks, uri) : NULL;
    if (mark && !mark->set) {
        mark->set = true;
        TAILQ_INSERT_TAIL(&marks->due, mark, link);
    }
    return mark != NULL;
}

const sgi_mark *sgi_marks_next(sgi_marks *marks)
{
    sgi_mark *mark = marks ? TAILQ_FIRST(&marks->due) : NULL;
    if (mark) {
        TAILQ_REMOVE(&marks->due, mark, link);
        mark->set = false;
    }
    return mark;
}
