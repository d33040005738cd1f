/* Scenarios that race or repeat send the same messages a hundred thousand times. So a
 * message is written as a reference if an earlier message of its direction had the same
 * form. Two messages have the same form if they differ only in the id and in values that
 * no schema looks at. */
#include "support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The maximum size of a message from a script. A larger message attacks limits, and the
 * file only says that it came. */
#define SCRIPT_MAX ((size_t)2 << 20)

struct tap {
    long number;
    bool judges[2]; /* per direction: messages are checked */
    char *half[2];  /* per direction: the beginning of an incomplete line */
    size_t half_len[2], half_cap[2];
};

static int file = -1;
static long opened;
static char test_name[256];

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "tap: %s: %s\n", what, strerror(errno));
    abort();
}

/* ---- what was written before ---- */

typedef struct known {
    uint64_t hash; /* 0 = free slot */
    long number;
} known;

static known *table;
static size_t table_size;
static long table_count;

static void grow(void)
{
    known *old = table;
    size_t old_size = table_size;
    table_size = old_size ? old_size * 2 : 1024;
    table = calloc(table_size, sizeof *table);
    must(table != NULL, "memory");
    for (size_t i = 0; i < old_size; i++) {
        size_t at = old[i].hash & (table_size - 1);
        while (old[i].hash && table[at].hash)
            at = (at + 1) & (table_size - 1);
        if (old[i].hash)
            table[at] = old[i];
    }
    free(old);
}

/* Returns the number of this form; *is_new says whether the form is new. */
static long number_of(uint64_t hash, bool *is_new)
{
    if ((size_t)table_count * 2 >= table_size)
        grow();
    hash += !hash;
    size_t at = hash & (table_size - 1);
    while (table[at].hash && table[at].hash != hash)
        at = (at + 1) & (table_size - 1);
    *is_new = !table[at].hash;
    if (*is_new)
        table[at] = (known){hash, ++table_count};
    return table[at].number;
}

static uint64_t mix(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * 0x100000001b3u;
}

/* Returns the end of the string or number that begins here; NULL when the value is
 * neither. */
static const char *value_end(const char *at, const char *end)
{
    const char *from = at;
    if (at < end && *at == '"') {
        for (at++; at < end && *at != '"'; at++)
            if (*at == '\\')
                return NULL;
        return at < end ? at + 1 : NULL;
    }
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at > from && at < end && strchr(",}", *at) ? at : NULL;
}

/* Mixes in what a schema can see of the value: all texts of word characters count as
 * equal, and in other texts all digits do. */
static uint64_t mix_value(uint64_t hash, const char *at, const char *end)
{
    size_t len = (size_t)(end - at), words = 0;
    if (*at != '"')
        return mix(hash, len == 1 && *at == '0' ? '0' : '#');
    for (const char *c = at + 1; c < end - 1; c++)
        words += (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                 (*c >= 'A' && *c <= 'Z') || strchr("_-", *c) != NULL;
    if (len > 2 && len < 100 && words == len - 2)
        return mix(hash, 'w');
    for (; at < end; at++)
        hash = mix(hash, *at >= '0' && *at <= '9' ? '0' : (unsigned char)*at);
    return hash;
}

/* Returns whether no schema looks at the values of the name before this position. Inside
 * a string a quote has a backslash before it, so only names match. */
static bool is_passed_over(const char *text, const char *at)
{
    static const char *const names[] = {
        "\"taskId\":",        "\"createdAt\":",  "\"lastUpdatedAt\":", "\"seq\":",
        "\"progressToken\":", "\"requestId\":",  "\"segment\":",       "\"seqNr\":",
        "\"requestState\":",  "\"resumeToken\":"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i]);
        if ((size_t)(at - text) > len && !memcmp(at - len, names[i], len) &&
            strchr("{,", at[-(ptrdiff_t)len - 1]))
            return true;
    }
    return false;
}

static const char *const id_head = "{\"jsonrpc\":\"2.0\",\"id\":";

/* Returns a hash of the message's form and the position of its id. */
static uint64_t form(const char *text, size_t len, tap_way way, const char **id,
                     size_t *id_len)
{
    const char *end = text + len, *at = text, *value;
    uint64_t hash = mix(0xcbf29ce484222325u, (unsigned char)way);
    size_t head = strlen(id_head);
    *id_len = 0;
    if (len > head && !memcmp(text, id_head, head) &&
        (value = value_end(text + head, end))) {
        *id = text + head;
        *id_len = (size_t)(value - *id);
        hash = mix(hash, **id == '"' ? 's' : 'n');
        at = value;
    }
    while (at < end) {
        hash = mix(hash, (unsigned char)*at++);
        if (at[-1] == ':' && is_passed_over(text, at) && (value = value_end(at, end))) {
            hash = mix_value(hash, at, value);
            at = value;
        }
    }
    return hash;
}

/* ---- the file ---- */

/* Writes each line with one write, so that a killed process leaves only whole lines. */
static void put(const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(file, text, len);
        must(n >= 0 || errno == EINTR, "writing");
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

static void open_file(const char *directory)
{
    char path[512];
    if (file >= 0)
        return;
    snprintf(path, sizeof path, "%s/%s.%ld.jsonl", directory,
             program_invocation_short_name, (long)getpid());
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    must(file >= 0, path);
}

void tap_test(const char *name)
{
    size_t n = 0;
    for (; name && name[n] && n < sizeof test_name - 1; n++)
        test_name[n] = strchr("\"\\", name[n]) || name[n] < ' ' ? '\'' : name[n];
    test_name[n] = 0;
}

tap *tap_open(const char *ours)
{
    char line[sizeof test_name + 100];
    const char *directory = getenv("SEGUE_TAP");
    if (!directory || !*directory)
        return NULL;
    open_file(directory);
    tap *t = calloc(1, sizeof *t);
    must(t != NULL, "memory");
    t->number = ++opened;
    t->judges[TAP_IN] = strcmp(ours, "server") != 0;
    t->judges[TAP_OUT] = strcmp(ours, "client") != 0;
    int n = snprintf(line, sizeof line, "{\"c\":%ld,\"test\":\"%s\",\"ours\":\"%s\"}\n",
                     t->number, test_name, ours);
    put(line, (size_t)n);
    return t;
}

void tap_close(tap *t)
{
    if (!t)
        return;
    free(t->half[TAP_IN]);
    free(t->half[TAP_OUT]);
    free(t);
}

void tap_cut(tap *t)
{
    if (t)
        t->half_len[TAP_IN] = t->half_len[TAP_OUT] = 0;
}

void tap_message(tap *t, tap_way way, const char *text, size_t len)
{
    const char *id = NULL;
    size_t id_len;
    bool is_new;
    while (t && len && strchr(" \t\r\n", text[len - 1]) && text[len - 1])
        len--;
    if (!t || !len || (!t->judges[way] && len > SCRIPT_MAX))
        return;
    uint64_t hash = form(text, len, way, &id, &id_len);
    hash = mix(hash, t->judges[way]);
    long number = number_of(hash, &is_new);
    char *line = malloc(len + 120);
    must(line != NULL, "memory");
    size_t n = (size_t)sprintf(line, "{\"c\":%ld,\"d\":\"%s\",\"k\":%ld,", t->number,
                               way == TAP_OUT ? "out" : "in", number);
    n += (size_t)sprintf(line + n, is_new ? "\"m\":" : "\"id\":");
    if (!is_new && !id_len)
        n += (size_t)sprintf(line + n, "null");
    if (is_new || id_len) {
        memcpy(line + n, is_new ? text : id, is_new ? len : id_len);
        n += is_new ? len : id_len;
    }
    /* A script's body may have several lines. */
    for (char *at = line; (at = memchr(at, '\n', n - (size_t)(at - line)));)
        *at = ' ';
    line[n++] = '}';
    line[n++] = '\n';
    put(line, n);
    free(line);
}

static void keep(tap *t, tap_way way, const char *bytes, size_t len)
{
    size_t wanted = t->half_len[way] + len;
    if (wanted > t->half_cap[way]) {
        t->half_cap[way] = wanted * 2;
        t->half[way] = realloc(t->half[way], t->half_cap[way]);
        must(t->half[way] != NULL, "memory");
    }
    memcpy(t->half[way] + t->half_len[way], bytes, len);
    t->half_len[way] += len;
}

void tap_bytes(tap *t, tap_way way, const char *bytes, size_t len)
{
    const char *end;
    while (t && len && (end = memchr(bytes, '\n', len))) {
        size_t n = (size_t)(end - bytes);
        if (t->half_len[way]) {
            keep(t, way, bytes, n);
            tap_message(t, way, t->half[way], t->half_len[way]);
            t->half_len[way] = 0;
        } else {
            tap_message(t, way, bytes, n);
        }
        bytes += n + 1;
        len -= n + 1;
    }
    if (t && len)
        keep(t, way, bytes, len);
}
