#include "engine/server/shown.h"

#include "engine/server/server.h"

static const struct {
    int32_t type;
    const char *method;
} lists[] = {
    {SEGUE_ITEM_TOOL, "tools/list"},
    {SEGUE_ITEM_RESOURCE, "resources/list"},
    {SEGUE_ITEM_RESOURCE_TEMPLATE, "resources/templates/list"},
    {SEGUE_ITEM_PROMPT, "prompts/list"},
};
#define LISTS (sizeof lists / sizeof *lists)

int32_t sgi_listed_type(sgi_str method)
{
    for (size_t i = 0; i < LISTS; i++)
        if (sgi_str_eq(sgi_str_of(lists[i].method), method))
            return lists[i].type;
    return 0;
}

const char *sgi_list_method(int32_t type)
{
    for (size_t i = 0; i < LISTS; i++)
        if (lists[i].type == type)
            return lists[i].method;
    return "";
}

bool sgi_shown_is_field(const char *name, sgi_json value)
{
    sgi_json item;
    bool ok = !strcmp(name, "shown") && sgi_json_kind_of(value) == SGI_JSON_ARRAY;
    for (size_t at = 0; ok && sgi_json_next_item(value, &at, &item);)
        ok = sgi_json_kind_of(item) == SGI_JSON_STRING;
    return ok;
}

bool sgi_shown_has(const sgi_shown *shown, const sgi_item *item)
{
    size_t from = 0, to;
    if (!shown || shown->is_all)
        return true;
    for (to = shown->count; from < to;) {
        size_t middle = from + (to - from) / 2;
        if (shown->orders[middle] < item->order)
            from = middle + 1;
        else
            to = middle;
    }
    return from < shown->count && shown->orders[from] == item->order;
}

bool sgi_shown_copy(const sgi_mem *mem, const sgi_shown *shown, sgi_shown **copy)
{
    *copy = NULL;
    if (!shown)
        return true;
    size_t bytes = shown->count * sizeof *shown->orders;
    sgi_shown *made = sgi_zalloc(mem, sizeof *made + bytes);
    if (!made)
        return false;
    *made = (sgi_shown){.type = shown->type,
                        .is_all = shown->is_all,
                        .orders = (uint64_t *)(made + 1),
                        .count = shown->count};
    if (bytes)
        memcpy(made + 1, shown->orders, bytes);
    *copy = made;
    return true;
}

void sgi_shown_free(const sgi_mem *mem, sgi_shown *shown)
{
    if (shown)
        sgi_free(mem, shown, sizeof *shown + shown->count * sizeof *shown->orders);
}
