#include "inspect/places.h"

#include <stdlib.h>

static bool grow(sgi_places *p)
{
    size_t cap = p->cap ? 2 * p->cap : 256;
    sgi_place *more =
        sgi_realloc(p->mem, p->all, p->cap * sizeof *more, cap * sizeof *more);
    if (!more)
        return false;
    p->all = more;
    p->cap = cap;
    return true;
}

static int32_t note_place(void *user, const segue_store_record *record)
{
    sgi_places *p = user;
    p->failed = p->failed || (p->count == p->cap && !grow(p));
    char *task_id = p->failed ? NULL : sgi_text_dup(p->mem, sgi_str_of(record->task_id));
    p->failed = !task_id;
    if (task_id)
        p->all[p->count++] = (sgi_place){record->created_ms, task_id};
    return p->failed;
}

int sgi_place_newest_first(const void *a, const void *b)
{
    const sgi_place *x = a, *y = b;
    if (x->created_ms != y->created_ms)
        return x->created_ms < y->created_ms ? 1 : -1;
    return strcmp(y->task_id, x->task_id);
}

/* A scan may pass an operation twice. */
static void drop_repeated(sgi_places *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->count; i++)
        if (kept && sgi_place_newest_first(&p->all[kept - 1], &p->all[i]) == 0)
            sgi_text_free(p->mem, p->all[i].task_id);
        else
            p->all[kept++] = p->all[i];
    p->count = kept;
}

segue_status sgi_places_find(sgi_places *places, sgi_inspection *inspection)
{
    *places = (sgi_places){.mem = inspection->env.mem};
    segue_status status = sgi_store_scan(inspection->store, note_place, places);
    places->lacks_some = status == SEGUE_E_STORE_CORRUPT;
    if (places->lacks_some)
        status = SEGUE_OK;
    if (status == SEGUE_OK && places->failed)
        status = SEGUE_E_NOMEM;
    if (places->count)
        qsort(places->all, places->count, sizeof *places->all, sgi_place_newest_first);
    drop_repeated(places);
    return status;
}

void sgi_places_free(sgi_places *places)
{
    for (size_t i = 0; i < places->count; i++)
        sgi_text_free(places->mem, places->all[i].task_id);
    sgi_free(places->mem, places->all, places->cap * sizeof *places->all);
}
