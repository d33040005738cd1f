/* The keys of the objects that the JSON reader has open, and the check that no object has
 * a key twice. json_keys.c explains the method. Only json_read.c uses this header. */
#ifndef SGI_JSON_KEYS_H
#define SGI_JSON_KEYS_H

#include "wire/json_read.h"
#include "wire/json_scan.h"

/* The maximum number of keys of an object that are compared one by one. A larger object
 * uses a hash table. */
#define SGI_JSON_FEW_KEYS 32

/* A bit of sgi_json_key.at: the key has escapes, and the other bits are the offset of the
 * decoded key in reader->names. */
#define SGI_JSON_KEY_DECODED 0x80000000u

typedef struct sgi_json_key {
    uint32_t at; /* offset of the key in the text, after the opening quote */
    uint32_t hash;
} sgi_json_key;

typedef struct sgi_json_frame {
    uint32_t first; /* index of the object's first key in reader->keys */
    uint32_t names; /* length of reader->names when the object was opened */
    unsigned char closer;
    bool hashed; /* true = the object's keys are in the hash table */
} sgi_json_frame;

/* Makes room for one more open container. On failure returns SGI_JSON_DEPTH or
 * SGI_JSON_NOMEM. */
sgi_json_fault sgi_json_frame_grow(sgi_json_reader *reader);
void sgi_json_frame_clear(sgi_json_reader *reader);

static inline sgi_json_fault sgi_json_frame_open(sgi_json_reader *reader,
                                                 unsigned char closer)
{
    if (reader->depth == reader->frame_cap) {
        sgi_json_fault fault = sgi_json_frame_grow(reader);
        if (fault)
            return fault;
    }
    reader->frames[reader->depth++] =
        (sgi_json_frame){.first = reader->key_count,
                         .names = (uint32_t)reader->names.len,
                         .closer = closer};
    return SGI_JSON_OK;
}

static inline void sgi_json_frame_close(sgi_json_reader *reader)
{
    sgi_json_frame *frame = &reader->frames[reader->depth - 1];
    if (frame->hashed || reader->names.len != frame->names)
        sgi_json_frame_clear(reader);
    reader->key_count = frame->first;
    reader->depth--;
}

/* Returns a hash of all bytes of a short key, or of the first and last 8 bytes of a long
 * key. A peer can choose keys that collide, but at most SGI_JSON_FEW_KEYS keys are
 * compared by this hash. */
static inline uint32_t sgi_json_key_hash(uint64_t head, uint64_t tail, size_t len)
{
    uint64_t mixed = (head + len) * 0x9e3779b97f4a7c15u + tail;
    return (uint32_t)(mixed * 0xd6e8feb86659fd93u >> 32);
}

/* Adds a key without escapes whose hash is known. at: offset of the key in the text.
 * Returns false, and adds nothing, when the key needs sgi_json_key_add. */
static inline bool sgi_json_key_add_hashed(sgi_json_reader *reader, uint32_t at,
                                           uint32_t hash)
{
    uint32_t first = reader->frames[reader->depth - 1].first;
    uint32_t count = reader->key_count;
    if (count - first >= SGI_JSON_FEW_KEYS || count == reader->key_cap)
        return false;
    for (uint32_t i = first; i < count; i++)
        if (reader->keys[i].hash == hash)
            return false;
    reader->keys[count] = (sgi_json_key){at, hash};
    reader->key_count = count + 1;
    return true;
}

/* The slow path of sgi_json_key_add, for keys with escapes, keys of large objects, keys
 * with equal hashes, a full array of keys, and keys in the last bytes of a text. */
sgi_json_fault sgi_json_key_add_slow(sgi_json_reader *reader, sgi_str text, sgi_str key,
                                     bool escaped);

/* Adds a key to the innermost object. key: the text between the quotes, a part of `text`.
 * Returns SGI_JSON_DUPLICATE_KEY when the object already has the key. */
static inline sgi_json_fault sgi_json_key_add(sgi_json_reader *reader, sgi_str text,
                                              sgi_str key, bool escaped)
{
    size_t at = (size_t)(key.p - text.p);
    if (escaped || text.n - at < 8)
        return sgi_json_key_add_slow(reader, text, key, escaped);
    const unsigned char *p = (const unsigned char *)key.p;
    uint64_t head = sgi_json_load8(p);
    uint64_t tail;
    if (key.n >= 8)
        tail = sgi_json_load8(p + key.n - 8);
    else
        tail = head &= (UINT64_C(1) << key.n * 8) - 1;
    uint32_t hash = sgi_json_key_hash(head, tail, key.n);
    return sgi_json_key_add_hashed(reader, (uint32_t)at, hash)
               ? SGI_JSON_OK
               : sgi_json_key_add_slow(reader, text, key, escaped);
}

/* Returns the same hash as sgi_json_key_add uses, without reading a byte beyond the end
 * of the key. */
uint32_t sgi_json_key_hash_of(sgi_str key);

/* Clears all state, even after a text that was refused in the middle, and frees memory
 * that only an unusual text needs. */
void sgi_json_keys_reset(sgi_json_reader *reader);
void sgi_json_keys_free(sgi_json_reader *reader);

#endif
