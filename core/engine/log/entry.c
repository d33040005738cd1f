#include "engine/log/entry.h"

sgi_entry *sgi_entry_new(const sgi_mem *mem, int32_t kind, const char *data, size_t len)
{
    sgi_entry *entry = sgi_alloc(mem, sizeof *entry + len);
    if (!entry)
        return NULL;
    *entry = (sgi_entry){.kind = kind, .len = (uint32_t)len};
    if (len)
        memcpy(entry->data, data, len);
    return entry;
}

/* Reads the index of a block from *p and moves *p behind the digits. Returns SGI_NO_PLACE
 * when the index is missing or too large. */
static uint64_t read_place(const char **p, const char *end)
{
    const char *from = *p;
    uint64_t place = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
        if (place > (SGI_NO_PLACE - 10) / 10)
            return SGI_NO_PLACE;
        place = place * 10 + (uint64_t)(**p - '0');
    }
    return *p > from ? place : SGI_NO_PLACE;
}

/* A segment with an index has data of the form "[place,block]". Other data is only a
 * block, which is an object. */
bool sgi_entry_read_indexed_block(const sgi_entry *entry, sgi_str *block, uint64_t *place)
{
    const char *p = entry->data;
    const char *end = p + entry->len;
    *block = (sgi_str){p, entry->len};
    if (!entry->len || *p != '[')
        return false;
    p++;
    *place = read_place(&p, end);
    if (*place != SGI_NO_PLACE && end - p > 2 && *p == ',' && end[-1] == ']')
        *block = (sgi_str){p + 1, (size_t)(end - p) - 2};
    else
        *place = SGI_NO_PLACE;
    return true;
}

void sgi_entry_free(const sgi_mem *mem, sgi_entry *entry)
{
    sgi_free(mem, entry, sizeof *entry + entry->len);
}

void sgi_entry_list_free(const sgi_mem *mem, struct sgi_entry_list *list)
{
    sgi_entry *entry, *next;
    SGI_TAILQ_EACH(entry, list, link, next)
        sgi_entry_free(mem, entry);
    TAILQ_INIT(list);
}
