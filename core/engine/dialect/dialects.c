#include "engine/dialect/dialect.h"

const sgi_dialect *const sgi_dialects[] = {
    &sgi_dialect_tasks_2025, &sgi_dialect_tasks_2557,
    &sgi_dialect_tasks_ext,  &sgi_dialect_task_events,
    &sgi_dialect_partial,    &sgi_dialect_partial_result,
    &sgi_dialect_resumable,  NULL,
};

const sgi_dialect *sgi_dialect_of(uint32_t set)
{
    for (size_t i = 0; sgi_dialects[i]; i++)
        if ((sgi_dialects[i]->bit & set) && sgi_dialects[i]->created)
            return sgi_dialects[i];
    return NULL;
}

const sgi_dialect *sgi_dialect_named(sgi_str name)
{
    for (size_t i = 0; sgi_dialects[i]; i++)
        if (sgi_str_eq(name, sgi_str_of(sgi_dialects[i]->name)))
            return sgi_dialects[i];
    return NULL;
}

const sgi_method *sgi_dialect_method(uint32_t set, sgi_str name)
{
    for (size_t i = 0; sgi_dialects[i]; i++) {
        if (!(sgi_dialects[i]->bit & set))
            continue;
        for (const sgi_method *m = sgi_dialects[i]->methods; m && m->name; m++)
            if (sgi_str_eq(sgi_str_of(m->name), name))
                return m;
    }
    return NULL;
}
