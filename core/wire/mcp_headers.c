/* Values in headers. `is_plain` decides whether a text can be sent unchanged, and
 * `unwrap` decodes a base64 value; the other functions call these two and compare. A
 * value that is not base64 is never copied.
 *
 * A gateway in front of the server can make decisions by the same header. To prevent two
 * readings of one header, check_base64 accepts only the one canonical base64 form of each
 * value, although the decoder in base/buf accepts both alphabets and any padding. */
#include "wire/mcp_headers.h"

#include "wire/http1_text.h"

#define OPENING SGI_STR("=?base64?")
#define CLOSING SGI_STR("?=")

/* The largest safe integer: a double represents this integer and its neighbours
 * exactly. */
#define SAFE_INTEGER INT64_C(9007199254740991)

const char *sgi_mcp_name_member(sgi_str method)
{
    static const struct {
        sgi_str method;
        const char *member;
    } rows[] = {
        {SGI_STR_INIT("tools/call"), "name"},
        {SGI_STR_INIT("tasks/get"), "taskId"},
        {SGI_STR_INIT("tasks/update"), "taskId"},
        {SGI_STR_INIT("tasks/cancel"), "taskId"},
        /* an extension of 2026-07-28: the event stream of a task, whose taskId Mcp-Name
         * repeats (R-E-5) */
        {SGI_STR_INIT("tasks/stream"), "taskId"},
        {SGI_STR_INIT("resources/read"), "uri"},
        {SGI_STR_INIT("prompts/get"), "name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sgi_str_eq(rows[i].method, method))
            return rows[i].member;
    return NULL;
}

/* ---- what a header can carry ---- */

static bool is_visible(char c)
{
    return c >= ' ' && c <= '~';
}

static bool begins_and_ends(sgi_str text)
{
    return sgi_str_begins(text, OPENING) &&
           memcmp(text.p + text.n - CLOSING.n, CLOSING.p, CLOSING.n) == 0;
}

/* True when the text can be sent unchanged. HTTP allows a tab in a header, but SEP-2243
 * counts a tab as a control character, and the conformance suite wants it encoded. */
static bool is_plain(sgi_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!is_visible(text.p[i]))
            return false;
    return sgi_http1_trim(text).n == text.n && !begins_and_ends(text);
}

void sgi_mcp_add_header_value(sgi_buf *out, sgi_str text)
{
    if (is_plain(text)) {
        sgi_buf_add_str(out, text);
        return;
    }
    sgi_buf_add_str(out, OPENING);
    sgi_buf_add_base64(out, text.p, text.n, false);
    sgi_buf_add_str(out, CLOSING);
}

static bool is_safe_integer(sgi_json value, int64_t *number)
{
    return sgi_json_read_int(value, number) && *number >= -SAFE_INTEGER &&
           *number <= SAFE_INTEGER;
}

static void add_string(sgi_buf *out, sgi_json value)
{
    sgi_str text;
    if (sgi_json_plain_string(value, &text)) {
        sgi_mcp_add_header_value(out, text);
        return;
    }
    sgi_buf decoded;
    sgi_buf_init(&decoded, out->mem);
    sgi_json_decode(value, &decoded);
    if (decoded.failed)
        out->failed = true;
    else
        sgi_mcp_add_header_value(out, sgi_buf_str(&decoded));
    sgi_buf_free(&decoded);
}

sgi_mcp_write sgi_mcp_add_param_value(sgi_buf *out, sgi_json value)
{
    int64_t number;
    switch (sgi_json_kind_of(value)) {
    case SGI_JSON_NONE:
    case SGI_JSON_NULL:
        return SGI_MCP_OMIT;
    case SGI_JSON_STRING:
        add_string(out, value);
        return SGI_MCP_WRITTEN;
    case SGI_JSON_TRUE:
    case SGI_JSON_FALSE:
        sgi_buf_add_str(out, value);
        return SGI_MCP_WRITTEN;
    case SGI_JSON_NUMBER:
        if (!is_safe_integer(value, &number))
            return SGI_MCP_UNFIT;
        sgi_buf_add_int(out, number);
        return SGI_MCP_WRITTEN;
    default:
        return SGI_MCP_UNFIT;
    }
}

/* ---- reading ---- */

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static bool check_base64(sgi_str text)
{
    size_t padding = 0;
    if (text.n % 4)
        return false;
    while (padding < 2 && padding < text.n && text.p[text.n - 1 - padding] == '=')
        padding++;
    const char *last = alphabet;
    for (size_t i = 0; i < text.n - padding; i++) {
        last = memchr(alphabet, text.p[i], sizeof alphabet - 1);
        if (!last)
            return false;
    }
    /* the bits of the last letter that belong to no byte must be 0 */
    size_t unused = padding == 2 ? 15 : padding == 1 ? 3 : 0;
    return ((size_t)(last - alphabet) & unused) == 0;
}

static sgi_mcp_match unwrap(sgi_str header, sgi_buf *scratch, sgi_str *text)
{
    sgi_buf_reset(scratch, scratch->cap);
    /* a header such as "=?base64?=" is too short, because its opening and closing marks
     * overlap */
    if (header.n < OPENING.n + CLOSING.n)
        return SGI_MCP_MALFORMED;
    sgi_str inner = {header.p + OPENING.n, header.n - OPENING.n - CLOSING.n};
    if (!check_base64(inner))
        return SGI_MCP_MALFORMED;
    if (!sgi_buf_add_unbase64(scratch, inner))
        return SGI_MCP_NOMEM;
    *text = sgi_buf_str(scratch);
    return sgi_utf8_valid(*text, NULL) ? SGI_MCP_SAME : SGI_MCP_MALFORMED;
}

/* True when all of eight bytes are visible. */
static bool is_visible_block(const char *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    uint64_t block;
    memcpy(&block, p, 8);
    uint64_t odd = block | (block - ones * 0x20) | ((block ^ ones * 0x7f) - ones);
    return !(odd & tops);
}

/* Stores the header's value without surrounding blanks in *text. Returns false when the
 * value has a character that headers must not have. */
static bool read_plain(sgi_str header, sgi_str *text)
{
    *text = sgi_http1_trim(header);
    for (size_t i = 0; i < text->n; i++) {
        if (text->n - i >= 8 && is_visible_block(text->p + i))
            i += 7;
        else if (!is_visible(text->p[i]) && text->p[i] != '\t')
            return false;
    }
    return true;
}

sgi_mcp_match sgi_mcp_read_header_value(sgi_str header, sgi_buf *scratch, sgi_str *text)
{
    if (!read_plain(header, text))
        return SGI_MCP_MALFORMED;
    return begins_and_ends(*text) ? unwrap(*text, scratch, text) : SGI_MCP_SAME;
}

static sgi_mcp_match sameness(bool same)
{
    return same ? SGI_MCP_SAME : SGI_MCP_DIFFERENT;
}

sgi_mcp_match sgi_mcp_match_plain(sgi_str header, sgi_json value)
{
    sgi_str text;
    if (!read_plain(header, &text))
        return SGI_MCP_MALFORMED;
    return sameness(sgi_json_string_is(value, text));
}

/* ---- numbers ---- */

static size_t skip_digits(sgi_str text, size_t at)
{
    while (at < text.n && text.p[at] >= '0' && text.p[at] <= '9')
        at++;
    return at;
}

/* True when the text is a JSON number. The functions of json_read.h must get only such a
 * text as a number. */
static bool is_number(sgi_str text)
{
    size_t start = text.n && text.p[0] == '-';
    size_t at = skip_digits(text, start);
    if (at == start || (text.p[start] == '0' && at > start + 1))
        return false;
    if (at < text.n && text.p[at] == '.') {
        start = at + 1;
        at = skip_digits(text, start);
        if (at == start)
            return false;
    }
    if (at < text.n && (text.p[at] | 0x20) == 'e') {
        start = at + 1;
        start += start < text.n && (text.p[start] == '+' || text.p[start] == '-');
        at = skip_digits(text, start);
        if (at == start)
            return false;
    }
    return at == text.n;
}

/* Compares two numbers by value, as the specification requires: 42.0 equals 42. Integers
 * are compared exactly, fractions as doubles. Numbers beyond the precision of a double
 * are equal only if their texts are equal. */
static bool same_number(sgi_str text, sgi_json value)
{
    int64_t a, b;
    double x, y;
    if (!is_number(text))
        return false;
    bool whole = sgi_json_read_int(text, &a);
    if (whole != sgi_json_read_int(value, &b))
        return false;
    if (whole)
        return a == b;
    if (sgi_str_eq(text, value))
        return true;
    return sgi_json_read_double(text, &x) && sgi_json_read_double(value, &y) && x == y &&
           x < (double)SAFE_INTEGER && x > -(double)SAFE_INTEGER;
}

/* ---- comparing ---- */

static bool is_same(sgi_str text, sgi_json value)
{
    switch (sgi_json_kind_of(value)) {
    case SGI_JSON_STRING:
        return sgi_json_string_is(value, text);
    case SGI_JSON_TRUE:
    case SGI_JSON_FALSE:
        return sgi_str_eq(value, text);
    case SGI_JSON_NUMBER:
        return same_number(text, value);
    default:
        return false;
    }
}

static sgi_mcp_match match(sgi_str header, sgi_json value, const sgi_mem *mem)
{
    sgi_buf scratch;
    sgi_str text;
    sgi_buf_init(&scratch, mem);
    sgi_mcp_match result = sgi_mcp_read_header_value(header, &scratch, &text);
    if (result == SGI_MCP_SAME)
        result = sameness(is_same(text, value));
    sgi_buf_free(&scratch);
    return result;
}

sgi_mcp_match sgi_mcp_match_name(sgi_str header, sgi_json value, const sgi_mem *mem)
{
    if (sgi_json_kind_of(value) != SGI_JSON_STRING)
        return SGI_MCP_DIFFERENT;
    return match(header, value, mem);
}

sgi_mcp_match sgi_mcp_match_param(const sgi_str *header, sgi_json value,
                                  const sgi_mem *mem)
{
    int64_t number;
    if (header)
        return match(*header, value, mem);
    switch (sgi_json_kind_of(value)) {
    case SGI_JSON_STRING:
    case SGI_JSON_TRUE:
    case SGI_JSON_FALSE:
        return SGI_MCP_MISSING;
    case SGI_JSON_NUMBER:
        return is_safe_integer(value, &number) ? SGI_MCP_MISSING : SGI_MCP_SAME;
    default:
        return SGI_MCP_SAME;
    }
}
