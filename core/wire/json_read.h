/* A strict JSON reader (RFC 8259), which validates a whole text in one pass and gives
 * views of its parts. The reader converts nothing: numbers stay text, so 1e400 and 2^64
 * pass unchanged, and strings stay escaped until they are decoded.
 *
 * The reader refuses the following and reports the position: syntax errors, trailing
 * bytes, invalid UTF-8, lone surrogates in escapes, duplicate keys in one object
 * (compared in decoded form, at any depth), nesting over max_depth, and text over
 * max_bytes. The work is linear in the length of the text, whatever its keys are.
 *
 * The sgi_json_ functions that take a sgi_json read the values of a text that the reader
 * has accepted. They trust the text and do not report errors in it. */
#ifndef SGI_JSON_READ_H
#define SGI_JSON_READ_H

#include "base/buf.h"

typedef enum sgi_json_fault {
    SGI_JSON_OK = 0,
    SGI_JSON_SYNTAX,
    SGI_JSON_TRAILING,
    SGI_JSON_UTF8,
    SGI_JSON_SURROGATE,
    SGI_JSON_DUPLICATE_KEY,
    SGI_JSON_DEPTH,
    SGI_JSON_SIZE,
    SGI_JSON_NOMEM
} sgi_json_fault;

/* An error in a text. `at` is the offset of the first wrong byte. There are five special
 * cases: for a text that ends too early, `at` is the offset of the end; for invalid
 * UTF-8, of the first byte of the sequence; for a lone surrogate, of its backslash; for a
 * duplicate key, of its opening quote; for nesting that is too deep, of the bracket that
 * opens the level. */
typedef struct sgi_json_error {
    sgi_json_fault fault;
    size_t at;
} sgi_json_error;

/* Returns the description of a fault, such as "duplicate key". */
const char *sgi_json_fault_text(sgi_json_fault fault);

#define SGI_JSON_MAX_BYTES ((size_t)INT32_MAX)
#define SGI_JSON_DEFAULT_DEPTH 512 /* maximum nesting, unless the application sets one */

/* The settings and the scratch memory of a reader. A reader reads one text after the
 * other. Only one thread at a time may use a reader. */
typedef struct sgi_json_reader {
    const sgi_mem *mem;
    size_t max_bytes;  /* maximum length of a text in bytes; at most SGI_JSON_MAX_BYTES */
    int32_t max_depth; /* maximum number of containers that are open at the same time */
    uint64_t seed[2];  /* a secret seed for hashing the keys of large objects */
    /* The remaining members are scratch memory (json_keys.h), which is empty between two
     * texts. */
    struct sgi_json_frame *frames; /* the open containers */
    uint32_t frame_cap;
    uint32_t depth;
    struct sgi_json_key *keys; /* the keys of the open objects */
    uint32_t key_cap;
    uint32_t key_count;
    uint32_t *table; /* hash table of the keys of large objects */
    uint32_t table_cap;
    uint32_t table_count;
    sgi_buf names; /* the decoded forms of keys with escapes */
} sgi_json_reader;

void sgi_json_reader_init(sgi_json_reader *reader, const sgi_env *env, size_t max_bytes,
                          int32_t max_depth);
void sgi_json_reader_free(sgi_json_reader *reader);

/* A JSON value: a view of the value's bytes in an accepted text, without surrounding
 * white space. An empty view means that there is no value. */
typedef sgi_str sgi_json;

typedef struct sgi_json_shapes sgi_json_shapes;

typedef struct sgi_json_member {
    sgi_str key; /* the text between the quotes, with its escapes */
    bool escaped;
    sgi_json value;
} sgi_json_member;

/* Validates a text, in which leading and trailing white space is allowed. When the text
 * is an object and members is not NULL, records the object's first `max` members. *count
 * (count may be NULL) receives the number of all members of the object, or 0 when the
 * text is not an object. When the text is refused, returns false and fills *error (error
 * may be NULL) with the first fault in the text. */
bool sgi_json_read(sgi_json_reader *reader, sgi_str text, sgi_json_member *members,
                   size_t max, size_t *count, sgi_json_error *error);

/* Reads an object whose end was cut off. Records at most max members and returns their
 * number. A last member with a complete key and an incomplete value is recorded with an
 * empty value. */
size_t sgi_json_read_truncated(sgi_json_reader *reader, sgi_str text,
                               sgi_json_member *members, size_t max);

/* An inner object whose members are recorded in the same pass as the members of the
 * outermost object. Finding a member of a recorded part needs no second walk. */
#define SGI_JSON_PART_MEMBERS 8
typedef struct sgi_json_part {
    sgi_json object; /* the inner object; empty = the text has no such inner object */
    /* number of members of the inner object; if more than SGI_JSON_PART_MEMBERS,
     * `members` must not be used */
    size_t count;
    sgi_json_member members[SGI_JSON_PART_MEMBERS];
} sgi_json_part;

/* The parts to record. parts[0] is the first member of the outermost object whose value
 * is an object and whose name is one of the two names in names[0] (the second name may be
 * empty). parts[1] is found in parts[0] in the same way, by names[1]. */
typedef struct sgi_json_part_names {
    const sgi_str (*names)[2];
    sgi_json_part *parts;
    size_t count;
    /* what is remembered of earlier texts (json_shape.h); NULL = nothing */
    sgi_json_shapes *shapes;
} sgi_json_part_names;

/* Validates a text as sgi_json_read does, and also records the parts that `trail`
 * names. */
bool sgi_json_read_parts(sgi_json_reader *reader, sgi_str text, sgi_json_member *members,
                         size_t max, size_t *count, sgi_json_error *error,
                         const sgi_json_part_names *trail);

/* ---- values of an accepted text ---- */

typedef enum sgi_json_kind {
    SGI_JSON_NONE = 0, /* the span is empty */
    SGI_JSON_OBJECT,
    SGI_JSON_ARRAY,
    SGI_JSON_STRING,
    SGI_JSON_NUMBER,
    SGI_JSON_TRUE,
    SGI_JSON_FALSE,
    SGI_JSON_NULL
} sgi_json_kind;

/* Returns the accepted text without the white space around it. */
sgi_json sgi_json_trim(sgi_str text);
static inline sgi_json_kind sgi_json_kind_of(sgi_json value)
{
    switch (value.n ? value.p[0] : 0) {
    case '{':
        return SGI_JSON_OBJECT;
    case '[':
        return SGI_JSON_ARRAY;
    case '"':
        return SGI_JSON_STRING;
    case 't':
        return SGI_JSON_TRUE;
    case 'f':
        return SGI_JSON_FALSE;
    case 'n':
        return SGI_JSON_NULL;
    default:
        return value.n ? SGI_JSON_NUMBER : SGI_JSON_NONE;
    }
}

/* sgi_json_next_member steps through the members of an object, sgi_json_next_item through
 * the items of an array. *at must be 0 at the first call. Return false at the end. */
bool sgi_json_next_member(sgi_json object, size_t *at, sgi_json_member *member);
bool sgi_json_next_item(sgi_json array, size_t *at, sgi_json *item);
/* A text block of content in its usual form is {"type":"text","text":"..."}, without
 * white space. Returns the length of such a block at the beginning of `text`, and sets
 * *inner to its text as JSON, between the quotes. Returns 0 for any other value. */
size_t sgi_json_text_block(sgi_str text, sgi_str *inner);
/* True when an accepted text begins as such a block: it has the type "text". */
bool sgi_json_begins_text_block(sgi_str text);

/* Returns the value of the member with this decoded name, or an empty value when the
 * object has no such member. */
sgi_json sgi_json_get(sgi_json object, const char *name);
/* Finds several members in one walk. found[i] receives the value of the member with the
 * name names[i], or an empty value when the object has no such member. */
void sgi_json_pick(sgi_json object, const sgi_str *names, size_t count, sgi_json *found);
/* Finds several members as sgi_json_pick does. If `object` is part->object, the function
 * uses the recorded members and needs no walk. */
void sgi_json_pick_part(const sgi_json_part *part, sgi_json object, const sgi_str *names,
                        size_t count, sgi_json *found);
bool sgi_json_key_is(const sgi_json_member *member, const char *name);

/* True when value is a string that equals `text` in decoded form. */
bool sgi_json_string_is(sgi_json value, sgi_str text);
/* Decodes a string and appends the result to `out`. Returns false when value is not a
 * string. When out of memory, out->failed is set. */
bool sgi_json_decode(sgi_json value, sgi_buf *out);
/* Decodes as sgi_json_decode does, for text that people read or that is used as a C
 * string. A NUL, which would hide the text after it, becomes U+FFFD. */
bool sgi_json_decode_without_nul(sgi_json value, sgi_buf *out);
/* True when value is a string without escapes; *text receives the text between the
 * quotes. */
bool sgi_json_plain_string(sgi_json value, sgi_str *text);
/* Reads a 64-bit integer. 2.0 and 20e-1 count as the integer 2 (AS-18). Returns false for
 * other values, such as 1.5 and 1e300. */
bool sgi_json_read_int(sgi_json value, int64_t *out);
/* Reads a number as the nearest double. Returns false when value is not a number or is
 * too large for a double. */
bool sgi_json_read_double(sgi_json value, double *out);

/* True when a text of the application is valid UTF-8 (without surrogates). For an invalid
 * text, *at (at may be NULL) receives the offset of the first invalid sequence. */
bool sgi_utf8_valid(sgi_str text, size_t *at);

#endif
