/* Segue's verdict on each document of a batch. Standard input holds documents, each
 * behind its length (32 bits, little-endian). Standard output gets for each the fault and
 * its position, and for an accepted document its copy through the span functions, behind
 * its length.
 *
 * The copy has every string decoded and escaped anew, and every number as an array of its
 * text, its value as an integer and its value as a double (null when it has none). */
#include <stdio.h>
#include <stdlib.h>

#include "wire/json_read.h"
#include "wire/json_write.h"

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 0x3c, len);
    return 0;
}

static bool read_length(uint32_t *length)
{
    unsigned char bytes[4];
    if (fread(bytes, 1, sizeof bytes, stdin) != sizeof bytes)
        return false;
    *length = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
              (uint32_t)bytes[3] << 24;
    return true;
}

static void write_length(size_t length)
{
    unsigned char bytes[4] = {length & 255, length >> 8 & 255, length >> 16 & 255,
                              length >> 24 & 255};
    fwrite(bytes, 1, sizeof bytes, stdout);
}

static sgi_str decode(sgi_json string, sgi_buf *into)
{
    sgi_buf_reset(into, SIZE_MAX);
    if (!sgi_json_decode(string, into) || into->failed)
        abort();
    return sgi_buf_str(into);
}

static void retell_number(sgi_jw *w, sgi_json value)
{
    int64_t whole;
    double number;
    sgi_jw_open(w, '[');
    sgi_jw_string(w, value);
    if (sgi_json_read_int(value, &whole))
        sgi_jw_int(w, whole);
    else
        sgi_jw_null(w);
    if (sgi_json_read_double(value, &number))
        sgi_jw_double(w, number);
    else
        sgi_jw_null(w);
    sgi_jw_close(w, ']');
}

static void retell(sgi_jw *w, sgi_json value, sgi_buf *scratch)
{
    sgi_json_member member;
    sgi_json item;
    switch (sgi_json_kind_of(value)) {
    case SGI_JSON_OBJECT:
        sgi_jw_open(w, '{');
        for (size_t at = 0; sgi_json_next_member(value, &at, &member);) {
            sgi_json key = {member.key.p - 1, member.key.n + 2};
            sgi_jw_key_str(w, decode(key, scratch));
            retell(w, member.value, scratch);
        }
        sgi_jw_close(w, '}');
        break;
    case SGI_JSON_ARRAY:
        sgi_jw_open(w, '[');
        for (size_t at = 0; sgi_json_next_item(value, &at, &item);)
            retell(w, item, scratch);
        sgi_jw_close(w, ']');
        break;
    case SGI_JSON_STRING:
        sgi_jw_string(w, decode(value, scratch));
        break;
    case SGI_JSON_NUMBER:
        retell_number(w, value);
        break;
    default:
        sgi_jw_raw(w, value);
        break;
    }
}

int main(int argc, char **argv)
{
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = fixed_random};
    sgi_env env = {&sgi_mem_libc, &hooks};
    sgi_json_reader reader;
    sgi_json_reader_init(&reader, &env, SGI_JSON_MAX_BYTES,
                         argc > 1 ? atoi(argv[1]) : 512);
    sgi_buf told, scratch;
    sgi_buf_init(&told, env.mem);
    sgi_buf_init(&scratch, env.mem);
    uint32_t length;
    while (read_length(&length)) {
        /* A block of exact size, so that a memory checker sees the first byte beyond
         * it. */
        char *text = malloc(length ? length : 1);
        if (!text || fread(text, 1, length, stdin) != length)
            abort();
        sgi_json_error error;
        sgi_buf_reset(&told, SIZE_MAX);
        if (sgi_json_read(&reader, (sgi_str){text, length}, NULL, 0, NULL, &error)) {
            sgi_jw w = sgi_jw_to(&told);
            retell(&w, sgi_json_trim((sgi_str){text, length}), &scratch);
        }
        write_length((size_t)error.fault);
        write_length(error.at);
        write_length(told.len);
        fwrite(told.p, 1, told.len, stdout);
        free(text);
    }
    sgi_buf_free(&told);
    sgi_buf_free(&scratch);
    sgi_json_reader_free(&reader);
    return told.failed || ferror(stdout);
}
