/* The JSON validator. It makes one pass over the text and never goes back.
 *
 * read_value has three states: a value is expected, a value has just ended, a key is
 * expected. Open containers are on the reader's stack of frames (json_keys.c), so a level
 * of nesting costs 12 bytes of scratch memory and no C stack. read_members walks the
 * outermost object and records its members. It calls read_value for each value, so the
 * loop that reads most bytes has no code for recording. Parts (sgi_json_part) are read
 * like the outermost object, with one level of C stack for each level of the trail.
 *
 * Reading functions return the position where they stopped, or NULL when the text is
 * refused; scan.error then has the fault and its position. No byte at or after `end` is
 * read.
 *
 * Three techniques make the validator fast. With SSE2, all bytes that can end or
 * interrupt a string are marked 64 at a time, so finding the end of a short string costs
 * one shift; without SSE2, one block at a time is checked. In compact text, one
 * comparison shows that there is no white space. Keys are hashed with two loads. */
#include "wire/json_keys.h"
#include "wire/json_shape.h"

#define WINDOW 64

typedef struct scan {
    sgi_json_reader *reader;
    sgi_str text;
    const unsigned char *end;
    /* the names of the inner objects (parts) whose members are recorded; NULL = only
     * the outermost object's members are recorded */
    const sgi_json_part_names *trail;
    /* true = the string that read_rest has read last contains a backslash */
    bool escaped;
#ifdef SGI_JSON_SSE2
    /* the WINDOW bytes that `marks` describes; fewer bytes at the end of the text */
    const unsigned char *window;
    /* one bit for each byte of the window, the lowest bit for the first byte; set = the
     * byte stops a string */
    uint64_t marks;
#endif
    sgi_json_error error;
} scan;

const char *sgi_json_fault_text(sgi_json_fault fault)
{
    switch (fault) {
    case SGI_JSON_OK:
        return "no fault";
    case SGI_JSON_SYNTAX:
        return "syntax error";
    case SGI_JSON_TRAILING:
        return "there is text after the JSON value";
    case SGI_JSON_UTF8:
        return "invalid UTF-8";
    case SGI_JSON_SURROGATE:
        return "lone surrogate";
    case SGI_JSON_DUPLICATE_KEY:
        return "duplicate key";
    case SGI_JSON_DEPTH:
        return "nested too deeply";
    case SGI_JSON_SIZE:
        return "too large";
    case SGI_JSON_NOMEM:
        return "out of memory";
    }
    return "unknown fault";
}

void sgi_json_reader_init(sgi_json_reader *reader, const sgi_env *env, size_t max_bytes,
                          int32_t max_depth)
{
    if (max_bytes > SGI_JSON_MAX_BYTES)
        max_bytes = SGI_JSON_MAX_BYTES;
    *reader = (sgi_json_reader){
        .mem = env->mem, .max_bytes = max_bytes, .max_depth = max_depth};
    sgi_buf_init(&reader->names, env->mem);
    sgi_random(env, reader->seed, sizeof reader->seed);
}

void sgi_json_reader_free(sgi_json_reader *reader)
{
    sgi_json_keys_free(reader);
}

__attribute__((cold, noinline)) static const unsigned char *
refuse(scan *s, sgi_json_fault fault, const unsigned char *at)
{
    s->error = (sgi_json_error){fault, (size_t)(at - (const unsigned char *)s->text.p)};
    return NULL;
}

/* Reads the second half of a surrogate pair at p. slash: the position of the backslash of
 * the first half. */
static const unsigned char *read_low_surrogate(scan *s, const unsigned char *p,
                                               const unsigned char *slash)
{
    for (int i = 0; i < 6; i++) {
        if (p + i == s->end)
            return refuse(s, SGI_JSON_SYNTAX, s->end);
        bool fits = sgi_json_hex(p[i]) >= 0;
        if (i < 2)
            fits = p[i] == "\\u"[i];
        else if (i == 2)
            fits = (p[i] | 0x20) == 'd';
        else if (i == 3)
            fits = sgi_json_hex(p[i]) >= 0xc;
        if (!fits)
            return refuse(s, SGI_JSON_SURROGATE, slash);
    }
    return p + 6;
}

/* Reads the four digits of a \u escape at p. slash: the position of the escape's
 * backslash. */
static const unsigned char *read_unicode(scan *s, const unsigned char *p,
                                         const unsigned char *slash)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++, p++) {
        int digit = p < s->end ? sgi_json_hex(*p) : -1;
        if (digit < 0)
            return refuse(s, SGI_JSON_SYNTAX, p);
        unit = unit << 4 | (uint32_t)digit;
    }
    if (unit >= 0xd800 && unit <= 0xdbff)
        return read_low_surrogate(s, p, slash);
    if (unit >= 0xdc00 && unit <= 0xdfff)
        return refuse(s, SGI_JSON_SURROGATE, slash);
    return p;
}

/* Reads the escape whose backslash is at p. */
static const unsigned char *read_escape(scan *s, const unsigned char *p)
{
    if (p + 1 == s->end)
        return refuse(s, SGI_JSON_SYNTAX, p + 1);
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p + 2;
    case 'u':
        return read_unicode(s, p + 2, p);
    default:
        return refuse(s, SGI_JSON_SYNTAX, p + 1);
    }
}

/* Reads the escapes and the non-ASCII characters from p on, up to the next plain ASCII
 * byte. */
static const unsigned char *read_special(scan *s, const unsigned char *p)
{
    do {
        if (*p >= 0x80) {
            size_t len = sgi_json_utf8_length(p, s->end);
            if (!len)
                return refuse(s, SGI_JSON_UTF8, p);
            p += len;
        } else if (*p == '\\') {
            s->escaped = true;
            p = read_escape(s, p);
            if (!p)
                return NULL;
        } else {
            return refuse(s, SGI_JSON_SYNTAX, p);
        }
    } while (p < s->end && (*p >= 0x80 || *p == '\\'));
    return p;
}

#ifdef SGI_JSON_SSE2

/* Marks the window at p when the text ends within this window. The end of the text is
 * marked, too, so that a scan stops there at the latest. */
__attribute__((noinline)) static uint64_t mark_tail(const scan *s, const unsigned char *p)
{
    size_t left = (size_t)(s->end - p);
    uint64_t marks = UINT64_C(1) << left;
    size_t i = 0;
    for (; left - i >= 16; i += 16)
        marks |= (uint64_t)sgi_json_block_special(p + i) << i;
    if (s->text.n >= 16 && left > i) {
        uint32_t last = sgi_json_block_special(s->end - 16);
        return marks | (uint64_t)(last >> (16 - (left - i))) << i;
    }
    for (; i < left; i++)
        marks |= (uint64_t)sgi_json_is_special(p[i]) << i;
    return marks;
}

static inline uint64_t mark_window(scan *s, const unsigned char *p)
{
    s->window = p;
    if (s->end - p < WINDOW)
        return s->marks = mark_tail(s, p);
    uint32_t low = sgi_json_block_special(p) | sgi_json_block_special(p + 16) << 16;
    uint32_t high = sgi_json_block_special(p + 32) | sgi_json_block_special(p + 48) << 16;
    return s->marks = low | (uint64_t)high << 32;
}

/* Returns the first byte at or after p that stops a string, or the end of the text. Most
 * strings are short, so one window serves several strings, and a shift finds the next
 * stop. */
static inline const unsigned char *find_special(scan *s, const unsigned char *p)
{
    size_t at = (size_t)(p - s->window);
    if (at < WINDOW) {
        uint64_t marks = s->marks >> at;
        if (marks)
            return p + __builtin_ctzll(marks);
        p = s->window + WINDOW;
    }
    for (;; p += WINDOW) {
        uint64_t marks = mark_window(s, p);
        if (marks)
            return p + __builtin_ctzll(marks);
    }
}

#else

static inline const unsigned char *find_special(scan *s, const unsigned char *p)
{
    return sgi_json_scan(p, s->end, sgi_json_block_special, sgi_json_is_special);
}

#endif

/* Reads the rest of a string from p on, where the string has an escape or a non-ASCII
 * character. Returns the position of the closing quote. */
__attribute__((noinline)) static const unsigned char *read_rest(scan *s,
                                                                const unsigned char *p)
{
    s->escaped = false;
    while (p < s->end && *p != '"') {
        p = read_special(s, p);
        if (!p)
            return NULL;
        p = find_special(s, p);
    }
    return p < s->end ? p : refuse(s, SGI_JSON_SYNTAX, p);
}

/* Reads a string. p: the position after the opening quote. Returns the position of the
 * closing quote. */
static inline const unsigned char *read_string(scan *s, const unsigned char *p,
                                               bool *escaped)
{
    p = find_special(s, p);
    *escaped = false;
    if (p < s->end && *p == '"')
        return p;
    p = read_rest(s, p);
    *escaped = s->escaped;
    return p;
}

static inline bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static const unsigned char *read_digits(scan *s, const unsigned char *p)
{
    if (p == s->end || !is_digit(*p))
        return refuse(s, SGI_JSON_SYNTAX, p);
    while (p < s->end && is_digit(*p))
        p++;
    return p;
}

static const unsigned char *read_number(scan *s, const unsigned char *p)
{
    if (*p == '-')
        p++;
    bool zero = p < s->end && *p == '0';
    const unsigned char *digits = p;
    p = read_digits(s, p);
    if (!p)
        return NULL;
    if (zero && p - digits > 1)
        return refuse(s, SGI_JSON_SYNTAX, digits + 1);
    if (p < s->end && *p == '.') {
        p = read_digits(s, p + 1);
        if (!p)
            return NULL;
    }
    if (p < s->end && (*p | 0x20) == 'e') {
        p++;
        if (p < s->end && (*p == '+' || *p == '-'))
            p++;
        p = read_digits(s, p);
    }
    return p;
}

static const unsigned char *read_word(scan *s, const unsigned char *p, const char *word)
{
    for (; *word; word++, p++)
        if (p == s->end || *p != (unsigned char)*word)
            return refuse(s, SGI_JSON_SYNTAX, p);
    return p;
}

/* Reads a number or a word (true, false, null). Refuses any other text. */
static const unsigned char *read_scalar(scan *s, const unsigned char *p)
{
    switch (*p) {
    case 't':
        return read_word(s, p, "true");
    case 'f':
        return read_word(s, p, "false");
    case 'n':
        return read_word(s, p, "null");
    default:
        return is_digit(*p) || *p == '-' ? read_number(s, p)
                                         : refuse(s, SGI_JSON_SYNTAX, p);
    }
}

/* Reads a key and its colon. Returns the position after the colon. */
static inline const unsigned char *read_key(scan *s, const unsigned char *p, sgi_str *key,
                                            bool *escaped)
{
    p = sgi_json_skip_space(p, s->end);
    if (p == s->end || *p != '"')
        return refuse(s, SGI_JSON_SYNTAX, p);
    const unsigned char *start = p + 1;
    p = read_string(s, start, escaped);
    if (!p)
        return NULL;
    *key = (sgi_str){(const char *)start, (size_t)(p - start)};
    sgi_json_fault fault = sgi_json_key_add(s->reader, s->text, *key, *escaped);
    if (fault)
        return refuse(s, fault, start - 1);
    p = sgi_json_skip_space(p + 1, s->end);
    if (p == s->end || *p != ':')
        return refuse(s, SGI_JSON_SYNTAX, p);
    return p + 1;
}

/* Reads one value, including everything inside the value. p: the first byte of the
 * value. */
static const unsigned char *read_value(scan *s, const unsigned char *p)
{
    sgi_json_reader *reader = s->reader;
    uint32_t base = reader->depth;
    bool escaped;
    sgi_str key;

value:
    if (p == s->end)
        return refuse(s, SGI_JSON_SYNTAX, p);
    if (*p == '"') {
        p = read_string(s, p + 1, &escaped);
        if (!p)
            return NULL;
        p++;
    } else if ((*p | 0x20) == '{') {
        unsigned char closer =
            /* in ASCII, the code of } is the code of { plus 2, and the code of ] is the
             * code of [ plus 2 */
            (unsigned char)(*p + 2);
        sgi_json_fault fault = sgi_json_frame_open(reader, closer);
        if (fault)
            return refuse(s, fault, p);
        p = sgi_json_skip_space(p + 1, s->end);
        if (p == s->end || *p != closer) {
            if (closer == '}')
                goto key;
            goto value;
        }
        sgi_json_frame_close(reader);
        p++;
    } else {
        p = read_scalar(s, p);
        if (!p)
            return NULL;
    }

ended:
    if (reader->depth == base)
        return p;
    p = sgi_json_skip_space(p, s->end);
    unsigned char closer = reader->frames[reader->depth - 1].closer;
    if (p < s->end && *p == ',') {
        p++;
        if (closer == '}')
            goto key;
        p = sgi_json_skip_space(p, s->end);
        goto value;
    }
    if (p < s->end && *p == closer) {
        sgi_json_frame_close(reader);
        p++;
        goto ended;
    }
    return refuse(s, SGI_JSON_SYNTAX, p);

key:
    p = read_key(s, p, &key, &escaped);
    if (!p)
        return NULL;
    p = sgi_json_skip_space(p, s->end);
    goto value;
}

static const unsigned char *read_part(scan *s, const unsigned char *p, size_t level,
                                      sgi_json_part *part);

/* True when the value of this member is the part number `level`, an inner object whose
 * members are recorded: trail->names[level] has the member's name, and this part was
 * not found yet. */
static bool is_part(const scan *s, size_t level, const sgi_json_member *member)
{
    const sgi_str *names = s->trail->names[level];
    return !s->trail->parts[level].object.n && !member->escaped &&
           (sgi_str_eq(member->key, names[0]) ||
            (names[1].n && sgi_str_eq(member->key, names[1])));
}

/* Reads a member at p. If the text is refused, returns NULL; then member->value.p is not
 * NULL when the key was read. */
static const unsigned char *read_member(scan *s, const unsigned char *p, size_t level,
                                        sgi_json_member *member)
{
    member->value = (sgi_json){0};
    p = read_key(s, p, &member->key, &member->escaped);
    if (!p)
        return NULL;
    const unsigned char *start = sgi_json_skip_space(p, s->end);
    bool to_part = s->trail && level < s->trail->count && start < s->end &&
                   *start == '{' && is_part(s, level, member);
    p = to_part ? read_part(s, start, level + 1, &s->trail->parts[level])
                : read_value(s, start);
    member->value = (sgi_str){(const char *)start, p ? (size_t)(p - start) : 0};
    return p;
}

/* Reads an object and records its members. p: the opening brace of the object. */
static const unsigned char *read_members(scan *s, const unsigned char *p, size_t level,
                                         sgi_json_member *members, size_t max,
                                         size_t *count)
{
    sgi_json_fault fault = sgi_json_frame_open(s->reader, '}');
    *count = 0;
    if (fault)
        return refuse(s, fault, p);
    p = sgi_json_skip_space(p + 1, s->end);
    for (bool more = p == s->end || *p != '}'; more;) {
        sgi_json_member member;
        p = read_member(s, p, level, &member);
        if (!p && !member.value.p)
            return NULL;
        if (*count < max)
            members[*count] = member;
        ++*count;
        if (!p)
            return NULL;
        p = sgi_json_skip_space(p, s->end);
        if (p == s->end || (*p != ',' && *p != '}'))
            return refuse(s, SGI_JSON_SYNTAX, p);
        more = *p == ',';
        p += more;
    }
    sgi_json_frame_close(s->reader);
    return p + 1;
}

/* Reads a part, an inner object whose members are recorded (see sgi_json_part). p: the
 * opening brace of the part. */
static const unsigned char *read_part(scan *s, const unsigned char *p, size_t level,
                                      sgi_json_part *part)
{
    const unsigned char *stop =
        read_members(s, p, level, part->members, SGI_JSON_PART_MEMBERS, &part->count);
    if (stop)
        part->object = (sgi_str){(const char *)p, (size_t)(stop - p)};
    return stop;
}

static const unsigned char *read_text(scan *s, sgi_json_member *members, size_t max,
                                      size_t *count)
{
    const unsigned char *p = (const unsigned char *)s->text.p;
    if (s->text.n > s->reader->max_bytes)
        return refuse(s, SGI_JSON_SIZE, p + s->reader->max_bytes);
    p = sgi_json_skip_space(p, s->end);
    p = p < s->end && *p == '{' ? read_members(s, p, 0, members, max, count)
                                : read_value(s, p);
    if (!p)
        return NULL;
    p = sgi_json_skip_space(p, s->end);
    return p == s->end ? p : refuse(s, SGI_JSON_TRAILING, p);
}

/* ---- texts with a shape that is remembered ---- */

/* Reads the value at a hole of a shape. */
static const unsigned char *read_hole(scan *s, const unsigned char *p, uint32_t depth)
{
    if (p == s->end)
        return NULL;
    if ((*p | 0x20) != '{')
        return read_value(s, p);
    for (uint32_t i = 0; i < depth; i++)
        if (sgi_json_frame_open(s->reader, '}'))
            return NULL;
    p = read_value(s, p);
    for (uint32_t i = 0; p && i < depth; i++)
        sgi_json_frame_close(s->reader);
    return p;
}

/* True when the text has this shape. shifts: see sgi_json_shape_fill. Otherwise *read
 * receives the number of bytes that were read before the difference. */
static bool has_shape(scan *s, const sgi_json_shape *shape,
                      size_t shifts[SGI_JSON_SHAPE_HOLES + 1], size_t *read)
{
    const unsigned char *p = (const unsigned char *)s->text.p;
    size_t from = 0;
    *read = 0;
    if (!shape->len || s->text.n < shape->len)
        return false;
    shifts[0] = 0;
    for (size_t k = 0;; k++) {
        size_t to = k < shape->hole_count ? shape->holes[k].at : shape->len;
        if ((size_t)(s->end - p) < to - from ||
            memcmp(p, shape->bytes + from, to - from) != 0)
            return false;
        p += to - from;
        if (k == shape->hole_count)
            return p == s->end;
        const unsigned char *stop = read_hole(s, p, shape->holes[k].depth);
        if (!stop)
            return false;
        shifts[k + 1] = shifts[k] + (size_t)(stop - p) - 1;
        p = stop;
        *read = (size_t)(p - (const unsigned char *)s->text.p);
        from = to + 1;
    }
}

/* Records the members and the parts of a text that has one of the shapes. */
static bool take_shape(scan *s, sgi_json_shapes *shapes, sgi_json_member *members,
                       size_t max, size_t *count)
{
    size_t shifts[SGI_JSON_SHAPE_HOLES + 1];
    size_t read = 0;
    for (size_t i = 0; i < SGI_JSON_SHAPES && read < SGI_JSON_SHAPE_TRIED; i++) {
        const sgi_json_shape *shape = &shapes->list[shapes->order[i]];
        if (has_shape(s, shape, shifts, &read)) {
            sgi_json_shape_fill(shape, s->text, shifts, members, max, s->trail);
            *count = shape->count;
            sgi_json_shapes_hit(shapes, i);
            return true;
        }
        /* the value at a hole may have been refused */
        s->error = (sgi_json_error){SGI_JSON_OK, 0};
        if (s->reader->depth)
            sgi_json_keys_reset(s->reader);
    }
    return false;
}

/* ---- the whole text ---- */

/* Validates the text. *count receives the number of members that were read, even when the
 * text is refused. */
static bool run_scan(scan *s, sgi_json_member *members, size_t max, size_t *count)
{
    *count = 0;
    if (!s->text.p)
        s->text.p = "";
    s->end = (const unsigned char *)s->text.p + s->text.n;
#ifdef SGI_JSON_SSE2
    mark_window(s, (const unsigned char *)s->text.p);
#endif
    sgi_json_shapes *shapes = s->trail ? s->trail->shapes : NULL;
    if (shapes && s->text.n <= s->reader->max_bytes &&
        take_shape(s, shapes, members, max, count)) {
        sgi_json_keys_reset(s->reader);
        return true;
    }
    bool passed = read_text(s, members, max, count) != NULL;
    sgi_json_keys_reset(s->reader);
    if (shapes && passed && *count <= max)
        sgi_json_shapes_learn(shapes, s->text, members, *count, s->trail);
    return passed;
}

bool sgi_json_read_parts(sgi_json_reader *reader, sgi_str text, sgi_json_member *members,
                         size_t max, size_t *count, sgi_json_error *error,
                         const sgi_json_part_names *trail)
{
    scan s = {.reader = reader, .text = text, .trail = trail};
    size_t met;
    for (size_t i = 0; trail && i < trail->count; i++)
        trail->parts[i].object = (sgi_json){0};
    bool passed = run_scan(&s, members, members ? max : 0, &met);
    if (count)
        *count = passed ? met : 0;
    if (error)
        *error = s.error;
    return passed;
}

size_t sgi_json_read_truncated(sgi_json_reader *reader, sgi_str text,
                               sgi_json_member *members, size_t max)
{
    scan s = {.reader = reader, .text = text};
    size_t met;
    run_scan(&s, members, max, &met);
    if (met > max)
        return max;
    sgi_json *last = met ? &members[met - 1].value : NULL;
    if (last && last->n && last->p + last->n == text.p + text.n)
        /* a number at the very end of the text may be incomplete, so its value is
         * dropped */
        last->n = 0;
    return met;
}

bool sgi_json_read(sgi_json_reader *reader, sgi_str text, sgi_json_member *members,
                   size_t max, size_t *count, sgi_json_error *error)
{
    return sgi_json_read_parts(reader, text, members, max, count, error, NULL);
}
