/* The reader of responses.
 *
 *     STATUS -> HEADER -> (HEAD reported) -> LENGTH ----------------------> END
 *       ^          |                      -> OPEN -- connection ends ------> END
 *       +-- 1xx ---+                      -> SIZE -> EXTENSION -> DATA
 *                                            DATA -> DATA_END -> SIZE
 *                                            EXTENSION -> TRAILER ---------> END
 *     any state -> FAULT, which is final
 *
 * A line of the head is collected in the caller's buffer, and is checked when its newline
 * has arrived. The lines between chunks are read byte by byte and kept nowhere. Therefore
 * the result never depends on how the input is cut into pieces. */
#include "wire/http1_response.h"

#include "wire/http1.h"
#include "wire/http1_text.h"

#define SIZE_DIGITS 16
/* Number of bytes of the empty line, which the limit of the head does not count. */
#define END_OF_HEAD ((size_t)2)

void sgi_http1_response_begin(sgi_http1_response *reader, sgi_buf *head, size_t head_max)
{
    *reader = (sgi_http1_response){.head = head, .head_max = head_max};
    sgi_buf_truncate(head, 0);
}

/* Refuses the response. Always returns false. */
static bool refuse(sgi_http1_response *reader, sgi_http1_response_fault fault,
                   const char *problem)
{
    reader->state = SGI_HTTP1_RESPONSE_AT_FAULT;
    reader->fault = fault;
    reader->problem = problem;
    return false;
}

static bool malformed(sgi_http1_response *reader, const char *problem)
{
    return refuse(reader, SGI_HTTP1_RESPONSE_MALFORMED, problem);
}

static bool refuse_size(sgi_http1_response *reader)
{
    return refuse(reader, SGI_HTTP1_RESPONSE_TOO_LARGE,
                  "the response's headers are too large");
}

/* ---- the head ---- */

/* Reads "HTTP/1.1 200 OK". The reason after the status may be missing. */
static bool read_status_line(sgi_http1_response *reader, sgi_str line)
{
    static const char version[] = "HTTP/1.";
    size_t at = sizeof version - 1;
    bool ok = line.n >= at + 5 && memcmp(line.p, version, at) == 0 &&
              (line.p[at] == '0' || line.p[at] == '1') && line.p[at + 1] == ' ' &&
              sgi_http1_span(sgi_http1_skip(line, at + 2), SGI_HTTP1_DIGIT) == 3 &&
              (line.n == at + 5 || line.p[at + 5] == ' ');
    if (!ok)
        return malformed(reader, "the answer is not HTTP/1.1");
    const char *digits = line.p + at + 2;
    reader->minor = (unsigned char)(line.p[at] - '0');
    reader->status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
    if (reader->status < 100 || reader->status == 101)
        return malformed(reader, "the answer has a status that was not asked for");
    return true;
}

/* Reads a number of bytes. Returns false for any other text. */
static bool read_number(sgi_str text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.n; i++) {
        uint64_t digit = (uint64_t)(text.p[i] - '0');
        if (!sgi_http1_is(text.p[i], SGI_HTTP1_DIGIT) ||
            *number > (INT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return text.n > 0;
}

/* Cuts the first element from a list, whose elements are separated by commas. */
static sgi_str next_element(sgi_str *list)
{
    const char *comma = memchr(list->p, ',', list->n);
    size_t n = comma ? (size_t)(comma - list->p) : list->n;
    sgi_str element = sgi_http1_trim((sgi_str){list->p, n});
    *list = sgi_http1_skip(*list, comma ? n + 1 : n);
    return element;
}

/* Reads Content-Length. A list of equal lengths counts once (RFC 9110 8.6). */
static bool read_length(sgi_http1_response *reader, sgi_str value)
{
    uint64_t length;
    do {
        if (!read_number(next_element(&value), &length) ||
            (reader->has_length && length != reader->left))
            return malformed(reader, "the answer's Content-Length is malformed");
        reader->has_length = true;
        reader->left = length;
    } while (value.n);
    return true;
}

/* Reads Transfer-Encoding. A coding that is named again changes nothing: servers behind
 * proxies send chunked twice. */
static bool read_coding(sgi_http1_response *reader, sgi_str value)
{
    do {
        sgi_str coding = next_element(&value);
        if (sgi_http1_same_ignoring_case(coding, SGI_STR("chunked")))
            reader->is_chunked = true;
        else if (!sgi_http1_same_ignoring_case(coding, SGI_STR("identity")))
            return malformed(reader, "the answer's only supported transfer coding is "
                                     "chunked");
    } while (value.n);
    return true;
}

/* Reads the tokens of Connection that say whether the connection stays open. */
static void read_connection(sgi_http1_response *reader, sgi_str value)
{
    while (value.n) {
        sgi_str token = next_element(&value);
        if (sgi_http1_same_ignoring_case(token, SGI_STR("close")))
            reader->says_close = true;
        else if (sgi_http1_same_ignoring_case(token, SGI_STR("keep-alive")))
            reader->says_keep_alive = true;
    }
}

static bool is_name(sgi_str name, sgi_str other)
{
    return name.n == other.n && sgi_http1_same_ignoring_case(name, other);
}

/* Reads a header line. The name of a header that decides about the framing must be
 * exact, also without blanks behind it; the names of other headers may be odd. */
static bool read_header(sgi_http1_response *reader, sgi_str line)
{
    const char *colon = memchr(line.p, ':', line.n);
    sgi_str name = {line.p, colon ? (size_t)(colon - line.p) : 0};
    sgi_str trimmed = sgi_http1_trim(name);
    bool is_length = is_name(trimmed, SGI_STR("content-length"));
    bool is_coding = is_name(trimmed, SGI_STR("transfer-encoding"));
    bool is_connection = is_name(trimmed, SGI_STR("connection"));
    reader->is_framing = is_length || is_coding || is_connection;
    if (!colon || (reader->is_framing && trimmed.n != name.n))
        return malformed(reader, "a header of the answer is malformed");
    sgi_str value = sgi_http1_trim(sgi_http1_skip(line, name.n + 1));
    if (is_length)
        return read_length(reader, value);
    if (is_coding)
        return read_coding(reader, value);
    if (is_connection)
        read_connection(reader, value);
    return true;
}

/* Forgets what the head said, after a provisional response. */
static void forget_head(sgi_http1_response *reader)
{
    sgi_buf_truncate(reader->head, 0);
    reader->line_at = 0;
    reader->left = 0;
    reader->has_length = reader->is_chunked = false;
    reader->says_close = reader->says_keep_alive = false;
    reader->state = SGI_HTTP1_RESPONSE_AT_STATUS;
}

static sgi_http1_response_state state_of_body(const sgi_http1_response *reader)
{
    if (reader->status == 204 || reader->status == 304)
        return SGI_HTTP1_RESPONSE_AT_END;
    if (reader->is_chunked)
        return SGI_HTTP1_RESPONSE_AT_SIZE;
    if (!reader->has_length)
        return SGI_HTTP1_RESPONSE_AT_OPEN;
    return reader->left ? SGI_HTTP1_RESPONSE_AT_LENGTH : SGI_HTTP1_RESPONSE_AT_END;
}

/* True when another reader could see the end of the body elsewhere. */
static bool is_framing_in_doubt(const sgi_http1_response *reader)
{
    bool is_bodiless = reader->status == 204 || reader->status == 304;
    return (reader->is_chunked && (reader->has_length || reader->minor == 0)) ||
           (is_bodiless && (reader->is_chunked || reader->left > 0));
}

/* Handles the empty line at the end of a head. Returns true when the head is final. */
static bool finish_head(sgi_http1_response *reader)
{
    if (reader->status < 200) {
        forget_head(reader);
        return false;
    }
    reader->state = state_of_body(reader);
    reader->keep_alive = !reader->says_close && !is_framing_in_doubt(reader) &&
                         (reader->minor > 0 || reader->says_keep_alive) &&
                         reader->state != SGI_HTTP1_RESPONSE_AT_OPEN;
    if (reader->is_chunked)
        reader->left = 0;
    return true;
}

/* Turns the line end before a folded line into blanks (RFC 9112 5.2). */
static void unfold(sgi_http1_response *reader)
{
    for (size_t at = reader->line_at;
         at && (reader->head->p[at - 1] == '\n' || reader->head->p[at - 1] == '\r'); at--)
        reader->head->p[at - 1] = ' ';
}

/* Handles a complete line, which is the end of *head. Returns true when the head is
 * complete. */
static bool take_line(sgi_http1_response *reader)
{
    sgi_str line = {reader->head->p + reader->line_at,
                    reader->head->len - reader->line_at - 1};
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (reader->state == SGI_HTTP1_RESPONSE_AT_STATUS) {
        if (read_status_line(reader, line)) {
            if (reader->status >= 200)
                reader->head_bytes -= reader->head->len;
            sgi_buf_truncate(reader->head, 0);
            reader->state = SGI_HTTP1_RESPONSE_AT_HEADER;
        }
        return false;
    }
    if (!line.n) {
        sgi_buf_truncate(reader->head, reader->line_at);
        return finish_head(reader);
    }
    if (reader->head_bytes > reader->head_max)
        return refuse_size(reader);
    if (reader->line_at && (*line.p == ' ' || *line.p == '\t')) {
        if (reader->is_framing)
            return malformed(reader, "a header of the answer is malformed");
        unfold(reader);
    } else if (!read_header(reader, line)) {
        return false;
    }
    reader->line_at = reader->head->len;
    return false;
}

/* Reads one line of the head, or a part of it. Returns true when the head is complete. */
static bool read_head(sgi_http1_response *reader, sgi_str *input)
{
    const char *newline = memchr(input->p, '\n', input->n);
    size_t len = newline ? (size_t)(newline - input->p) + 1 : input->n;
    reader->has_begun = true;
    /* input of another protocol is refused at its first bytes */
    if (reader->state == SGI_HTTP1_RESPONSE_AT_STATUS && !reader->head->len &&
        *input->p != 'H')
        return malformed(reader, "the answer is not HTTP/1.1");
    if (len > reader->head_max + END_OF_HEAD - reader->head_bytes)
        return refuse_size(reader);
    reader->head_bytes += len;
    sgi_buf_add(reader->head, input->p, len);
    if (reader->head->failed)
        return refuse(reader, SGI_HTTP1_RESPONSE_NOMEM, "out of memory");
    *input = sgi_http1_skip(*input, len);
    return newline && take_line(reader);
}

/* ---- the body ---- */

/* Takes a piece of the body, or of the chunk, from the input. next: the state after the
 * last byte. */
static void take_bytes(sgi_http1_response *reader, sgi_str *input,
                       sgi_http1_response_state next)
{
    size_t len = input->n < reader->left ? input->n : (size_t)reader->left;
    reader->bytes = (sgi_str){input->p, len};
    *input = sgi_http1_skip(*input, len);
    reader->left -= len;
    if (!reader->left)
        reader->state = next;
}

static char take_char(sgi_str *input)
{
    char c = *input->p;
    *input = sgi_http1_skip(*input, 1);
    return c;
}

static void read_size(sgi_http1_response *reader, sgi_str *input)
{
    while (input->n && sgi_http1_is(*input->p, SGI_HTTP1_HEX)) {
        char c = take_char(input);
        if (++reader->digits > SIZE_DIGITS) {
            malformed(reader, "the size of a chunk is malformed");
            return;
        }
        reader->left =
            reader->left << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (!input->n)
        return;
    if (!reader->digits)
        malformed(reader, "the size of a chunk is malformed");
    else
        reader->state = SGI_HTTP1_RESPONSE_AT_EXTENSION;
}

/* Skips what follows the size in its line. */
static void read_extension(sgi_http1_response *reader, sgi_str *input)
{
    char c = 0;
    while (input->n && (c = take_char(input)) != '\n') {
        if (reader->line_bytes++ == 0 && !strchr("\r; \t", c))
            c = 0;
        if (!c || reader->line_bytes > SGI_HTTP1_MAX_EXTENSIONS) {
            malformed(reader, c ? "the extensions of a chunk are too long"
                                : "the size of a chunk is malformed");
            return;
        }
    }
    if (c != '\n')
        return;
    reader->line_bytes = 0;
    reader->digits = 0;
    reader->is_line_empty = true;
    reader->state =
        reader->left ? SGI_HTTP1_RESPONSE_AT_DATA : SGI_HTTP1_RESPONSE_AT_TRAILER;
}

static void read_data_end(sgi_http1_response *reader, sgi_str *input)
{
    char c = take_char(input);
    if (c == '\r' && reader->line_bytes == 0) {
        reader->line_bytes = 1;
    } else if (c == '\n') {
        reader->line_bytes = 0;
        reader->state = SGI_HTTP1_RESPONSE_AT_SIZE;
    } else {
        malformed(reader, "a chunk is longer than its size");
    }
}

/* Skips the trailers up to the empty line. */
static void read_trailer(sgi_http1_response *reader, sgi_str *input)
{
    while (input->n && reader->state == SGI_HTTP1_RESPONSE_AT_TRAILER) {
        char c = take_char(input);
        if (++reader->line_bytes > SGI_HTTP1_MAX_TRAILERS)
            malformed(reader, "the trailers of the answer are too large");
        else if (c == '\n' && reader->is_line_empty)
            reader->state = SGI_HTTP1_RESPONSE_AT_END;
        else if (c != '\r')
            reader->is_line_empty = c == '\n';
    }
}

sgi_http1_response_event sgi_http1_response_next(sgi_http1_response *reader,
                                                 sgi_str *input)
{
    for (;;) {
        if (reader->state == SGI_HTTP1_RESPONSE_AT_END)
            return SGI_HTTP1_RESPONSE_DONE;
        if (reader->state == SGI_HTTP1_RESPONSE_AT_FAULT)
            return SGI_HTTP1_RESPONSE_BAD;
        if (!input->n)
            return SGI_HTTP1_RESPONSE_MORE;
        switch (reader->state) {
        case SGI_HTTP1_RESPONSE_AT_STATUS:
        case SGI_HTTP1_RESPONSE_AT_HEADER:
            if (read_head(reader, input))
                return SGI_HTTP1_RESPONSE_HEAD;
            break;
        case SGI_HTTP1_RESPONSE_AT_LENGTH:
            take_bytes(reader, input, SGI_HTTP1_RESPONSE_AT_END);
            return SGI_HTTP1_RESPONSE_BYTES;
        case SGI_HTTP1_RESPONSE_AT_OPEN:
            reader->bytes = *input;
            *input = sgi_http1_skip(*input, input->n);
            return SGI_HTTP1_RESPONSE_BYTES;
        case SGI_HTTP1_RESPONSE_AT_SIZE:
            read_size(reader, input);
            break;
        case SGI_HTTP1_RESPONSE_AT_EXTENSION:
            read_extension(reader, input);
            break;
        case SGI_HTTP1_RESPONSE_AT_DATA:
            take_bytes(reader, input, SGI_HTTP1_RESPONSE_AT_DATA_END);
            return SGI_HTTP1_RESPONSE_BYTES;
        case SGI_HTTP1_RESPONSE_AT_DATA_END:
            read_data_end(reader, input);
            break;
        case SGI_HTTP1_RESPONSE_AT_TRAILER:
            read_trailer(reader, input);
            break;
        case SGI_HTTP1_RESPONSE_AT_END:
        case SGI_HTTP1_RESPONSE_AT_FAULT:
            /* not reached, because the function returns earlier in these states */
            break;
        }
    }
}

sgi_http1_response_event sgi_http1_response_end(sgi_http1_response *reader)
{
    if (reader->state == SGI_HTTP1_RESPONSE_AT_OPEN)
        reader->state = SGI_HTTP1_RESPONSE_AT_END;
    if (reader->state == SGI_HTTP1_RESPONSE_AT_END)
        return SGI_HTTP1_RESPONSE_DONE;
    if (reader->state != SGI_HTTP1_RESPONSE_AT_FAULT)
        refuse(reader, SGI_HTTP1_RESPONSE_CUT_OFF,
               reader->has_begun ? "the response was cut off"
                                 : "the server closed the connection without an answer");
    return SGI_HTTP1_RESPONSE_BAD;
}
