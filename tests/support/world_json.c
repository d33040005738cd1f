/* How scenarios read messages: values at paths, and golden files. */
#include "support/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- JSON ---- */

static sgi_json walk(sgi_json value, const char *path)
{
    while (*path && value.n) {
        char name[128];
        size_t n = strcspn(path, ".");
        if (n >= sizeof name)
            return (sgi_json){0};
        memcpy(name, path, n);
        name[n] = 0;
        path += n + (path[n] == '.');
        if (sgi_json_kind_of(value) == SGI_JSON_ARRAY) {
            sgi_json item = {0};
            size_t at = 0;
            for (int left = atoi(name); left >= 0; left--)
                if (!sgi_json_next_item(value, &at, &item))
                    item = (sgi_json){0};
            value = item;
        } else {
            value = sgi_json_get(value, name);
        }
    }
    return value;
}

const char *json_at(const char *message, const char *path)
{
    static char *ring[16];
    static int turn;
    if (!message)
        fail_msg("there is no message to look for %s in", path);
    sgi_json value = walk(sgi_json_trim((sgi_str){message, strlen(message)}), path);
    turn = (turn + 1) % 16;
    free(ring[turn]);
    ring[turn] = value.n ? strndup(value.p, value.n) : strdup("");
    return ring[turn];
}

void assert_at_(const char *message, const char *path, const char *expected,
                const char *file, int line)
{
    const char *found = json_at(message, path);
    if (strcmp(found, expected) == 0)
        return;
    print_error("%s is %s, expected %s, in %s\n", path, found, expected, message);
    _fail(file, line);
}

int json_mentions(const char *message, const char *name)
{
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    return strstr(message, quoted) != NULL;
}

/* ---- golden files ---- */

/* A question of the server has the id OPERATION:POSITION:RANDOM; a client's id has
 * another form. */
static bool is_question_id(const char *text)
{
    size_t n = strcspn(text, "\":");
    if (text[n] != ':')
        return false;
    text += n + 1;
    return text[strcspn(text, "\":")] == ':';
}

/* Replaces values that differ from run to run by their name in angle brackets. */
static char *mask(const char *message)
{
    static const struct {
        const char *key, *name;
        char end;
    } masks[] = {{"\"id\":\"", "question", '"'},
                 {"\"taskId\":\"", "taskId", '"'},
                 {"\"requestState\":\"", "requestState", '"'},
                 {"\"nextCursor\":\"", "nextCursor", '"'},
                 {"\"createdAt\":\"", "createdAt", '"'},
                 {"\"lastUpdatedAt\":\"", "lastUpdatedAt", '"'},
                 {"\"taskIds\":[\"", "taskIds", ']'}};
    char *text = malloc(strlen(message) * 2 + 64);
    char *out = text;
    for (const char *in = message; *in;) {
        size_t i = 0, n = 0;
        for (; i < sizeof masks / sizeof *masks; i++)
            if (!strncmp(in, masks[i].key, n = strlen(masks[i].key)) &&
                (i > 0 || is_question_id(in + n)))
                break;
        if (i == sizeof masks / sizeof *masks) {
            *out++ = *in++;
            continue;
        }
        out += sprintf(out, "%s<%s>%s", masks[i].key, masks[i].name,
                       masks[i].end == '"' ? "" : "\"");
        in = strchr(in + n, masks[i].end);
    }
    *out = 0;
    return text;
}

void assert_golden(const char *message, const char *name)
{
    char path[256], stored[65536];
    char *masked = mask(message);
    snprintf(path, sizeof path, "%s/%s.json", SEGUE_GOLDEN_DIR, name);
    const char *mode = getenv("SEGUE_GOLDEN");
    if (mode && !strcmp(mode, "write")) {
        FILE *f = fopen(path, "w");
        fprintf(f, "%s\n", masked);
        fclose(f);
    }
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("no golden file %s", path);
    size_t n = fread(stored, 1, sizeof stored - 1, f);
    fclose(f);
    while (n && stored[n - 1] == '\n')
        n--;
    stored[n] = 0;
    if (strcmp(stored, masked) != 0)
        fail_msg("differs from %s:\n  %s\n  %s", path, stored, masked);
    free(masked);
}
