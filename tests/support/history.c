#include "support/history.h"

#include <segue/segue.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

const history_switch history_switches[] = {
    {"TASKS_2025", SEGUE_DIALECT_TASKS_2025, 0},
    {"STREAMING", SEGUE_DIALECT_STREAMING, 0},
    {"DRAFT_TASKS", SEGUE_DIALECT_DRAFT_TASKS, 0},
    {"TASKS", SEGUE_DIALECT_TASKS, 0},
    {"TASK_EVENTS", SEGUE_DIALECT_TASK_EVENTS, 0},
    {"PARTIAL", SEGUE_DIALECT_PARTIAL, 0},
    {"PARTIAL_RESULTS", SEGUE_DIALECT_PARTIAL_RESULTS, 0},
    {"RESUMABLE", SEGUE_DIALECT_RESUMABLE, 0},
    {"IMMEDIATE", SEGUE_DIALECT_IMMEDIATE, 0},
    {"ONE_RESPONSE", 0, SEGUE_WAY_ONE_RESPONSE},
    {"TRACKING", 0, SEGUE_WAY_TRACKING},
    {"UNDECLARED_MODES", 0, SEGUE_WAY_UNDECLARED_MODES},
    {"FROM_START", 0, SEGUE_WAY_FROM_START},
    {"PARTIAL_INDEX", 0, SEGUE_WAY_NO_PARTIAL_INDEX},
    {NULL, 0, 0},
};

uint32_t history_all_dialects(void)
{
    uint32_t all = 0;
    for (const history_switch *s = history_switches; s->name; s++)
        all |= s->dialect;
    return all;
}

void history_add(history *h, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    assert_true(n >= 0);
    h->text = realloc(h->text, h->len + (size_t)n + 1);
    vsnprintf(h->text + h->len, (size_t)n + 1, format, again);
    h->len += (size_t)n;
    va_end(again);
    va_end(args);
}

void history_free(history *h)
{
    free(h->text);
    h->text = NULL;
    h->len = 0;
}

/* ---- golden files ---- */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("no golden file %s", path);
    fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f);
    char *text = malloc(size + 1);
    rewind(f);
    text[fread(text, 1, size, f)] = 0;
    fclose(f);
    return text;
}

static void fail_at_line(const char *path, const char *stored, const char *text)
{
    int line = 1;
    while (*stored && *stored == *text) {
        line += *stored == '\n';
        stored++;
        text++;
    }
    fail_msg("%s:%d differs: stored '%.200s', heard '%.200s'", path, line, stored, text);
}

void history_assert_golden(const history *h, const char *name)
{
    char path[256];
    const char *mode = getenv("SEGUE_GOLDEN");
    const char *text = h->text ? h->text : "";
    snprintf(path, sizeof path, "%s/%s.txt", SEGUE_GOLDEN_DIR, name);
    if (mode && !strcmp(mode, "write")) {
        FILE *f = fopen(path, "w");
        fwrite(text, 1, h->len, f);
        fclose(f);
    }
    char *stored = read_file(path);
    if (strcmp(stored, text) != 0)
        fail_at_line(path, stored, text);
    free(stored);
}

/* ---- differences ---- */

static size_t line_length(const char *text)
{
    return strcspn(text, "\n");
}

static const char *line_after(const char *text)
{
    text += line_length(text);
    return *text ? text + 1 : text;
}

static bool is_heading(const char *line)
{
    return line[0] == '>' && line[1] == ' ';
}

/* Returns the length up to the next heading. */
static size_t section_length(const char *text)
{
    const char *at = line_after(text);
    while (*at && !is_heading(at))
        at = line_after(at);
    return (size_t)(at - text);
}

static bool begins(const char *text, const char *with)
{
    return with && !strncmp(text, with, strlen(with));
}

#define AROUND 60 /* the number of equal bytes shown around a difference */

static size_t common(const char *a, const char *b, size_t most)
{
    size_t n = 0;
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

static size_t common_end(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t n = 0;
    while (n < a_len && n < b_len && a[a_len - n - 1] == b[b_len - n - 1])
        n++;
    return n;
}

/* Notes the difference between two sections, with a few equal bytes around it. */
static void note(history *into, const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t from = common(a, b, a_len < b_len ? a_len : b_len);
    size_t left = common_end(a + from, a_len - from, b + from, b_len - from);
    size_t before = from < AROUND ? from : AROUND;
    size_t after = left < AROUND ? left : AROUND;
    history_add(into, "- ...%.*s...\n+ ...%.*s...\n",
                (int)(a_len - left - from + before + after), a + from - before,
                (int)(b_len - left - from + before + after), b + from - before);
}

void history_compare(history_judge *judge, const char *heading, const history *plain,
                     const history *with)
{
    const char *a = plain->text, *b = with->text;
    history_add(&judge->differences, "== %s\n", heading);
    while (*a && *b) {
        size_t n = section_length(a), m = section_length(b);
        bool may_differ =
            !judge->declares || begins(a, judge->declares) || begins(a, judge->lists);
        if (n != m || memcmp(a, b, n) != 0) {
            if (!may_differ)
                fail_msg("%s changes this:\n%.*s\nto\n%.*s", heading, (int)n, a, (int)m,
                         b);
            history_add(&judge->differences, "%.*s\n", (int)line_length(a), a);
            size_t skip = line_length(a) + 1;
            note(&judge->differences, a + skip, n - skip - 1, b + skip, m - skip - 1);
        }
        a += n;
        b += m;
    }
    assert_true(!*a && !*b);
}

void history_end(history_judge *judge)
{
    char name[96];
    snprintf(name, sizeof name, "%s_switches", judge->name);
    history_assert_golden(&judge->differences, name);
    history_free(&judge->differences);
}
