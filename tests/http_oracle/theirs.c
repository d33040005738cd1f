/* The reading of Debian's http-parser; tell.h has the format. Its input comes byte by
 * byte, so that the end of each request is seen. It is configured not to follow an
 * Upgrade, because Segue's server does not. */
#include "tell.h"

#include <http_parser.h>
#include <string.h>

typedef struct text {
    char *p;
    size_t len;
    size_t cap;
} text;

static text target, body, names[256], values[256];
static size_t headers;
static bool in_value, head_read, first;
static size_t at;

static void clear(text *t)
{
    t->len = 0;
}

static int add(text *t, const char *bytes, size_t length)
{
    if (t->cap < t->len + length) {
        t->cap = (t->len + length) * 2;
        t->p = realloc(t->p, t->cap);
        if (!t->p)
            abort();
    }
    memcpy(t->p + t->len, bytes, length);
    t->len += length;
    return 0;
}

static int on_begin(http_parser *parser)
{
    (void)parser;
    clear(&target);
    clear(&body);
    headers = 0;
    in_value = head_read = false;
    return 0;
}

static int on_url(http_parser *parser, const char *bytes, size_t length)
{
    (void)parser;
    return add(&target, bytes, length);
}

static int on_name(http_parser *parser, const char *bytes, size_t length)
{
    (void)parser;
    if (head_read)
        return 0;
    if (headers == 0 || in_value) {
        if (headers == 256)
            return 1;
        clear(&names[headers]);
        clear(&values[headers]);
        headers++;
        in_value = false;
    }
    return add(&names[headers - 1], bytes, length);
}

static int on_value(http_parser *parser, const char *bytes, size_t length)
{
    (void)parser;
    in_value = true;
    return head_read ? 0 : add(&values[headers - 1], bytes, length);
}

static int on_head(http_parser *parser)
{
    head_read = true;
    parser->upgrade = 0;
    return 0;
}

static int on_body(http_parser *parser, const char *bytes, size_t length)
{
    (void)parser;
    return add(&body, bytes, length);
}

static int on_end(http_parser *parser)
{
    const char *method = http_method_str((enum http_method)parser->method);
    tell_request(first, method, strlen(method), target.p, target.len);
    for (size_t i = 0; i < headers; i++)
        tell_header(i == 0, names[i].p, names[i].len, values[i].p, values[i].len);
    tell_end(body.p, body.len, http_should_keep_alive(parser), at + 1);
    first = false;
    return 0;
}

static void judge(const char *bytes, size_t length)
{
    http_parser parser;
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_message_begin = on_begin;
    settings.on_url = on_url;
    settings.on_header_field = on_name;
    settings.on_header_value = on_value;
    settings.on_headers_complete = on_head;
    settings.on_body = on_body;
    settings.on_message_complete = on_end;
    http_parser_init(&parser, HTTP_REQUEST);
    first = true;
    printf("{\"requests\":[");
    for (at = 0; at < length; at++)
        if (http_parser_execute(&parser, &settings, bytes + at, 1) != 1)
            break;
    enum http_errno fault = HTTP_PARSER_ERRNO(&parser);
    printf("],\"fault\":\"%s\"}\n",
           fault == HPE_OK ? (at < length ? "stopped" : "") : http_errno_name(fault));
}

int main(void)
{
    char *bytes;
    size_t length;
    while ((bytes = read_document(&length))) {
        judge(bytes, length);
        free(bytes);
    }
    return ferror(stdout);
}
