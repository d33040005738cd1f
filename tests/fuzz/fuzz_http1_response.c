/* Bytes into a response. The result must not depend on where the input is cut. Pieces of
 * the body must lie in the input, and the head must stay within its limit.
 *
 * Input: the limit of the head, two bytes that choose the cuts, and then the bytes of the
 * connection, which then ends. */
#include "support/fuzz_input.h"
#include "support/test_mem.h"
#include "wire/http1_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct run {
    sgi_http1_response reader;
    sgi_buf head;
    sgi_buf seen;
    size_t head_max;
    size_t fed; /* number of bytes of the connection given to the reader so far */
} run;

static void note_event(run *r, sgi_http1_response_event event, size_t at)
{
    const sgi_http1_response *reader = &r->reader;
    if (event == SGI_HTTP1_RESPONSE_HEAD) {
        fuzz_check(reader->status >= 200 && reader->status <= 999);
        fuzz_check(r->head.len <= r->head_max);
        sgi_buf_add_int(&r->seen, reader->status);
        sgi_buf_add_str(&r->seen, sgi_buf_str(&r->head));
        sgi_buf_add_char(&r->seen, reader->keep_alive ? 'k' : 'c');
    } else if (event == SGI_HTTP1_RESPONSE_BYTES) {
        fuzz_check(reader->bytes.n > 0);
        sgi_buf_add_str(&r->seen, reader->bytes);
    } else if (event == SGI_HTTP1_RESPONSE_DONE) {
        sgi_buf_add_lit(&r->seen, "done");
        sgi_buf_add_uint(&r->seen, at);
    } else {
        sgi_buf_add_str(&r->seen, sgi_str_of(reader->problem));
    }
}

/* Feeds a block that ends where the bytes end, and frees it at once. Returns false at the
 * end of the response. */
static bool feed(run *r, const uint8_t *bytes, size_t len)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    sgi_str input = {copy, len};
    sgi_http1_response_event event;
    while ((event = sgi_http1_response_next(&r->reader, &input)) !=
           SGI_HTTP1_RESPONSE_MORE) {
        fuzz_check(input.p + input.n == copy + len);
        if (event == SGI_HTTP1_RESPONSE_BYTES)
            fuzz_check(r->reader.bytes.p >= copy &&
                       r->reader.bytes.p + r->reader.bytes.n <= input.p);
        note_event(r, event, r->fed + len - input.n);
        if (event != SGI_HTTP1_RESPONSE_HEAD && event != SGI_HTTP1_RESPONSE_BYTES)
            break;
    }
    r->fed += len;
    free(copy);
    return event == SGI_HTTP1_RESPONSE_MORE;
}

/* Reads the response in pieces of 1 to `most` bytes. */
static void drive(run *r, fuzz_input text, size_t head_max, uint32_t chance, size_t most)
{
    bool goes_on = true;
    r->head_max = head_max;
    r->fed = 0;
    sgi_buf_init(&r->head, &sgi_mem_libc);
    sgi_buf_init(&r->seen, &sgi_mem_libc);
    sgi_http1_response_begin(&r->reader, &r->head, head_max);
    while (goes_on && text.left) {
        chance = chance * 1664525u + 1013904223u;
        size_t len = 1 + (chance >> 8) % most;
        len = len < text.left ? len : text.left;
        goes_on = feed(r, text.p, len);
        text.p += len;
        text.left -= len;
    }
    if (goes_on)
        note_event(r, sgi_http1_response_end(&r->reader), r->fed);
    sgi_buf_free(&r->head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input text = {data, size};
    size_t head_max = 16 + (size_t)fuzz_byte(&text) * 4;
    uint32_t chance = fuzz_byte(&text);
    size_t most = 1 + fuzz_byte(&text) % 40u;
    run whole, cut;
    drive(&whole, text, head_max, 0, SIZE_MAX);
    drive(&cut, text, head_max, chance, most);
    fuzz_check(sgi_str_eq(sgi_buf_str(&whole.seen), sgi_buf_str(&cut.seen)));
    sgi_buf_free(&whole.seen);
    sgi_buf_free(&cut.seen);
    return 0;
}
