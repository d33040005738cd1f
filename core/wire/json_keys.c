/* The check for duplicate keys. The check uses two stacks and a table, all of them
 * scratch memory of the reader.
 *
 * frames  one frame per open container.
 * keys    the keys of all open objects, those of the innermost object last. An entry is
 *         8 bytes: the position of the key, and a hash. A key with escapes is compared
 *         in decoded form; the decoded key is in `names`, after its length, until the
 *         object of the key ends.
 * table   open addressing, linear probing, at most half full. The keys of an object enter
 *         the table when the object gets its 33rd key. The hash is then SipHash with the
 *         reader's secret seed, mixed with the depth, so that an attacker cannot aim keys
 *         at one slot and nested objects do not collide. One table serves all open
 *         objects. It needs no tombstones: keys leave in the reverse order in which they
 *         were added, so a leaving key is at the end of every probe sequence that
 *         contains it.
 *
 * Invariant: the table is the same as if the keys of hashed frames were added from bottom
 * to top. Between texts the stacks are empty and the table is all zero.
 *
 * The work is linear. A key of a small object is compared with at most 32 other keys, and
 * its bytes are compared only where the hashes are equal. A key in the table is compared
 * only with keys that share 32 bits of its hash. */
#include "wire/json_keys.h"

#include "base/map.h"

#define KEEP_BYTES ((size_t)64 * 1024)
#define LENGTH_BYTES sizeof(uint32_t)

sgi_json_fault sgi_json_frame_grow(sgi_json_reader *reader)
{
    uint32_t most = reader->max_depth > 0 ? (uint32_t)reader->max_depth : 0;
    uint32_t cap = reader->frame_cap < 16 ? 32 : reader->frame_cap * 2;
    if (cap > most)
        cap = most;
    if (cap <= reader->frame_cap)
        return SGI_JSON_DEPTH;
    void *frames = sgi_realloc(reader->mem, reader->frames,
                               reader->frame_cap * sizeof *reader->frames,
                               cap * sizeof *reader->frames);
    if (!frames)
        return SGI_JSON_NOMEM;
    reader->frames = frames;
    reader->frame_cap = cap;
    return SGI_JSON_OK;
}

static bool grow_keys(sgi_json_reader *reader)
{
    uint32_t cap = reader->key_cap ? reader->key_cap * 2 : 64;
    void *keys =
        sgi_realloc(reader->mem, reader->keys, reader->key_cap * sizeof *reader->keys,
                    cap * sizeof *reader->keys);
    if (!keys)
        return false;
    reader->keys = keys;
    reader->key_cap = cap;
    return true;
}

/* Returns the bytes of a key. A key that is stored as a position in the text has no
 * escapes, so it ends at the next quote. */
static sgi_str key_bytes(const sgi_json_reader *reader, sgi_str text, sgi_json_key key)
{
    if (key.at & SGI_JSON_KEY_DECODED) {
        const char *p = reader->names.p + (key.at & ~SGI_JSON_KEY_DECODED);
        uint32_t len;
        memcpy(&len, p, LENGTH_BYTES);
        return (sgi_str){p + LENGTH_BYTES, len};
    }
    const char *p = text.p + key.at;
    const char *quote = memchr(p, '"', text.n - key.at);
    return (sgi_str){p, (size_t)(quote - p)};
}

static bool same_key(const sgi_json_reader *reader, sgi_str text, sgi_json_key key,
                     sgi_str name)
{
    /* comparing one byte shows whether the key has another length, without a search for
     * the end of the key */
    if (!(key.at & SGI_JSON_KEY_DECODED) &&
        (name.n >= text.n - key.at || text.p[key.at + name.n] != '"'))
        return false;
    return sgi_str_eq(key_bytes(reader, text, key), name);
}

static uint32_t table_hash(const sgi_json_reader *reader, sgi_str name)
{
    uint64_t seed[2] = {reader->seed[0] ^ reader->depth, reader->seed[1]};
    return (uint32_t)sgi_siphash(seed, name.p, name.n);
}

/* Puts a key into the table by its stored hash. Therefore the keys need not be read again
 * when the table grows. */
static void put_slot(sgi_json_reader *reader, uint32_t index)
{
    uint32_t slot = reader->keys[index].hash & (reader->table_cap - 1);
    while (reader->table[slot])
        slot = (slot + 1) & (reader->table_cap - 1);
    reader->table[slot] = index + 1;
    reader->table_count++;
}

static void clear_slot(sgi_json_reader *reader, uint32_t index)
{
    uint32_t slot = reader->keys[index].hash & (reader->table_cap - 1);
    while (reader->table[slot] != index + 1)
        slot = (slot + 1) & (reader->table_cap - 1);
    reader->table[slot] = 0;
    reader->table_count--;
}

static bool is_in_table(const sgi_json_reader *reader, sgi_str text, uint32_t first,
                        uint32_t hash, sgi_str name)
{
    uint32_t slot = hash & (reader->table_cap - 1);
    for (; reader->table[slot]; slot = (slot + 1) & (reader->table_cap - 1)) {
        uint32_t index = reader->table[slot] - 1;
        if (index >= first && reader->keys[index].hash == hash &&
            same_key(reader, text, reader->keys[index], name))
            return true;
    }
    return false;
}

/* Ensures that the table has space for `more` keys. Returns false when out of memory. */
static bool reserve_slots(sgi_json_reader *reader, uint32_t more)
{
    if (reader->table_count + more <= reader->table_cap / 2)
        return true;
    uint32_t cap = reader->table_cap ? reader->table_cap * 2 : 128;
    uint32_t *table = sgi_zalloc(reader->mem, cap * sizeof *table);
    if (!table)
        return false;
    sgi_free(reader->mem, reader->table, reader->table_cap * sizeof *table);
    reader->table = table;
    reader->table_cap = cap;
    reader->table_count = 0;
    for (uint32_t i = 0; i < reader->depth; i++) {
        if (!reader->frames[i].hashed)
            continue;
        uint32_t next =
            i + 1 < reader->depth ? reader->frames[i + 1].first : reader->key_count;
        for (uint32_t k = reader->frames[i].first; k < next; k++)
            put_slot(reader, k);
    }
    return true;
}

/* Puts the keys of an object into the table, before its 33rd key is added. */
static bool enter_table(sgi_json_reader *reader, sgi_str text, sgi_json_frame *frame)
{
    if (!reserve_slots(reader, SGI_JSON_FEW_KEYS + 1))
        return false;
    for (uint32_t k = frame->first; k < reader->key_count; k++) {
        reader->keys[k].hash =
            table_hash(reader, key_bytes(reader, text, reader->keys[k]));
        put_slot(reader, k);
    }
    frame->hashed = true;
    return true;
}

uint32_t sgi_json_key_hash_of(sgi_str name)
{
    unsigned char ends[16] = {0};
    size_t part = name.n < 8 ? name.n : 8;
    if (part) {
        memcpy(ends, name.p, part);
        memcpy(ends + 8, name.p + name.n - part, part);
    }
    return sgi_json_key_hash(sgi_json_load8(ends), sgi_json_load8(ends + 8), name.n);
}

/* Decodes a key into reader->names. *at receives the offset of the decoded key there,
 * with the bit SGI_JSON_KEY_DECODED. Returns false when out of memory. */
static bool decode_key(sgi_json_reader *reader, sgi_str key, uint32_t *at)
{
    sgi_buf *names = &reader->names;
    size_t start = names->len;
    uint32_t len = 0;
    sgi_buf_add(names, &len, LENGTH_BYTES);
    sgi_json_decode((sgi_json){key.p - 1, key.n + 2}, names);
    if (names->failed)
        return false;
    len = (uint32_t)(names->len - start - LENGTH_BYTES);
    memcpy(names->p + start, &len, LENGTH_BYTES);
    *at = (uint32_t)start | SGI_JSON_KEY_DECODED;
    return true;
}

sgi_json_fault sgi_json_key_add_slow(sgi_json_reader *reader, sgi_str text, sgi_str key,
                                     bool escaped)
{
    sgi_json_frame *frame = &reader->frames[reader->depth - 1];
    sgi_json_key added = {(uint32_t)(key.p - text.p), 0};
    if (reader->key_count == reader->key_cap && !grow_keys(reader))
        return SGI_JSON_NOMEM;
    if (escaped && !decode_key(reader, key, &added.at))
        return SGI_JSON_NOMEM;
    sgi_str name = escaped ? key_bytes(reader, text, added) : key;
    if (!frame->hashed && reader->key_count - frame->first >= SGI_JSON_FEW_KEYS &&
        !enter_table(reader, text, frame))
        return SGI_JSON_NOMEM;
    if (frame->hashed) {
        added.hash = table_hash(reader, name);
        if (is_in_table(reader, text, frame->first, added.hash, name))
            return SGI_JSON_DUPLICATE_KEY;
        if (!reserve_slots(reader, 1))
            return SGI_JSON_NOMEM;
    } else {
        added.hash = sgi_json_key_hash_of(name);
        for (uint32_t k = frame->first; k < reader->key_count; k++)
            if (reader->keys[k].hash == added.hash &&
                same_key(reader, text, reader->keys[k], name))
                return SGI_JSON_DUPLICATE_KEY;
    }
    reader->keys[reader->key_count++] = added;
    if (frame->hashed)
        put_slot(reader, reader->key_count - 1);
    return SGI_JSON_OK;
}

void sgi_json_frame_clear(sgi_json_reader *reader)
{
    sgi_json_frame *frame = &reader->frames[reader->depth - 1];
    if (frame->hashed)
        for (uint32_t k = reader->key_count; k > frame->first; k--)
            clear_slot(reader, k - 1);
    reader->names.len = frame->names;
}

void sgi_json_keys_reset(sgi_json_reader *reader)
{
    if (reader->table_count)
        memset(reader->table, 0, reader->table_cap * sizeof *reader->table);
    reader->table_count = 0;
    reader->key_count = 0;
    reader->depth = 0;
    sgi_buf_reset(&reader->names, KEEP_BYTES);
    if (reader->key_cap * sizeof *reader->keys <= KEEP_BYTES &&
        reader->table_cap * sizeof *reader->table <= KEEP_BYTES &&
        reader->frame_cap * sizeof *reader->frames <= KEEP_BYTES)
        return;
    sgi_json_keys_free(reader);
}

void sgi_json_keys_free(sgi_json_reader *reader)
{
    sgi_free(reader->mem, reader->frames, reader->frame_cap * sizeof *reader->frames);
    sgi_free(reader->mem, reader->keys, reader->key_cap * sizeof *reader->keys);
    sgi_free(reader->mem, reader->table, reader->table_cap * sizeof *reader->table);
    sgi_buf_free(&reader->names);
    reader->frames = NULL;
    reader->keys = NULL;
    reader->table = NULL;
    reader->frame_cap = reader->key_cap = reader->table_cap = 0;
}
