/* Texts to a JSON reader that remembers the shapes of earlier texts (json_shape.h). It
 * must say the same as a reader that is new for each text: verdict, position of the
 * fault, members and parts.
 *
 * Input: texts, each but the last followed by a byte 0. */
#include <stdint.h>
#include <stdlib.h>

#include "support/fuzz_input.h"
#include "wire/json_shape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_DEPTH 12
#define MAX_MEMBERS 8

static const sgi_str names[2][2] = {{SGI_STR_INIT("params"), {NULL, 0}},
                                    {SGI_STR_INIT("_meta"), SGI_STR_INIT("payload")}};

typedef struct outcome {
    bool passed;
    size_t count;
    sgi_json_member members[MAX_MEMBERS];
    sgi_json_part parts[2];
    sgi_json_error error;
} outcome;

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 0x5a, len);
    return 0;
}

static void start_reader(sgi_json_reader *reader)
{
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = fixed_random};
    sgi_env env = {&sgi_mem_libc, &hooks};
    sgi_json_reader_init(reader, &env, SGI_JSON_MAX_BYTES, MAX_DEPTH);
}

static void read_text(outcome *o, sgi_json_reader *reader, sgi_str text,
                      sgi_json_shapes *shapes)
{
    *o = (outcome){0};
    sgi_json_part_names trail = {names, o->parts, 2, shapes};
    o->passed = sgi_json_read_parts(reader, text, o->members, MAX_MEMBERS, &o->count,
                                    &o->error, &trail);
}

static void check_same(sgi_str a, sgi_str b)
{
    fuzz_check(a.n == b.n && (!a.n || a.p == b.p));
}

static void check_members(const sgi_json_member *a, const sgi_json_member *b,
                          size_t count)
{
    for (size_t i = 0; i < count && i < MAX_MEMBERS; i++) {
        check_same(a[i].key, b[i].key);
        check_same(a[i].value, b[i].value);
        fuzz_check(a[i].escaped == b[i].escaped);
    }
}

/* Reads a block that ends where the text ends, so that no byte behind it is read. */
static void compare(sgi_json_reader *reader, sgi_json_shapes *shapes,
                    const uint8_t *bytes, size_t len)
{
    sgi_json_reader fresh;
    outcome a, b;
    char *block = malloc(len ? len : 1);
    if (len)
        memcpy(block, bytes, len);
    start_reader(&fresh);
    read_text(&a, &fresh, (sgi_str){block, len}, NULL);
    read_text(&b, reader, (sgi_str){block, len}, shapes);
    fuzz_check(a.passed == b.passed && a.count == b.count);
    fuzz_check(a.error.fault == b.error.fault && a.error.at == b.error.at);
    if (a.passed) {
        check_members(a.members, b.members, a.count);
        for (size_t i = 0; i < 2; i++) {
            check_same(a.parts[i].object, b.parts[i].object);
            fuzz_check(a.parts[i].count == b.parts[i].count);
            check_members(a.parts[i].members, b.parts[i].members, a.parts[i].count);
        }
    }
    sgi_json_reader_free(&fresh);
    free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgi_json_reader reader;
    static sgi_json_shapes shapes;
    start_reader(&reader);
    sgi_json_shapes_init(&shapes);
    for (size_t at = 0; at <= size;) {
        const uint8_t *end = at < size ? memchr(data + at, 0, size - at) : NULL;
        size_t len = end ? (size_t)(end - (data + at)) : size - at;
        compare(&reader, &shapes, data + at, len);
        at += len + 1;
    }
    sgi_json_reader_free(&reader);
    return 0;
}
