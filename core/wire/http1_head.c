/* The parts of a head, and what they mean.
 *
 * Headers are stored as offsets, because the text moves in memory while it grows. The
 * views in the head are made when the head is complete.
 * The whole head is checked in http1_whole.c. */
#include "wire/http1_head.h"

#include "wire/http1_text.h"

#define KEEP_TEXT ((size_t)2 * 1024)
#define KEEP_FIELDS 32u
/* The largest allowed value of a limit, in bytes. Offsets in the head are 32-bit
 * numbers. */
#define MAX_ANY ((size_t)1 << 30)

static size_t limit_of(size_t value, size_t standard, size_t most)
{
    size_t limit = value ? value : standard;
    return limit < most ? limit : most;
}

void sgi_http1_head_init(sgi_http1_head *head, const sgi_mem *mem,
                         const sgi_http1_limits *limits)
{
    sgi_http1_limits given = limits ? *limits : (sgi_http1_limits){0};
    memset(head, 0, sizeof *head);
    head->limits = (sgi_http1_limits){
        .max_request_line = limit_of(given.max_request_line, 8 * 1024, MAX_ANY),
        .max_head = limit_of(given.max_head, 16 * 1024, MAX_ANY),
        .max_headers = limit_of(given.max_headers, 100, UINT16_MAX - 1),
        .max_body = limit_of(given.max_body, 4 * 1024 * 1024, SIZE_MAX / 4),
    };
    head->changed = UINT32_MAX;
    sgi_buf_init(&head->text, mem);
}

static void free_fields(sgi_http1_head *head)
{
    sgi_free(head->text.mem, head->fields, head->field_cap * sizeof *head->fields);
    head->fields = NULL;
    head->field_cap = 0;
    head->past = (sgi_http1_past){0};
}

void sgi_http1_head_free(sgi_http1_head *head)
{
    free_fields(head);
    sgi_buf_free(&head->text);
}

void sgi_http1_head_reset(sgi_http1_head *head)
{
    sgi_http1_remember_head(head);
    if (head->field_cap > KEEP_FIELDS || head->text.cap > KEEP_TEXT)
        free_fields(head);
    sgi_buf_reset(&head->text, KEEP_TEXT);
}

bool sgi_http1_refuse(sgi_http1_head *head, int32_t status, const char *problem)
{
    head->fault.status = status;
    head->fault.problem = problem;
    return false;
}

bool sgi_http1_refuse_over_limit(sgi_http1_head *head, int32_t status,
                                 const char *problem, sgi_http1_limit limit)
{
    head->fault.reached = limit;
    return sgi_http1_refuse(head, status, problem);
}

/* ---- request and headers ---- */

bool sgi_http1_take_request(sgi_http1_head *head, size_t method_len, size_t target_len)
{
    sgi_str method = {head->text.p, method_len};
    if (method.n > SGI_HTTP1_MAX_METHOD)
        return sgi_http1_refuse(head, 501, "the method is too long");
    if (sgi_str_eq(method, SGI_STR("CONNECT")))
        return sgi_http1_refuse(head, 501, "the method CONNECT is not supported");
    head->method.n = method_len;
    head->target.n = target_len;
    return true;
}

static const sgi_str names[SGI_HTTP1_NAMES] = {
    [SGI_HTTP1_HOST] = SGI_STR_INIT("host"),
    [SGI_HTTP1_ACCEPT] = SGI_STR_INIT("accept"),
    [SGI_HTTP1_EXPECT] = SGI_STR_INIT("expect"),
    [SGI_HTTP1_ORIGIN] = SGI_STR_INIT("origin"),
    [SGI_HTTP1_MCP_NAME] = SGI_STR_INIT("mcp-name"),
    [SGI_HTTP1_CONNECTION] = SGI_STR_INIT("connection"),
    [SGI_HTTP1_MCP_METHOD] = SGI_STR_INIT("mcp-method"),
    [SGI_HTTP1_CONTENT_TYPE] = SGI_STR_INIT("content-type"),
    [SGI_HTTP1_AUTHORIZATION] = SGI_STR_INIT("authorization"),
    [SGI_HTTP1_LAST_EVENT_ID] = SGI_STR_INIT("last-event-id"),
    [SGI_HTTP1_CONTENT_LENGTH] = SGI_STR_INIT("content-length"),
    [SGI_HTTP1_MCP_SESSION_ID] = SGI_STR_INIT("mcp-session-id"),
    [SGI_HTTP1_TRANSFER_ENCODING] = SGI_STR_INIT("transfer-encoding"),
    [SGI_HTTP1_MCP_PROTOCOL_VERSION] = SGI_STR_INIT("mcp-protocol-version"),
};

/* Returns the first of the known names with this length, or SGI_HTTP1_NAMES when there is
 * none. In the table, names with the same length stand next to each other. */
static sgi_http1_name first_of_length(size_t len)
{
    switch (len) {
    case 4:
        return SGI_HTTP1_HOST;
    case 6:
        return SGI_HTTP1_ACCEPT;
    case 8:
        return SGI_HTTP1_MCP_NAME;
    case 10:
        return SGI_HTTP1_CONNECTION;
    case 12:
        return SGI_HTTP1_CONTENT_TYPE;
    case 13:
        return SGI_HTTP1_AUTHORIZATION;
    case 14:
        return SGI_HTTP1_CONTENT_LENGTH;
    case 17:
        return SGI_HTTP1_TRANSFER_ENCODING;
    case 20:
        return SGI_HTTP1_MCP_PROTOCOL_VERSION;
    default:
        return SGI_HTTP1_NAMES;
    }
}

sgi_http1_name sgi_http1_name_of(sgi_str name)
{
    sgi_http1_name at = first_of_length(name.n);
    for (; at < SGI_HTTP1_NAMES && names[at].n == name.n; at++)
        if (sgi_http1_same_ignoring_case(names[at], name))
            return at;
    return SGI_HTTP1_NAMES;
}

/* Reads the elements of a Connection header. A request may have several Connection
 * headers (RFC 9110 7.6.1). */
static bool read_connection(sgi_http1_head *head, sgi_str list)
{
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        size_t len = comma ? (size_t)(comma - list.p) : list.n;
        sgi_str option = sgi_http1_trim((sgi_str){list.p, len});
        list = sgi_http1_skip(list, comma ? len + 1 : len);
        if (sgi_http1_span(option, SGI_HTTP1_TOKEN) < option.n)
            return sgi_http1_refuse(head, 400, "the Connection header is malformed");
        head->says_close |= sgi_http1_same_ignoring_case(option, SGI_STR("close"));
        head->says_keep_alive |=
            sgi_http1_same_ignoring_case(option, SGI_STR("keep-alive"));
    }
    return true;
}

static bool grow_fields(sgi_http1_head *head)
{
    uint32_t cap = head->field_cap ? head->field_cap * 2 : 16;
    void *fields =
        sgi_realloc(head->text.mem, head->fields, head->field_cap * sizeof *head->fields,
                    cap * sizeof *head->fields);
    if (!fields)
        return sgi_http1_refuse(head, 503, "out of memory");
    head->fields = fields;
    head->field_cap = cap;
    return true;
}

static uint32_t offset_of(const sgi_http1_head *head, sgi_str text)
{
    return (uint32_t)(text.p - head->text.p);
}

bool sgi_http1_take_header(sgi_http1_head *head, sgi_str name, sgi_str value)
{
    if (head->field_count >= head->limits.max_headers)
        return sgi_http1_refuse_over_limit(head, 431, "the request has too many headers",
                                           SGI_HTTP1_MAX_HEADERS);
    if (head->field_count == head->field_cap && !grow_fields(head))
        return false;
    sgi_http1_name known = sgi_http1_name_of(name);
    sgi_http1_note_change(head, known);
    head->fields[head->field_count] =
        (sgi_http1_field){offset_of(head, name), (uint32_t)name.n, offset_of(head, value),
                          (uint32_t)value.n, known};
    return sgi_http1_note_field(head);
}

bool sgi_http1_note_field(sgi_http1_head *head)
{
    const sgi_http1_field *field = &head->fields[head->field_count++];
    if (field->known == SGI_HTTP1_NAMES)
        return true;
    if (head->known[field->known])
        head->repeated |= 1u << field->known;
    else
        head->known[field->known] = (uint16_t)head->field_count;
    sgi_str value = {head->text.p + field->value_at, field->value_len};
    return field->known != SGI_HTTP1_CONNECTION || read_connection(head, value);
}

/* ---- by hand ---- */

/* The bytes that HTTP/1.1 adds to the texts of a request line, and of a header. */
#define AROUND_REQUEST (sizeof "  HTTP/1.1\r\n" - 1)
#define AROUND_HEADER (sizeof ": \r\n" - 1)

/* Appends a text and a NUL. Returns the text in the head. */
static sgi_str keep(sgi_http1_head *head, sgi_str text)
{
    size_t at = head->text.len;
    sgi_buf_add_str(&head->text, text);
    sgi_buf_add_char(&head->text, 0);
    if (head->text.failed)
        return (sgi_str){0};
    return (sgi_str){head->text.p + at, text.n};
}

/* Counts bytes that come. Returns false when the head is larger than allowed. */
static bool count(sgi_http1_head *head, size_t len)
{
    if (len <= head->limits.max_head - head->size) {
        head->size += len;
        return true;
    }
    return sgi_http1_refuse_over_limit(head, 431, "the HTTP headers are too large",
                                       SGI_HTTP1_MAX_HEAD);
}

bool sgi_http1_head_begin(sgi_http1_head *head, sgi_str method, sgi_str target,
                          size_t room)
{
    size_t len = method.n + target.n + AROUND_REQUEST;
    if (!method.n || sgi_http1_span(method, SGI_HTTP1_TOKEN) < method.n)
        return sgi_http1_refuse(head, 400,
                                "the HTTP method has a character that is not allowed");
    if (!target.n || sgi_http1_span(target, SGI_HTTP1_TARGET) < target.n)
        return sgi_http1_refuse(head, 400,
                                "the request target has a byte that is not allowed");
    if (len > head->limits.max_request_line)
        return sgi_http1_refuse_over_limit(head, 414, "the request line is too long",
                                           SGI_HTTP1_MAX_LINE);
    if (!count(head, len + sizeof "\r\n" - 1))
        return false;
    head->minor = 1;
    head->is_altered = true;
    sgi_buf_reserve(&head->text, room < head->limits.max_head ? room : KEEP_TEXT);
    if (!keep(head, method).p || !keep(head, target).p)
        return sgi_http1_refuse(head, 503, "out of memory");
    return sgi_http1_take_request(head, method.n, target.n);
}

bool sgi_http1_head_add(sgi_http1_head *head, sgi_str name, sgi_str value)
{
    if (!name.n || sgi_http1_span(name, SGI_HTTP1_TOKEN) < name.n)
        return sgi_http1_refuse(head, 400,
                                "a header name has a character that is not allowed");
    if (!sgi_http1_is_value(value))
        return sgi_http1_refuse(head, 400, "a header value has a control character");
    if (!count(head, name.n + value.n + AROUND_HEADER))
        return false;
    name = keep(head, name);
    size_t name_at = (size_t)(name.p - head->text.p);
    value = keep(head, value);
    if (!value.p)
        return sgi_http1_refuse(head, 503, "out of memory");
    name.p = head->text.p + name_at; /* the text may have moved */
    return sgi_http1_take_header(head, name, sgi_http1_trim(value));
}

/* ---- reading the headers ---- */

static sgi_str value_of(const sgi_http1_head *head, size_t i)
{
    return (sgi_str){head->text.p + head->fields[i].value_at, head->fields[i].value_len};
}

sgi_str sgi_http1_header(const sgi_http1_head *head, sgi_http1_name name)
{
    size_t place = head->known[name];
    return place ? value_of(head, place - 1) : (sgi_str){0};
}

bool sgi_http1_is_repeated(const sgi_http1_head *head, sgi_http1_name name)
{
    return (head->repeated >> name & 1) != 0;
}

bool sgi_http1_header_at(const sgi_http1_head *head, size_t i, sgi_str *name,
                         sgi_str *value)
{
    if (i >= head->field_count)
        return false;
    *name = (sgi_str){head->text.p + head->fields[i].name_at, head->fields[i].name_len};
    *value = value_of(head, i);
    return true;
}

const char *sgi_http1_terminate(sgi_http1_head *head, sgi_str value)
{
    head->is_altered = true;
    head->text.p[(size_t)(value.p - head->text.p) + value.n] = 0;
    return value.p;
}

sgi_str sgi_http1_find_header(const sgi_http1_head *head, sgi_str name, size_t *count)
{
    sgi_str found = {0}, here, value;
    size_t seen = 0;
    for (size_t i = 0; sgi_http1_header_at(head, i, &here, &value); i++)
        if (sgi_http1_same_ignoring_case(here, name) && seen++ == 0)
            found = value;
    if (count)
        *count = seen;
    return found;
}
