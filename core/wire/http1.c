/* The reader of requests. It reads first the lines of the head, then the body by its
 * framing.
 *
 *     START -> HEADER -> (HEAD reported) -> LENGTH ----------------------------> END
 *                                        -> OPEN ------------------------------> END
 *                                        -> CHUNK -> DATA -> DATA_END -> CHUNK
 *                                           CHUNK -> TRAILER ------------------> END
 *     any state: a fault of the head or the body is final
 *     GIVEN -> (HEAD reported) -> as above, for a head that was filled by hand
 *
 * A line is collected, and is checked when its newline has arrived. Therefore each byte
 * is examined only once, and the result never depends on how the input is cut into
 * pieces. A line longer than its limit is refused before its bytes are copied.
 *
 * The head stays in `head` until the reset. A line between chunks is collected in
 * `body` after the received bytes of the body, and is cut off when it has been read.
 * Therefore the views into the head stay valid, and no third buffer is needed.
 *
 * Memory grows with the received bytes, never with the value of Content-Length. */
#include "wire/http1.h"

#include "wire/http1_text.h"

#define KEEP_HEAD ((size_t)2 * 1024)
#define KEEP_BODY ((size_t)2 * 1024)
#define SIZE_DIGITS 16u

void sgi_http1_init(sgi_http1 *parser, const sgi_mem *mem, const sgi_http1_limits *limits)
{
    memset(parser, 0, sizeof *parser);
    sgi_http1_head_init(&parser->head, mem, limits);
    sgi_buf_init(&parser->body, mem);
}

void sgi_http1_free(sgi_http1 *parser)
{
    sgi_http1_head_free(&parser->head);
    sgi_buf_free(&parser->body);
}

void sgi_http1_reset(sgi_http1 *parser)
{
    if (parser->head.fault.status)
        return;
    sgi_http1_head_reset(&parser->head);
    sgi_buf_reset(&parser->body, KEEP_BODY);
    parser->state = SGI_HTTP1_AT_START;
    parser->is_unframed = false;
    parser->empty_lines = 0;
    parser->line_at = 0;
    parser->extension_bytes = parser->trailer_bytes = parser->trailer_count = 0;
    parser->left = 0;
    parser->received = 0;
}

bool sgi_http1_has_begun(const sgi_http1 *parser)
{
    if (parser->state == SGI_HTTP1_AT_GIVEN)
        return false;
    return parser->state != SGI_HTTP1_AT_START || parser->head.text.len ||
           parser->empty_lines || parser->head.fault.status;
}

/* ---- lines ---- */

typedef enum line_event {
    LINE_TORN, /* the input ends in the middle of the line */
    LINE_WHOLE,
    LINE_TOO_LONG,
    LINE_NOT_ENDED, /* the line ends with LF alone instead of CR LF */
    LINE_NOMEM
} line_event;

/* Moves bytes from *input to the end of `kept`, up to and including the newline. The line
 * begins at `start` in `kept`, and may have at most `most` bytes, including its newline.
 * *line receives the line without CR LF. */
static line_event take_line(sgi_buf *kept, size_t start, size_t most, sgi_str *input,
                            sgi_str *line)
{
    size_t room = most - (kept->len - start);
    size_t window = input->n <= room ? input->n : room + 1;
    const char *newline = window ? memchr(input->p, '\n', window) : NULL;
    size_t len = newline ? (size_t)(newline - input->p) + 1 : window;
    if (len > room)
        return LINE_TOO_LONG;
    sgi_buf_add(kept, input->p, len);
    if (kept->failed)
        return LINE_NOMEM;
    *input = sgi_http1_skip(*input, len);
    if (!newline)
        return LINE_TORN;
    *line = (sgi_str){kept->p + start, kept->len - start - 1};
    if (!line->n || line->p[line->n - 1] != '\r')
        return LINE_NOT_ENDED;
    line->n--;
    return LINE_WHOLE;
}

/* Refuses the request if `event` is an error; status, too_long and limit are for a line
 * that is too long. Always returns false. */
static bool refuse_line(sgi_http1 *parser, line_event event, int32_t status,
                        const char *too_long, sgi_http1_limit limit)
{
    if (event == LINE_TOO_LONG)
        return sgi_http1_refuse_over_limit(&parser->head, status, too_long, limit);
    if (event == LINE_NOT_ENDED)
        return sgi_http1_refuse(&parser->head, 400, "a line is not ended by CR LF");
    if (event == LINE_NOMEM)
        return sgi_http1_refuse(&parser->head, 503, "out of memory");
    return false;
}

/* ---- the head ---- */

/* Reserves memory for all input at once. A head that arrives whole is then not copied
 * again line by line. */
static void make_room(sgi_http1 *parser, sgi_str input)
{
    size_t most = parser->head.limits.max_head < KEEP_HEAD / 2
                      ? parser->head.limits.max_head
                      : KEEP_HEAD / 2;
    sgi_buf_reserve(&parser->head.text, input.n < most ? input.n : most);
}

/* Ignores an empty line before the request line. Some clients send an empty line after a
 * body, so a few are allowed (RFC 9112 2.2). */
static void read_empty_line(sgi_http1 *parser)
{
    sgi_buf_truncate(&parser->head.text, 0);
    /* the empty line has overwritten the beginning of the head before */
    parser->head.past = (sgi_http1_past){0};
    if (++parser->empty_lines > SGI_HTTP1_MAX_EMPTY_LINES)
        sgi_http1_refuse(&parser->head, 400,
                         "there are too many empty lines before the request");
}

/* Returns the state of the parser after a complete head. */
static sgi_http1_state state_of_body(const sgi_http1 *parser)
{
    if (parser->head.is_chunked)
        return SGI_HTTP1_AT_CHUNK;
    if (parser->is_unframed && !parser->head.known[SGI_HTTP1_CONTENT_LENGTH])
        return SGI_HTTP1_AT_OPEN;
    return parser->head.content_length ? SGI_HTTP1_AT_LENGTH : SGI_HTTP1_AT_END;
}

static void begin_body(sgi_http1 *parser)
{
    parser->left = parser->head.content_length;
    parser->state = state_of_body(parser);
}

static void end_request_line(sgi_http1 *parser)
{
    parser->line_at = (uint32_t)parser->head.text.len;
    parser->state = SGI_HTTP1_AT_HEADER;
}

/* Reads the request line, or a whole head that repeats the head before. Returns true when
 * the head is complete. */
static bool read_start(sgi_http1 *parser, sgi_str *input)
{
    sgi_str line;
    if (!parser->head.text.len) {
        switch (sgi_http1_repeat_start(&parser->head, input)) {
        case SGI_HTTP1_REPEATS_HEAD:
            begin_body(parser);
            return true;
        case SGI_HTTP1_REPEATS_LINE:
            end_request_line(parser);
            return false;
        case SGI_HTTP1_REPEATS_NOTHING:
            break;
        }
        /* input of another protocol, such as TLS, is refused at its first byte */
        if (*input->p != '\r' && !sgi_http1_is(*input->p, SGI_HTTP1_TOKEN))
            return sgi_http1_refuse(&parser->head, 400, "the input is not HTTP");
        make_room(parser, *input);
    }
    line_event event = take_line(&parser->head.text, 0,
                                 parser->head.limits.max_request_line, input, &line);
    if (event != LINE_WHOLE) {
        refuse_line(parser, event, 414, "the request line is too long",
                    SGI_HTTP1_MAX_LINE);
    } else if (!line.n) {
        read_empty_line(parser);
    } else if (sgi_http1_read_request_line(&parser->head, line)) {
        end_request_line(parser);
    }
    return false;
}

void sgi_http1_take_head(sgi_http1 *parser, const sgi_http1_head *head)
{
    sgi_http1_head_free(&parser->head);
    parser->head = *head;
    parser->is_unframed = true;
    parser->state = SGI_HTTP1_AT_GIVEN;
}

/* Reads one header line. Returns true when the head is complete. */
static bool read_header(sgi_http1 *parser, sgi_str *input)
{
    sgi_str line;
    size_t start = parser->line_at;
    if (start == parser->head.text.len && sgi_http1_repeat_line(&parser->head, input)) {
        parser->line_at = (uint32_t)parser->head.text.len;
        return false;
    }
    size_t most =
        parser->head.limits.max_head > start ? parser->head.limits.max_head - start : 0;
    line_event event = take_line(&parser->head.text, start, most, input, &line);
    if (event != LINE_WHOLE)
        return refuse_line(parser, event, 431, "the HTTP headers are too large",
                           SGI_HTTP1_MAX_HEAD);
    if (line.n) {
        if (sgi_http1_read_header(&parser->head, line))
            parser->line_at = (uint32_t)parser->head.text.len;
        return false;
    }
    if (!sgi_http1_head_end(&parser->head))
        return false;
    begin_body(parser);
    return true;
}

/* ---- the body ---- */

/* Moves input that belongs to the body, or to the current chunk, into `body`. next: the
 * state after the last byte of the body or chunk. */
static void read_bytes(sgi_http1 *parser, sgi_str *input, sgi_http1_state next)
{
    size_t len = input->n < parser->left ? input->n : (size_t)parser->left;
    sgi_buf_add(&parser->body, input->p, len);
    if (parser->body.failed) {
        sgi_http1_refuse(&parser->head, 503, "out of memory");
        return;
    }
    *input = sgi_http1_skip(*input, len);
    parser->received += len;
    parser->left -= len;
    if (!parser->left)
        parser->state = next;
}

/* Moves all input into a body without framing. */
static void read_open(sgi_http1 *parser, sgi_str *input)
{
    if (input->n > parser->head.limits.max_body - parser->received) {
        sgi_http1_refuse_over_limit(&parser->head, 413, "the body is too large",
                                    SGI_HTTP1_MAX_BODY);
        return;
    }
    parser->left = input->n;
    read_bytes(parser, input, SGI_HTTP1_AT_OPEN);
}

void sgi_http1_end_body(sgi_http1 *parser)
{
    if (parser->state == SGI_HTTP1_AT_OPEN)
        parser->state = SGI_HTTP1_AT_END;
    else if (parser->state != SGI_HTTP1_AT_END && !parser->head.fault.status)
        sgi_http1_refuse(&parser->head, 400, "the body is shorter than Content-Length");
}

/* Reads a line between chunks. The line stays in `body` until cut_line removes the
 * line. */
static line_event take_body_line(sgi_http1 *parser, size_t most, sgi_str *input,
                                 sgi_str *line)
{
    return take_line(&parser->body, parser->received, most, input, line);
}

static void cut_line(sgi_http1 *parser)
{
    sgi_buf_truncate(&parser->body, parser->received);
}

/* Returns the length of the quoted string at the beginning of the text, or 0 when the
 * string has no end or an invalid character. */
static size_t quoted_len(sgi_str text)
{
    size_t len = 1;
    while (len < text.n && text.p[len] != '"') {
        len += text.p[len] == '\\';
        if (len >= text.n || !sgi_http1_is(text.p[len], SGI_HTTP1_VALUE))
            return 0;
        len++;
    }
    return len < text.n ? len + 1 : 0;
}

/* True when the text is a list of chunk extensions: ; name [= value], without blanks (RFC
 * 9112 7.1.1). The parser ignores valid extensions. It refuses malformed extensions,
 * because another reader could take them for data. */
static bool is_extensions(sgi_str text)
{
    while (text.n) {
        sgi_str rest = sgi_http1_skip(text, 1);
        size_t len = sgi_http1_span(rest, SGI_HTTP1_TOKEN);
        if (*text.p != ';' || !len)
            return false;
        text = sgi_http1_skip(rest, len);
        if (!text.n || *text.p != '=')
            continue;
        text = sgi_http1_skip(text, 1);
        bool quoted = text.n && *text.p == '"';
        len = quoted ? quoted_len(text) : sgi_http1_span(text, SGI_HTTP1_TOKEN);
        if (!len)
            return false;
        text = sgi_http1_skip(text, len);
    }
    return true;
}

static uint64_t hex_value(sgi_str digits)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.n; i++) {
        char c = digits.p[i];
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

static bool read_chunk_size(sgi_http1 *parser, sgi_str line)
{
    sgi_str digits = {line.p, sgi_http1_span(line, SGI_HTTP1_HEX)};
    sgi_str extensions = sgi_http1_skip(line, digits.n);
    if (!digits.n || digits.n > SIZE_DIGITS)
        return sgi_http1_refuse(&parser->head, 400, "the size of a chunk is malformed");
    if (!is_extensions(extensions))
        return sgi_http1_refuse(&parser->head, 400,
                                "the extension of a chunk is malformed");
    parser->extension_bytes += (uint32_t)extensions.n;
    if (parser->extension_bytes > SGI_HTTP1_MAX_EXTENSIONS)
        return sgi_http1_refuse(&parser->head, 400,
                                "the extensions of chunks are too long");
    parser->left = hex_value(digits);
    if (parser->left > parser->head.limits.max_body - parser->received)
        return sgi_http1_refuse_over_limit(&parser->head, 413, "the body is too large",
                                           SGI_HTTP1_MAX_BODY);
    parser->state = parser->left ? SGI_HTTP1_AT_DATA : SGI_HTTP1_AT_TRAILER;
    return true;
}

static void read_chunk(sgi_http1 *parser, sgi_str *input)
{
    sgi_str line;
    size_t most = SIZE_DIGITS + SGI_HTTP1_MAX_EXTENSIONS - parser->extension_bytes + 2;
    line_event event = take_body_line(parser, most, input, &line);
    if (event != LINE_WHOLE)
        refuse_line(parser, event, 400, "the extensions of chunks are too long",
                    SGI_HTTP1_NO_LIMIT);
    else if (read_chunk_size(parser, line))
        cut_line(parser);
}

static void read_data_end(sgi_http1 *parser, sgi_str *input)
{
    sgi_str line;
    line_event event = take_body_line(parser, 2, input, &line);
    if (event != LINE_WHOLE) {
        refuse_line(parser, event, 400, "a chunk is longer than its size",
                    SGI_HTTP1_NO_LIMIT);
        return;
    }
    cut_line(parser);
    parser->state = SGI_HTTP1_AT_CHUNK;
}

static void read_trailer(sgi_http1 *parser, sgi_str *input)
{
    sgi_str line;
    size_t most = SGI_HTTP1_MAX_TRAILERS - parser->trailer_bytes;
    line_event event = take_body_line(parser, most, input, &line);
    if (event != LINE_WHOLE) {
        refuse_line(parser, event, 431, "the trailers are too large", SGI_HTTP1_NO_LIMIT);
        return;
    }
    parser->trailer_bytes += (uint32_t)line.n + 2;
    if (line.n && !sgi_http1_read_trailer(&parser->head, line, ++parser->trailer_count))
        return;
    cut_line(parser);
    if (!line.n)
        parser->state = SGI_HTTP1_AT_END;
}

sgi_http1_event sgi_http1_next(sgi_http1 *parser, sgi_str *input)
{
    for (;;) {
        if (parser->head.fault.status)
            return SGI_HTTP1_BAD;
        if (parser->state == SGI_HTTP1_AT_END)
            return SGI_HTTP1_DONE;
        if (parser->state == SGI_HTTP1_AT_GIVEN) {
            begin_body(parser);
            return SGI_HTTP1_HEAD;
        }
        if (!input->n)
            return SGI_HTTP1_MORE;
        switch (parser->state) {
        case SGI_HTTP1_AT_START:
            if (read_start(parser, input))
                return SGI_HTTP1_HEAD;
            break;
        case SGI_HTTP1_AT_HEADER:
            if (read_header(parser, input))
                return SGI_HTTP1_HEAD;
            break;
        case SGI_HTTP1_AT_LENGTH:
            read_bytes(parser, input, SGI_HTTP1_AT_END);
            break;
        case SGI_HTTP1_AT_OPEN:
            read_open(parser, input);
            break;
        case SGI_HTTP1_AT_CHUNK:
            read_chunk(parser, input);
            break;
        case SGI_HTTP1_AT_DATA:
            read_bytes(parser, input, SGI_HTTP1_AT_DATA_END);
            break;
        case SGI_HTTP1_AT_DATA_END:
            read_data_end(parser, input);
            break;
        case SGI_HTTP1_AT_TRAILER:
            read_trailer(parser, input);
            break;
        case SGI_HTTP1_AT_GIVEN:
        case SGI_HTTP1_AT_END:
            /* not reached, because sgi_http1_next returns earlier in these states */
            break;
        }
    }
}
