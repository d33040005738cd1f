#include "support/reply_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void append(char **to, size_t *to_len, const char *bytes, size_t len)
{
    *to = realloc(*to, *to_len + len + 1);
    memcpy(*to + *to_len, bytes, len);
    *to_len += len;
    (*to)[*to_len] = 0;
}

static void drop(char *from, size_t *from_len, size_t len)
{
    *from_len -= len;
    memmove(from, from + len, *from_len + 1);
}

/* ---- messages ---- */

static void take_body(reply_reader *r)
{
    if (r->text_len)
        r->on_message(r->user, r->text, r->text_len);
    r->text_len = 0;
}

/* Takes one event without its empty line. Comments and unused fields are skipped; an
 * event without data only has the position in the stream. */
static void take_event(reply_reader *r, char *event, size_t len)
{
    char *data = malloc(len + 1);
    size_t data_len = 0;
    for (char *line = strtok(event, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "id: ", 4) == 0)
            snprintf(r->last_event, sizeof r->last_event, "%s", line + 4);
        if (strncmp(line, "data: ", 6) != 0)
            continue;
        if (data_len)
            data[data_len++] = '\n';
        size_t n = strlen(line + 6);
        memcpy(data + data_len, line + 6, n);
        data_len += n;
    }
    if (data_len)
        r->on_message(r->user, data, data_len);
    free(data);
}

static void take_events(reply_reader *r)
{
    char *at = r->text, *end;
    while (r->text_len && (end = strstr(at, "\n\n"))) {
        *end = 0;
        take_event(r, at, (size_t)(end - at));
        at = end + 2;
    }
    if (at && at != r->text)
        drop(r->text, &r->text_len, (size_t)(at - r->text));
}

/* ---- framing ---- */

/* Copies the value of a header; "" when it is missing. */
static void header(const char *head, const char *name, char *value, size_t size)
{
    size_t len = strlen(name);
    *value = 0;
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, len) == 0 && line[2 + len] == ':') {
            const char *from = line + 3 + len;
            from += strspn(from, " ");
            snprintf(value, size, "%.*s", (int)strcspn(from, "\r"), from);
            return;
        }
}

static void begin_body(reply_reader *r, const char *head)
{
    char length[32], coding[32], type[64], connection[32];
    if (sscanf(head, "HTTP/1.1 %3d ", &r->status) != 1)
        fail_msg("no status line: %.200s", head);
    header(head, "Content-Length", length, sizeof length);
    header(head, "Transfer-Encoding", coding, sizeof coding);
    header(head, "Content-Type", type, sizeof type);
    header(head, "Connection", connection, sizeof connection);
    header(head, "Mcp-Session-Id", r->session, sizeof r->session);
    r->is_events = strncmp(type, "text/event-stream", 17) == 0;
    r->closes = strcasecmp(connection, "close") == 0;
    r->left = (size_t)strtoull(length, NULL, 10);
    if (strcasecmp(coding, "chunked") == 0) {
        assert_string_equal(length, "");
        r->stage = REPLY_CHUNK_SIZE;
        return;
    }
    r->stage = REPLY_BODY;
    if (!*length && r->status != 204)
        fail_msg("a body without an end: %.400s", head);
}

/* Each of these functions reads one stage of an answer. They return true when all bytes
 * of the stage have arrived, and then consume them. */
static bool read_line(reply_reader *r)
{
    bool is_head = r->stage == REPLY_HEAD;
    char *end = r->len ? strstr(r->bytes, is_head ? "\r\n\r\n" : "\r\n") : NULL;
    if (!end)
        return false;
    *end = 0;
    if (is_head && strncmp(r->bytes, "HTTP/1.1 100", 12) != 0) {
        begin_body(r, r->bytes);
    } else if (r->stage == REPLY_CHUNK_SIZE) {
        r->left = (size_t)strtoull(r->bytes, NULL, 16);
        r->stage = r->left ? REPLY_CHUNK : REPLY_CHUNK_END;
        if (!r->left)
            r->left = SIZE_MAX; /* the last chunk */
    } else if (r->stage == REPLY_CHUNK_END) {
        assert_string_equal(r->bytes, "");
        r->stage = r->left == SIZE_MAX ? REPLY_DONE : REPLY_CHUNK_SIZE;
    }
    drop(r->bytes, &r->len, (size_t)(end - r->bytes) + (is_head ? 4 : 2));
    return true;
}

static bool read_bytes(reply_reader *r)
{
    size_t n = r->len < r->left ? r->len : r->left;
    append(&r->text, &r->text_len, r->bytes ? r->bytes : "", n);
    if (n)
        drop(r->bytes, &r->len, n);
    r->left -= n;
    if (r->is_events)
        take_events(r);
    if (r->left)
        return false;
    r->stage = r->stage == REPLY_BODY ? REPLY_DONE : REPLY_CHUNK_END;
    return true;
}

static void read_on(reply_reader *r)
{
    bool more = true;
    while (more && r->stage != REPLY_DONE) {
        more = r->stage == REPLY_BODY || r->stage == REPLY_CHUNK ? read_bytes(r)
                                                                 : read_line(r);
        if (r->stage == REPLY_DONE && !r->is_events)
            take_body(r);
    }
    if (r->stage == REPLY_DONE && r->text_len)
        fail_msg("the stream ends inside of an event: %.200s", r->text);
}

void reply_reader_add(reply_reader *r, const char *bytes, size_t len)
{
    append(&r->bytes, &r->len, bytes, len);
    read_on(r);
}

void reply_reader_next(reply_reader *r)
{
    r->stage = REPLY_HEAD;
    read_on(r);
}

void reply_reader_free(reply_reader *r)
{
    free(r->bytes);
    free(r->text);
    r->bytes = r->text = NULL;
    r->len = r->text_len = 0;
}
