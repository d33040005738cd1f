/* Plays the vectors of tests/vectors, which other languages play too, against the
 * library. Also vectors that are wrong on purpose (tests/vectors/wrong): each must fail
 * for the reason that it names. */
#include "support/tap.h"
#include "support/vector.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define MAX_FILES 64
#define MAX_VECTORS 1024

typedef struct played {
    vector_file *file;
    sgi_json vector;
    char *name;
    char *fails; /* NULL = the vector is right */
} played;

static vector_file files[MAX_FILES];
static size_t file_count;
static played list[MAX_VECTORS];
static size_t count;

static void play(void **state)
{
    const played *p = *state;
    tap_test(p->name);
    char *wrong = vector_play(p->file, p->vector);
    if (p->fails && (!wrong || !strstr(wrong, p->fails)))
        fail_msg("has to fail with \"%s\": %s", p->fails, wrong ? wrong : "it did not");
    if (!p->fails && wrong)
        fail_msg("%s", wrong);
    free(wrong);
}

static void add_vectors(vector_file *file, const char *of, bool is_wrong)
{
    sgi_json vector;
    for (size_t at = 0; sgi_json_next_item(file->vectors, &at, &vector); count++) {
        char *name = vector_string(vector, "name");
        char *rule = vector_string(vector, "rule");
        played *p = &list[count];
        *p = (played){file, vector, vector_text("%s %s [%s]", rule, name, of),
                      vector_string(vector, "fails")};
        if (count + 1 == MAX_VECTORS || is_wrong != (p->fails != NULL)) {
            print_error("%s: too many, or \"fails\" where it does not belong\n", p->name);
            exit(1);
        }
        free(name);
        free(rule);
    }
}

static int is_file(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && !strcmp(end, ".json");
}

static void read_directory(const char *path, bool is_wrong)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, is_file, alphasort);
    for (int i = 0; i < n; i++) {
        char *name = vector_text("%s/%s", path, entries[i]->d_name);
        vector_file *file = &files[file_count++];
        char *wrong = file_count == MAX_FILES ? vector_text("one file too many")
                                              : vector_file_read(file, name);
        if (wrong) {
            print_error("%s: %s\n", name, wrong);
            exit(1);
        }
        add_vectors(file, entries[i]->d_name, is_wrong);
        free(name);
        free(entries[i]);
    }
    free(entries);
    if (n < 1) {
        print_error("no vectors in %s\n", path);
        exit(1);
    }
}

#define VECTOR(needs, step)                                                              \
    "{\"format\":1,\"vectors\":[{\"name\":\"n\",\"rule\":\"r\",\"role\":"                \
    "\"server\"," needs "\"revision\":\"2025-11-25\",\"steps\":[" step "]}]}"

static void files_that_are_wrong(void **state)
{
    static const char *const texts[][2] = {
        {"{", "no JSON"},
        {"{\"format\":2,\"vectors\":[]}", "format 2 is not 1"},
        {"{\"format\":1}", "no vectors"},
        {"{\"format\":1,\"vectors\":[],\"vector\":[]}", "nobody knows \"vector\""},
        {"{\"format\":1,\"vectors\":[{\"name\":\"n\",\"rule\":\"r\",\"role\":\"server\","
         "\"revision\":\"2025-11-25\",\"steps\":[],\"step\":[]}]}",
         "nobody knows \"step\""},
        {"{\"format\":1,\"vectors\":[{\"name\":\"n\",\"role\":\"server\"}]}", "rule"},
        {"{\"format\":1,\"vectors\":[],\"begin\":{\"server 2025\":[]}}", "nobody begins"},
        {"{\"format\":1,\"vectors\":[{\"name\":\"n\",\"rule\":\"r\",\"role\":\"peer\"}]}",
         "no such role"},
        {"{\"format\":1,\"vectors\":[{\"name\":\"n\",\"rule\":\"r\",\"role\":\"client\","
         "\"revision\":\"2027\"}]}",
         "no such revision"},
        {"{\"format\":1,\"vectors\":[{\"name\":\"n\",\"rule\":\"r\",\"role\":\"client\","
         "\"revision\":\"2025-11-25\"}]}",
         "no steps"},
        {"{\"format\":1,\"vectors\":[],\"after\":{\"server 2025\":[]}}", "nobody begins"},
        {VECTOR("", "{\"advance_ms\":1}"), "it needs \"clock\" and does not say so"},
        {VECTOR("\"needs\":[\"clock\"],", ""), "it does not need \"clock\""},
        {VECTOR("\"needs\":[\"host\"],", ""), "it does not need \"host\""},
        {VECTOR("\"needs\":[\"luck\"],", ""), "it needs what nobody knows"},
        {VECTOR("\"needs\":[\"cut\",\"cut\"],", "{\"cut\":true}"),
         "it needs what nobody knows"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        vector_file file;
        char *wrong = vector_file_parse(&file, texts[i][0]);
        if (!wrong || !strstr(wrong, texts[i][1]))
            fail_msg("%s: %s", texts[i][0], wrong ? wrong : "was taken");
        free(wrong);
        vector_file_free(&file);
    }
}

static bool is_wanted(const played *p)
{
    const char *only = getenv("SEGUE_SCENARIO");
    return !only || strstr(p->name, only);
}

/* The tap records the messages, as scenarios_run does for its own. */
int main(void)
{
    static struct CMUnitTest tests[MAX_VECTORS + 1];
    size_t n = 0;
    read_directory(SEGUE_VECTORS_DIR, false);
    read_directory(SEGUE_VECTORS_DIR "/wrong", true);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(files_that_are_wrong);
    for (size_t i = 0; i < count; i++)
        if (is_wanted(&list[i]))
            tests[n++] = (struct CMUnitTest){list[i].name, play, NULL, NULL, &list[i]};
    int failed = _cmocka_run_group_tests("vectors", tests, n, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        free(list[i].name);
        free(list[i].fails);
    }
    for (size_t i = 0; i < file_count; i++)
        vector_file_free(&files[i]);
    return failed;
}
