/* Reads files of vectors. A file with an unknown member is refused, because a misspelt
 * member would be a check that never runs. */
#include "support/vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRAFT "DRAFT-2026-v1"

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

static const char *fault_of(sgi_str text, size_t *at)
{
    segue_hooks hooks = {.random = no_chance};
    sgi_env env = {&sgi_mem_libc, &hooks};
    sgi_json_reader reader;
    sgi_json_error error = {0};
    sgi_json_reader_init(&reader, &env, SGI_JSON_MAX_BYTES, 512);
    bool is_json = sgi_json_read(&reader, text, NULL, 0, NULL, &error);
    sgi_json_reader_free(&reader);
    *at = error.at;
    return is_json ? NULL : sgi_json_fault_text(error.fault);
}

bool vector_is_json(const char *text, size_t len)
{
    size_t at;
    return fault_of((sgi_str){text, len}, &at) == NULL;
}

char *vector_string(sgi_json object, const char *name)
{
    sgi_json value = sgi_json_get(object, name);
    sgi_buf out;
    char *text = NULL;
    sgi_buf_init(&out, &sgi_mem_libc);
    if (sgi_json_decode(value, &out))
        text = strndup(out.len ? out.p : "", out.len);
    sgi_buf_free(&out);
    return text;
}

char *vector_unknown(sgi_json object, const char *known)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(object, &at, &member);) {
        char *barred = vector_text("|%.*s|", (int)member.key.n, member.key.p);
        bool is_known = strstr(known, barred) != NULL;
        free(barred);
        if (!is_known)
            return vector_text("nobody knows \"%.*s\"", (int)member.key.n, member.key.p);
    }
    return NULL;
}

static bool is_revision(const char *text)
{
    static const char *const known[] = {"2026-07-28", DRAFT,        "2025-11-25",
                                        "2025-06-18", "2025-03-26", "2024-11-05"};
    for (size_t i = 0; text && i < sizeof known / sizeof *known; i++)
        if (!strcmp(text, known[i]))
            return true;
    return false;
}

bool vector_needs(sgi_json vector, const char *word)
{
    sgi_json item;
    sgi_str text;
    for (size_t at = 0; sgi_json_next_item(sgi_json_get(vector, "needs"), &at, &item);)
        if (sgi_json_plain_string(item, &text) && text.n == strlen(word) &&
            !memcmp(text.p, word, text.n))
            return true;
    return false;
}

/* Returns whether there is a step of this name. */
static bool has_step(sgi_json steps, const char *name)
{
    sgi_json step;
    for (size_t at = 0; sgi_json_next_item(steps, &at, &step);)
        if (sgi_json_get(step, name).n)
            return true;
    return false;
}

/* Checks that the vector lists the features that it needs, so that a runner without a
 * feature can skip the vector. */
static char *check_needs(const vector_file *file, sgi_json vector, const char *role,
                         const char *revision)
{
    static const struct {
        const char *word, *step, *role; /* step NULL = no step shows the need; role NULL =
                                         * any role */
    } words[] = {
        {"clock", "advance_ms", NULL}, {"cut", "cut", NULL},
        {"draft_tasks", NULL, NULL},   {"host", "host", "client"},
        {"resumable", NULL, "client"}, {"questions_as_tasks", NULL, "server"},
        {"keys", NULL, "server"},
    };
    char *prelude = vector_text("%s %s", role, revision);
    sgi_json begin = sgi_json_get(file->begin, prelude);
    sgi_json after = sgi_json_get(file->after, prelude);
    sgi_json steps = sgi_json_get(vector, "steps"), item;
    char *wrong = NULL;
    size_t known = 0, told = 0;
    for (size_t i = 0; !wrong && i < sizeof words / sizeof *words; i++) {
        bool says = vector_needs(vector, words[i].word);
        bool does = words[i].step &&
                    (has_step(begin, words[i].step) || has_step(steps, words[i].step) ||
                     has_step(after, words[i].step));
        if (!strcmp(words[i].word, "draft_tasks"))
            does = !strcmp(revision, DRAFT);
        known += says;
        if (does && !says)
            wrong = vector_text("it needs \"%s\" and does not say so", words[i].word);
        else if (says && (words[i].role ? strcmp(words[i].role, role) != 0 : !does))
            wrong = vector_text("it does not need \"%s\"", words[i].word);
    }
    for (size_t at = 0; sgi_json_next_item(sgi_json_get(vector, "needs"), &at, &item);)
        told++;
    if (!wrong && told != known)
        wrong = vector_text("it needs what nobody knows, or twice");
    free(prelude);
    return wrong;
}

static char *check_vector(const vector_file *file, sgi_json vector)
{
    char *wrong = vector_unknown(
        vector, "|name|rule|role|revision|needs|about|capabilities|steps|fails|");
    char *name = vector_string(vector, "name");
    char *rule = vector_string(vector, "rule");
    char *role = vector_string(vector, "role");
    char *revision = vector_string(vector, "revision");
    if (!wrong && (!name || !*name || !rule || !*rule))
        wrong = vector_text("a vector lacks its name or rule");
    if (!wrong && (!role || (strcmp(role, "server") && strcmp(role, "client"))))
        wrong = vector_text("%s: no such role", name);
    if (!wrong && !is_revision(revision))
        wrong = vector_text("%s: no such revision", name);
    if (!wrong && sgi_json_kind_of(sgi_json_get(vector, "steps")) != SGI_JSON_ARRAY)
        wrong = vector_text("%s: no steps", name);
    if (!wrong) {
        char *needs = check_needs(file, vector, role, revision);
        wrong = needs ? vector_text("%s: %s", name, needs) : NULL;
        free(needs);
    }
    free(name);
    free(rule);
    free(role);
    free(revision);
    return wrong;
}

/* The common parts of vectors are found by a name such as "server 2025-11-25". */
static char *check_common(sgi_json begin)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(begin, &at, &member);) {
        char *key = strndup(member.key.p, member.key.n);
        bool is_role = !strncmp(key, "server ", 7) || !strncmp(key, "client ", 7);
        bool is_good = is_role && is_revision(key + 7);
        free(key);
        if (!is_good)
            return vector_text("nobody begins so: \"%.*s\"", (int)member.key.n,
                               member.key.p);
    }
    return NULL;
}

static char *check_file(vector_file *file, sgi_json all)
{
    int64_t format = 0;
    sgi_json vector;
    char *wrong = vector_unknown(all, "|format|about|let|begin|after|vectors|");
    sgi_json_read_int(sgi_json_get(all, "format"), &format);
    if (!wrong && format != VECTOR_FORMAT)
        wrong = vector_text("format %d is not %d", (int)format, VECTOR_FORMAT);
    file->let = sgi_json_get(all, "let");
    file->begin = sgi_json_get(all, "begin");
    file->after = sgi_json_get(all, "after");
    file->vectors = sgi_json_get(all, "vectors");
    if (!wrong && sgi_json_kind_of(file->vectors) != SGI_JSON_ARRAY)
        wrong = vector_text("no vectors");
    if (!wrong)
        wrong = check_common(file->begin);
    if (!wrong)
        wrong = check_common(file->after);
    for (size_t at = 0; !wrong && sgi_json_next_item(file->vectors, &at, &vector);)
        wrong = check_vector(file, vector);
    return wrong;
}

char *vector_file_parse(vector_file *file, const char *text)
{
    size_t at;
    *file = (vector_file){.text = strdup(text)};
    sgi_str all = {file->text, strlen(file->text)};
    const char *fault = fault_of(all, &at);
    if (fault)
        return vector_text("no JSON at byte %d: %s", (int)at, fault);
    return check_file(file, sgi_json_trim(all));
}

char *vector_file_read(vector_file *file, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    char chunk[4096];
    FILE *in = fopen(path, "r");
    *file = (vector_file){0};
    if (!in)
        return vector_text("cannot be opened");
    FILE *out = open_memstream(&text, &size);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, in)) > 0;)
        fwrite(chunk, 1, n, out);
    fclose(in);
    fclose(out);
    char *wrong = vector_file_parse(file, text);
    free(text);
    return wrong;
}

void vector_file_free(vector_file *file)
{
    free(file->text);
    *file = (vector_file){0};
}
