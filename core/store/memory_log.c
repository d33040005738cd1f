/* Packed logs. The first chunk is small, since most operations have two or three entries;
 * each further one is as large as all before it, up to CHUNK_MAX, so that a log wastes at
 * most half of what it occupies and a long one at most one chunk. An entry is never
 * split: one larger than that gets a chunk of its own size.
 *
 * Chunks are only ever appended to, so a state of a log is one position in it. Numbers
 * are not stored: each chunk knows its first and entries have no holes. */
#include "store/memory_log.h"

#define CHUNK_FIRST 256
#define CHUNK_MIN 512
#define CHUNK_MAX (64 * 1024 - 64)
/* What an allocator adds to a block, more or less. */
#define CHUNK_ALLOWANCE 16

struct sgi_memory_chunk {
    struct sgi_memory_chunk *next;
    uint64_t first_seq;
    size_t used; /* of bytes */
    size_t size; /* of bytes */
    char bytes[];
};

typedef struct sgi_memory_chunk chunk;

/* In front of each payload, unaligned. */
typedef struct entry_head {
    uint64_t segment;
    uint64_t event;
    int64_t at_ms;
    int32_t kind;
    uint32_t len;
} entry_head;

static bool add_chunk(sgi_memory_log *log, const sgi_mem *mem, size_t need)
{
    size_t total = CHUNK_FIRST;
    if (log->first)
        total = log->bytes < CHUNK_MIN ? CHUNK_MIN : log->bytes;
    if (total > CHUNK_MAX)
        total = CHUNK_MAX;
    if (total < sizeof(chunk) + need)
        total = sizeof(chunk) + need;
    chunk *added = sgi_alloc(mem, total);
    if (!added)
        return false;
    *added = (chunk){.first_seq = log->last_seq + 1, .size = total - sizeof *added};
    if (log->last)
        log->last->next = added;
    else
        log->first = added;
    log->last = added;
    log->bytes += total + CHUNK_ALLOWANCE;
    return true;
}

segue_status sgi_memory_log_append(sgi_memory_log *log, const sgi_mem *mem,
                                   const segue_store_entry *entry)
{
    if (entry->data_len > UINT32_MAX)
        return SEGUE_E_TOO_LARGE;
    entry_head head = {entry->segment, entry->event, entry->at_ms, entry->kind,
                       (uint32_t)entry->data_len};
    size_t need = sizeof head + entry->data_len;
    if ((!log->last || log->last->size - log->last->used < need) &&
        !add_chunk(log, mem, need))
        return SEGUE_E_NOMEM;
    char *at = log->last->bytes + log->last->used;
    memcpy(at, &head, sizeof head);
    if (head.len)
        memcpy(at + sizeof head, entry->data, head.len);
    log->last->used += need;
    log->last_seq++;
    return SEGUE_OK;
}

sgi_memory_mark sgi_memory_log_mark(const sgi_memory_log *log)
{
    return (sgi_memory_mark){log->last, log->last ? log->last->used : 0, log->last_seq,
                             log->bytes};
}

static void free_chunks(chunk *at, const sgi_mem *mem)
{
    while (at) {
        chunk *next = at->next;
        sgi_release(mem, at, sizeof *at + at->size);
        at = next;
    }
}

void sgi_memory_log_cut(sgi_memory_log *log, const sgi_mem *mem,
                        const sgi_memory_mark *mark)
{
    free_chunks(mark->last ? mark->last->next : log->first, mem);
    log->last = mark->last;
    log->recent = NULL;
    if (log->last) {
        log->last->next = NULL;
        log->last->used = mark->used;
    } else {
        log->first = NULL;
    }
    log->last_seq = mark->last_seq;
    log->bytes = mark->bytes;
}

/* The chunk that holds the entry behind `after`. Most readers are near the end, and who
 * is not goes on where it was: from the beginning a long log would be walked each
 * time. */
static chunk *seek(const sgi_memory_log *log, uint64_t after)
{
    chunk *at = log->first;
    if (log->last && after >= log->last->first_seq)
        at = log->last;
    else if (log->recent && after >= log->recent->first_seq)
        at = log->recent;
    while (at && at->next && after >= at->next->first_seq - 1)
        at = at->next;
    return at;
}

void sgi_memory_log_read(sgi_memory_log *log, uint64_t after, segue_store_entry_fn fn,
                         void *user)
{
    for (chunk *at = seek(log, after); at; at = at->next) {
        log->recent = at;
        segue_store_entry entry = {.seq = at->first_seq};
        for (size_t pos = 0; pos < at->used; entry.seq++) {
            entry_head head;
            memcpy(&head, at->bytes + pos, sizeof head);
            entry.data = at->bytes + pos + sizeof head;
            pos += sizeof head + head.len;
            if (entry.seq <= after)
                continue;
            entry.segment = head.segment;
            entry.event = head.event;
            entry.at_ms = head.at_ms;
            entry.kind = head.kind;
            entry.data_len = head.len;
            if (fn(user, &entry))
                return;
        }
    }
}

void sgi_memory_log_free(sgi_memory_log *log, const sgi_mem *mem)
{
    free_chunks(log->first, mem);
    *log = (sgi_memory_log){.first = NULL};
}
