/* Any bytes to the JSON reader. It must not crash, and its verdict must hold:
 *
 *   - a second reader with another secret gives the same verdict, and the members that it
 *     records are those of a walk;
 *   - the text before the position of a refusal is valid so far;
 *   - the span functions walk an accepted text from its first byte to its last, and the
 *     recorded members are those of the walk;
 *   - its strings are UTF-8 when decoded, and escaping and decoding gives them back;
 *   - no two keys of an object are equal;
 *   - integers and doubles agree.
 *
 * The span functions also get bytes that were refused: their answers may then be
 * nonsense, but they must read only inside the span. */
#include <stdint.h>
#include <stdlib.h>

#include "wire/json_read.h"
#include "wire/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_DEPTH 40
#define MAX_MEMBERS 8
#define MAX_PAIRS 200 /* larger objects are not compared key by key */

static void check(bool holds)
{
    if (!holds)
        abort();
}

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    memset(bytes, *(const int *)user, len);
    return 0;
}

static void start_reader(sgi_json_reader *reader, int secret)
{
    segue_hooks hooks = {
        .struct_size = sizeof hooks, .user = &secret, .random = fixed_random};
    sgi_env env = {&sgi_mem_libc, &hooks};
    sgi_json_reader_init(reader, &env, SGI_JSON_MAX_BYTES, MAX_DEPTH);
}

static void check_string(sgi_json value)
{
    sgi_buf text, again, back;
    sgi_buf_init(&text, &sgi_mem_libc);
    sgi_buf_init(&again, &sgi_mem_libc);
    sgi_buf_init(&back, &sgi_mem_libc);
    check(sgi_json_decode(value, &text) && !text.failed);
    sgi_str decoded = text.len ? sgi_buf_str(&text) : SGI_STR("");
    check(sgi_utf8_valid(decoded, NULL));
    check(sgi_json_string_is(value, decoded));
    sgi_str plain;
    if (sgi_json_plain_string(value, &plain))
        check(sgi_str_eq(plain, decoded));
    sgi_jw w = sgi_jw_to(&again);
    sgi_jw_string(&w, decoded);
    check(sgi_json_decode(sgi_buf_str(&again), &back));
    check(sgi_str_eq(sgi_buf_str(&back), decoded));
    sgi_json_reader reader;
    start_reader(&reader, 1);
    check(sgi_json_read(&reader, sgi_buf_str(&again), NULL, 0, NULL, NULL));
    sgi_json_reader_free(&reader);
    sgi_buf_free(&text);
    sgi_buf_free(&again);
    sgi_buf_free(&back);
}

static void check_number(sgi_json value)
{
    int64_t whole;
    double number;
    bool is_whole = sgi_json_read_int(value, &whole);
    bool is_double = sgi_json_read_double(value, &number);
    if (!is_whole)
        return;
    check(is_double && number >= -0x1p63 && number <= 0x1p63);
    check(number == (double)whole);
}

static void check_value(sgi_json value);

/* Behind the last value there must be the closing bracket, and nothing else. */
static void check_end(sgi_json whole, size_t at)
{
    sgi_json rest = sgi_json_trim((sgi_str){whole.p + at, whole.n - at});
    check(rest.n == 1 && rest.p[0] == whole.p[0] + 2);
}

static void check_array(sgi_json array)
{
    sgi_json item;
    size_t at = 0;
    size_t count = 0;
    for (; sgi_json_next_item(array, &at, &item); count++)
        check_value(item);
    check_end(array, count ? at : 1);
}

static void check_keys(const sgi_json_member *members, size_t count)
{
    sgi_buf name;
    sgi_buf_init(&name, &sgi_mem_libc);
    for (size_t i = 0; i < count; i++) {
        sgi_buf_reset(&name, SIZE_MAX);
        check(sgi_json_decode((sgi_json){members[i].key.p - 1, members[i].key.n + 2},
                              &name));
        for (size_t k = 0; k < count; k++) {
            sgi_json other = {members[k].key.p - 1, members[k].key.n + 2};
            check(sgi_json_string_is(other, sgi_buf_str(&name)) == (i == k));
        }
    }
    sgi_buf_free(&name);
}

static void check_object(sgi_json object)
{
    static sgi_json_member seen[MAX_DEPTH][MAX_PAIRS];
    static size_t depth;
    sgi_json_member *members = seen[depth++];
    sgi_json_member member;
    size_t at = 0;
    size_t count = 0;
    for (; sgi_json_next_member(object, &at, &member); count++) {
        check_string((sgi_json){member.key.p - 1, member.key.n + 2});
        check(member.escaped ==
              (member.key.n && memchr(member.key.p, '\\', member.key.n)));
        check_value(member.value);
        if (count < MAX_PAIRS)
            members[count] = member;
    }
    check_end(object, count ? at : 1);
    check_keys(members, count < MAX_PAIRS ? count : MAX_PAIRS);
    depth--;
}

static void check_value(sgi_json value)
{
    switch (sgi_json_kind_of(value)) {
    case SGI_JSON_OBJECT:
        check_object(value);
        break;
    case SGI_JSON_ARRAY:
        check_array(value);
        break;
    case SGI_JSON_STRING:
        check_string(value);
        break;
    case SGI_JSON_NUMBER:
        check_number(value);
        break;
    case SGI_JSON_TRUE:
        check(sgi_str_eq(value, SGI_STR("true")));
        break;
    case SGI_JSON_FALSE:
        check(sgi_str_eq(value, SGI_STR("false")));
        break;
    case SGI_JSON_NULL:
        check(sgi_str_eq(value, SGI_STR("null")));
        break;
    case SGI_JSON_NONE:
        abort();
    }
}

static void check_members(sgi_json whole, const sgi_json_member *members, size_t count)
{
    sgi_json_member member;
    size_t found = 0;
    for (size_t at = 0; sgi_json_next_member(whole, &at, &member); found++) {
        if (found >= MAX_MEMBERS)
            continue;
        check(member.key.p == members[found].key.p &&
              member.key.n == members[found].key.n);
        check(member.value.p == members[found].value.p &&
              member.value.n == members[found].value.n);
        check(member.escaped == members[found].escaped);
    }
    check(found == count);
}

/* A lookup in a part must find the same as a walk over its object. */
static void check_part(const sgi_json_part *part, sgi_json above, const sgi_str names[2])
{
    static const sgi_str wanted[] = {SGI_STR_INIT("a"), SGI_STR_INIT("id"),
                                     SGI_STR_INIT("name"), SGI_STR_INIT("_meta")};
    sgi_json walked[4], picked[4], found[2];
    sgi_json_pick(above, names, 2, found);
    bool is_one = false;
    for (size_t i = 0; i < 2; i++)
        is_one |= sgi_json_kind_of(found[i]) == SGI_JSON_OBJECT &&
                  part->object.p == found[i].p && part->object.n == found[i].n;
    check(is_one || !part->object.n);
    if (!is_one)
        return;
    check_members(part->object, part->members, part->count);
    sgi_json_pick(part->object, wanted, 4, walked);
    sgi_json_pick_part(part, part->object, wanted, 4, picked);
    for (size_t i = 0; i < 4; i++)
        check(walked[i].p == picked[i].p && walked[i].n == picked[i].n);
}

static void check_refusal(sgi_json_reader *reader, sgi_str text, sgi_json_error error)
{
    check(error.fault != SGI_JSON_OK && error.fault != SGI_JSON_NOMEM);
    check(error.at <= text.n);
    sgi_json_error before;
    sgi_str fine = {text.p, error.at};
    if (!sgi_json_read(reader, fine, NULL, 0, NULL, &before))
        check(before.fault == SGI_JSON_SYNTAX && before.at == error.at);
}

/* No result is expected; a sanitizer and the clock watch. */
static void ask(sgi_str span, int depth)
{
    int64_t whole;
    double number;
    sgi_buf text;
    sgi_buf_init(&text, &sgi_mem_libc);
    sgi_json_read_int(span, &whole);
    sgi_json_read_double(span, &number);
    sgi_json_decode(span, &text);
    sgi_json_string_is(span, sgi_buf_str(&text));
    sgi_buf_free(&text);
    sgi_utf8_valid(span, NULL);
    sgi_json_member member;
    for (size_t at = 0; depth && sgi_json_next_member(span, &at, &member);) {
        sgi_json_key_is(&member, "id");
        ask(member.value, depth - 1);
    }
    sgi_json item;
    for (size_t at = 0; depth && sgi_json_next_item(span, &at, &item);)
        ask(item, depth - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgi_str text = {(const char *)data, size};
    sgi_json_reader one, other;
    start_reader(&one, 0x11);
    start_reader(&other, 0x77);
    sgi_json_member members[MAX_MEMBERS];
    size_t count, count_again;
    sgi_json_error error, error_again;
    bool passed = sgi_json_read(&one, text, members, MAX_MEMBERS, &count, &error);
    static const sgi_str names[2][2] = {{SGI_STR_INIT("params"), SGI_STR_INIT("a")},
                                        {SGI_STR_INIT("_meta"), SGI_STR_INIT("b")}};
    sgi_json_part parts[2];
    sgi_json_part_names trail = {names, parts, 2, NULL};
    bool again =
        sgi_json_read_parts(&other, text, NULL, 0, &count_again, &error_again, &trail);
    check(passed == again && count == count_again);
    check(error.fault == error_again.fault && error.at == error_again.at);
    if (passed) {
        check_value(sgi_json_trim(text));
        check_members(sgi_json_trim(text), members, count);
        check_part(&parts[0], sgi_json_trim(text), names[0]);
        check_part(&parts[1], parts[0].object, names[1]);
        check(sgi_utf8_valid(text, NULL));
    } else {
        check_refusal(&one, text, error);
    }
    ask(text, 3);
    sgi_json_reader_free(&one);
    sgi_json_reader_free(&other);
    return 0;
}
