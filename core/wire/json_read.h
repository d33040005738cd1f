/* A strict JSON reader (RFC 8259 to the letter) that validates a whole text in one pass
 * and yields spans of the source. Nothing is converted: numbers stay text, so 1e400 and
 * 2^64 pass through; strings stay escaped until somebody decodes them.
 *
 * Refused with position: syntax errors, trailing bytes, invalid UTF-8, lone surrogates
 * in escapes, duplicate keys in one object (compared decoded, at any depth), nesting
 * over max_depth, text over max_bytes. Work is bounded: linear in the text, whatever its
 * keys.
 *
 * Once a text has passed, its values are walked by the sgi_json_ functions on spans
 * below. They trust the text and never fail on it. */
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

/* at is the offset of the first offending byte, the text's length when it ends too early;
 * of the first byte of what is no UTF-8; of the backslash of a lone surrogate; of the
 * opening quote of a key that is there already; of the bracket that is too deep. */
typedef struct sgi_json_error {
    sgi_json_fault fault;
    size_t at;
} sgi_json_error;

/* "duplicate key" and so on. */
const char *sgi_json_fault_text(sgi_json_fault fault);

#define SGI_JSON_MAX_BYTES ((size_t)INT32_MAX)

/* Settings and scratch memory; one per thread of use, reused from text to text. */
typedef struct sgi_json_reader {
    const sgi_mem *mem;
    size_t max_bytes;  /* at most SGI_JSON_MAX_BYTES */
    int32_t max_depth; /* containers open at once */
    uint64_t seed[2];  /* secret: hashes keys of large objects */
    /* Scratch (json_keys.h); holds nothing between texts. */
    struct sgi_json_frame *frames; /* the containers that are open */
    uint32_t frame_cap;
    uint32_t depth;
    struct sgi_json_key *keys; /* the keys of the objects that are open */
    uint32_t key_cap;
    uint32_t key_count;
    uint32_t *table; /* hash table of the keys of large objects */
    uint32_t table_cap;
    uint32_t table_count;
    sgi_buf names; /* decoded keys, of those that hold escapes */
} sgi_json_reader;

void sgi_json_reader_init(sgi_json_reader *reader, const sgi_env *env, size_t max_bytes,
                          int32_t max_depth);
void sgi_json_reader_free(sgi_json_reader *reader);

/* A value: its bytes in a text that has passed, without surrounding white space. */
typedef sgi_str sgi_json;

typedef struct sgi_json_member {
    sgi_str key; /* between the quotes, still escaped */
    bool escaped;
    sgi_json value;
} sgi_json_member;

/* Validates text. When it is an object and members is not NULL, also records its first
 * max members; *count (may be NULL) receives how many there are, 0 for anything but an
 * object. Leading and trailing white space is allowed. Returns false and fills error
 * (may be NULL) when the text is refused; what it is refused for is what comes first in
 * the text. */
bool sgi_json_read(sgi_json_reader *reader, sgi_str text, sgi_json_member *members,
                   size_t max, size_t *count, sgi_json_error *error);

/* The members of an object whose end is missing: those that have ended, and behind them
 * the one that has not, if its key was there, with an empty value. At most max; returns
 * how many. */
size_t sgi_json_read_cut(sgi_json_reader *reader, sgi_str text, sgi_json_member *members,
                         size_t max);

/* An object further in, whose members are recorded too: who asks for them next needs no
 * walk. */
#define SGI_JSON_PART_MEMBERS 8
typedef struct sgi_json_part {
    sgi_json object; /* empty = there is none */
    size_t count;    /* of its members; more than there is room for: none is to be had */
    sgi_json_member members[SGI_JSON_PART_MEMBERS];
} sgi_json_part;

/* parts[0] is the first member of the outermost object that is an object and has one of
 * names[0] (the second name may be empty), parts[1] in the same way one of parts[0]. */
typedef struct sgi_json_trail {
    const sgi_str (*names)[2];
    sgi_json_part *parts;
    size_t count;
} sgi_json_trail;

/* The same, and records parts. */
bool sgi_json_read_parts(sgi_json_reader *reader, sgi_str text, sgi_json_member *members,
                         size_t max, size_t *count, sgi_json_error *error,
                         const sgi_json_trail *trail);

/* ---- on spans of a text that has passed ---- */

typedef enum sgi_json_kind {
    SGI_JSON_NONE = 0, /* an empty span */
    SGI_JSON_OBJECT,
    SGI_JSON_ARRAY,
    SGI_JSON_STRING,
    SGI_JSON_NUMBER,
    SGI_JSON_TRUE,
    SGI_JSON_FALSE,
    SGI_JSON_NULL
} sgi_json_kind;

/* Strips white space around a text that has passed. */
sgi_json sgi_json_trim(sgi_str text);
sgi_json_kind sgi_json_kind_of(sgi_json value);

/* Walks an object or array: start with at = 0; false at the end. */
bool sgi_json_next_member(sgi_json object, size_t *at, sgi_json_member *member);
bool sgi_json_next_item(sgi_json array, size_t *at, sgi_json *item);

/* Finds a member by its decoded name; an empty span when it is absent. */
sgi_json sgi_json_get(sgi_json object, const char *name);
/* Finds several members in one walk: found[i] is that named names[i], empty when
 * absent. */
void sgi_json_pick(sgi_json object, const sgi_str *names, size_t count, sgi_json *found);
/* The same; what part has recorded, if object is its object, need not be walked. */
void sgi_json_pick_part(const sgi_json_part *part, sgi_json object, const sgi_str *names,
                        size_t count, sgi_json *found);
bool sgi_json_key_is(const sgi_json_member *member, const char *name);

/* Compares a string value, decoded, with text. */
bool sgi_json_string_is(sgi_json value, sgi_str text);
/* Appends a string value, decoded, to out. false when value is no string; out->failed
 * when out of memory. */
bool sgi_json_decode(sgi_json value, sgi_buf *out);
/* The same for text that people read, and programs as a C string: a NUL, which would hide
 * what is behind it, becomes U+FFFD. */
bool sgi_json_decode_shown(sgi_json value, sgi_buf *out);
/* True when decoding changes nothing; then *text is the span between the quotes. */
bool sgi_json_plain_string(sgi_json value, sgi_str *text);
/* An integer of 64 bits; 2.0 and 20e-1 count as 2 (AS-18), 1.5 and 1e300 do not. */
bool sgi_json_int(sgi_json value, int64_t *out);
/* The nearest double; false when value is no number or one too large for a double. */
bool sgi_json_double(sgi_json value, double *out);

/* Is this UTF-8 without surrogates? For text that applications hand in. When it is not,
 * *at (may be NULL) receives the offset of the first sequence that is none. */
bool sgi_utf8_valid(sgi_str text, size_t *at);

#endif
