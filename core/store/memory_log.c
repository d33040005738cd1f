/* Packed logs. The first chunk is small, because most operations have two or three
 * entries. Each further chunk is as large as all chunks before it together, up to
 * CHUNK_MAX. Therefore a log wastes at most half of its memory, and a long log at most
 * one chunk. An entry is never split; an entry that is larger than a chunk gets a chunk
 * of its own size.
 *
 * Appending changes only the end of the last chunk, so one position describes a state of
 * the log. Entries do not store their numbers: each chunk has the number of its first
 * entry. A gap is a head without payload; it has the number of entries that were dropped
 * at its position. Dropping moves the remaining entries of a chunk together. An empty
 * chunk is freed. A chunk that is mostly empty is replaced by a smaller one when there is
 * memory for the smaller one. */
#include "store/memory_log.h"

#define CHUNK_FIRST 256
#define CHUNK_MIN 512
#define CHUNK_MAX (64 * 1024 - 64)
/* The estimated number of bytes that the allocator uses for itself with each block. */
#define CHUNK_ALLOWANCE 16

struct sgi_memory_chunk {
    struct sgi_memory_chunk *next;
    uint64_t first_seq;
    size_t used; /* number of bytes of `bytes` that are in use */
    size_t size; /* number of bytes that the chunk can hold */
    char bytes[];
};

typedef struct sgi_memory_chunk chunk;

/* The head of an entry. The head stands before the entry's payload and is not aligned. */
typedef struct entry_head {
    /* in an entry: the number of its segment; in a gap: the number of dropped entries */
    uint64_t segment;
    uint64_t event;
    int64_t at_ms;
    int32_t kind;
    /* length of the payload in bytes; the value GAP marks this head as a gap */
    uint32_t len;
} entry_head;

#define GAP UINT32_MAX

/* Returns how many entry numbers a head stands for: 1 for an entry, and the number of
 * dropped entries for a gap. */
static uint64_t numbers_of(const entry_head *head)
{
    return head->len == GAP ? head->segment : 1;
}

static size_t size_of(const entry_head *head)
{
    return sizeof *head + (head->len == GAP ? 0 : head->len);
}

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
    if (entry->data_len >= GAP)
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

sgi_memory_mark sgi_memory_log_get_mark(const sgi_memory_log *log)
{
    return (sgi_memory_mark){log->last, log->last ? log->last->used : 0, log->last_seq,
                             log->bytes};
}

static void free_chunks(chunk *at, const sgi_mem *mem)
{
    while (at) {
        chunk *next = at->next;
        sgi_free(mem, at, sizeof *at + at->size);
        at = next;
    }
}

void sgi_memory_log_roll_back(sgi_memory_log *log, const sgi_mem *mem,
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

/* Returns the chunk with the first entry whose number is above `after`. The search first
 * tries the last chunk and the chunk of the last read, so that readers of a long log do
 * not start at its beginning each time. */
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
        entry_head head;
        for (size_t pos = 0; pos < at->used; entry.seq += numbers_of(&head)) {
            memcpy(&head, at->bytes + pos, sizeof head);
            entry.data = at->bytes + pos + sizeof head;
            pos += size_of(&head);
            if (head.len == GAP || entry.seq <= after)
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

/* ---- dropping ---- */

/* The state of packing one chunk, which moves the remaining entries of the chunk to its
 * beginning. */
typedef struct packing {
    chunk *at;
    size_t used;
    uint64_t gap; /* number of dropped entries that are not written as a gap yet */
} packing;

static void write_gap(packing *p)
{
    entry_head head = {.segment = p->gap, .len = GAP};
    if (p->gap && !p->used) {
        p->at->first_seq += p->gap;
    } else if (p->gap) {
        memcpy(p->at->bytes + p->used, &head, sizeof head);
        p->used += sizeof head;
    }
    p->gap = 0;
}

/* Drops the chunk's entries of one kind up to number `upto`. Needs no memory, because a
 * gap never has more bytes than the entries that it replaces. */
static void pack(chunk *at, int32_t kind, uint64_t upto, bool is_last)
{
    packing p = {.at = at};
    entry_head head;
    uint64_t seq = at->first_seq;
    size_t pos = 0, size;
    for (; pos < at->used; pos += size, seq += numbers_of(&head)) {
        memcpy(&head, at->bytes + pos, sizeof head);
        size = size_of(&head);
        if (head.len == GAP || (head.kind == kind && seq <= upto)) {
            p.gap += numbers_of(&head);
            continue;
        }
        write_gap(&p);
        memmove(at->bytes + p.used, at->bytes + pos, size);
        p.used += size;
    }
    /* only the last chunk needs a gap at its end; after another chunk, the first number
     * of the next chunk shows how many entries were dropped */
    if (is_last)
        write_gap(&p);
    at->used = p.used;
}

static chunk *shrink(sgi_memory_log *log, const sgi_mem *mem, chunk *at)
{
    size_t before = sizeof *at + at->size, after = sizeof *at + at->used;
    chunk *smaller = sgi_realloc(mem, at, before, after);
    if (!smaller)
        return at;
    smaller->size = smaller->used;
    log->bytes -= before - after;
    return smaller;
}

static chunk *take_out(sgi_memory_log *log, const sgi_mem *mem, chunk *at)
{
    chunk *next = at->next;
    log->bytes -= sizeof *at + at->size + CHUNK_ALLOWANCE;
    sgi_free(mem, at, sizeof *at + at->size);
    return next;
}

void sgi_memory_log_drop_kind(sgi_memory_log *log, const sgi_mem *mem, int32_t kind,
                              uint64_t upto)
{
    chunk **link = &log->first;
    log->recent = NULL;
    while (*link && (*link)->first_seq <= upto) {
        chunk *at = *link;
        bool is_last = at == log->last;
        pack(at, kind, upto, is_last);
        if (!at->used && !is_last) {
            *link = take_out(log, mem, at);
            continue;
        }
        if (!is_last && at->used < at->size / 2)
            *link = at = shrink(log, mem, at);
        link = &at->next;
    }
}

void sgi_memory_log_free(sgi_memory_log *log, const sgi_mem *mem)
{
    free_chunks(log->first, mem);
    *log = (sgi_memory_log){.first = NULL};
}
