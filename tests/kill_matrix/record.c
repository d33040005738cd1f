/* The first content seen of a segment must stay the same: in the same view, in another
 * one, in the result. Each text contains its own number, and which run of the tool made
 * it, so that wrong numbers of the protocol are found as well.
 *
 *   lost        a view or a result goes on behind the segment without it
 *   duplicated  a view or a result has the segment again
 *   altered     its bytes differ from those that were seen; or they come from a run that
 *   a
 *               later run had replaced: the writes of a paused owner */
#include "record.h"

#include <inttypes.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_RUN ((uint64_t)0)

bool record_begin(record *r, size_t count, findings *found)
{
    *r = (record){
        .texts = calloc(count, sizeof *r->texts), .count = count, .found = found};
    return r->texts != NULL;
}

void record_free(record *r)
{
    for (size_t i = 0; r->texts && i < r->count; i++)
        free(r->texts[i]);
    free(r->texts);
    r->texts = NULL;
}

static uint64_t number_in(const char *text)
{
    uint64_t number = 0;
    return sscanf(text, "%" SCNu64 " run ", &number) == 1 ? number : 0;
}

static uint64_t run_in(const char *text)
{
    uint64_t run = NO_RUN;
    return sscanf(text, "%*u run %" SCNx64, &run) == 1 ? run : NO_RUN;
}

/* Compares the text with the segment of this number. */
static bool compare(record *r, uint64_t number, const char *text, size_t len)
{
    if (number < 1 || number > r->count || number_in(text) != number ||
        strlen(text) != len) {
        r->found->altered++;
        return true;
    }
    char **seen = &r->texts[number - 1];
    if (!*seen) {
        *seen = strdup(text);
        r->found->segments++;
        return *seen != NULL;
    }
    if (strcmp(*seen, text) != 0) {
        fprintf(stderr, "altered, segment %" PRIu64 ":\n  %s\n  %s\n", number, *seen,
                text);
        r->found->altered++;
    }
    return true;
}

bool record_see(record *r, view *v, uint64_t number, const char *text, size_t len)
{
    if (number <= v->last)
        r->found->duplicated++;
    else
        r->found->lost += number - v->last - 1;
    if (number != v->last + 1)
        fprintf(stderr, "segment %" PRIu64 " behind %" PRIu64 "\n", number, v->last);
    if (number > v->last)
        v->last = number;
    return compare(r, number, text, len);
}

void record_give_up(record *r, const view *v)
{
    if (v->last < r->count)
        r->found->lost += r->count - v->last;
}

static void judge_block(record *r, bool *there, json_t *block)
{
    json_t *member = json_object_get(block, "text");
    const char *text = json_string_value(member);
    uint64_t number = text ? number_in(text) : 0;
    if (number < 1 || number > r->count) {
        r->found->altered++;
        return;
    }
    if (there[number - 1]) {
        fprintf(stderr, "twice in the result: %s\n", text);
        r->found->duplicated++;
    }
    there[number - 1] = true;
    compare(r, number, text, json_string_length(member));
}

/* Runs follow each other. A run that comes back after another one was not stopped. */
static void judge_runs(record *r)
{
    uint64_t before[64], now = NO_RUN;
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        uint64_t run = r->texts[i] ? run_in(r->texts[i]) : NO_RUN;
        if (run == NO_RUN || run == now)
            continue;
        for (size_t j = 0; j < count; j++)
            r->found->altered += before[j] == run;
        if (now != NO_RUN && count < sizeof before / sizeof *before)
            before[count++] = now;
        now = run;
    }
}

void record_judge(record *r, view *v, const char *json, size_t len)
{
    json_t *result = json_loadb(json, len, 0, NULL), *block;
    json_t *content = json_object_get(result, "content");
    bool *there = calloc(r->count, sizeof *there);
    size_t i;
    if (!there || !json_is_array(content)) {
        record_give_up(r, &(view){0});
    } else {
        record_give_up(r, v); /* the view has ended */
        json_array_foreach(content, i, block) judge_block(r, there, block);
        for (i = 0; i < r->count; i++)
            r->found->lost += !there[i];
        judge_runs(r);
    }
    free(there);
    json_decref(result);
}

void record_digest(const record *r, char hex[65])
{
    unsigned char bytes[EVP_MAX_MD_SIZE] = {0};
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    EVP_DigestInit_ex(digest, EVP_sha256(), NULL);
    for (size_t i = 0; i < r->count; i++)
        if (r->texts[i])
            EVP_DigestUpdate(digest, r->texts[i], strlen(r->texts[i]) + 1);
    EVP_DigestFinal_ex(digest, bytes, NULL);
    EVP_MD_CTX_free(digest);
    for (size_t i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- self test ---- */

static bool found_is(const char *name, const findings *f, findings wanted)
{
    bool same = f->segments == wanted.segments && f->lost == wanted.lost &&
                f->duplicated == wanted.duplicated && f->altered == wanted.altered;
    if (!same)
        printf("%s: %" PRIu64 " segments, %" PRIu64 " lost, %" PRIu64
               " duplicated, %" PRIu64 " altered\n",
               name, f->segments, f->lost, f->duplicated, f->altered);
    return same;
}

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define RESULT(blocks) "{\"content\":[" blocks "]}"

static bool try_result(const char *json, findings wanted)
{
    static const char *const texts[] = {"1 run a: x", "2 run a: x", "3 run b: x"};
    findings found = {0};
    record r;
    view v = {0};
    if (!record_begin(&r, 3, &found))
        return false;
    for (uint64_t i = 1; i <= 3; i++)
        record_see(&r, &v, i, texts[i - 1], strlen(texts[i - 1]));
    record_judge(&r, &v, json, strlen(json));
    record_free(&r);
    return found_is(json, &found, wanted);
}

static bool try_views(void)
{
    findings found = {0};
    record r;
    view one = {0}, other = {0};
    if (!record_begin(&r, 3, &found))
        return false;
    record_see(&r, &one, 1, "1 run a: x", 10);
    record_see(&r, &one, 1, "1 run a: x", 10);   /* a repeat of segment 1 */
    record_see(&r, &one, 3, "3 run a: x", 10);   /* segment 2 is missing */
    record_see(&r, &other, 1, "1 run a: y", 10); /* segment 1 with other bytes */
    /* segment 2 with the text of segment 3 */
    record_see(&r, &other, 2, "3 run a: x", 10);
    record_free(&r);
    return found_is("views", &found,
                    (findings){.segments = 2, .lost = 1, .duplicated = 1, .altered = 2});
}

bool record_self_test(void)
{
    static const char good[] =
        RESULT(BLOCK("1 run a: x") "," BLOCK("2 run a: x") "," BLOCK("3 run b: x"));
    static const char lost[] = RESULT(BLOCK("1 run a: x") "," BLOCK("3 run b: x"));
    static const char twice[] = RESULT(BLOCK("1 run a: x") "," BLOCK(
        "2 run a: x") "," BLOCK("2 run a: x") "," BLOCK("3 run b: x"));
    static const char altered[] =
        RESULT(BLOCK("1 run a: x") "," BLOCK("2 run a: y") "," BLOCK("3 run b: x"));
    bool ok = try_result(good, (findings){.segments = 3});
    ok = try_result(lost, (findings){.segments = 3, .lost = 1}) && ok;
    ok = try_result(twice, (findings){.segments = 3, .duplicated = 1}) && ok;
    ok = try_result(altered, (findings){.segments = 3, .altered = 1}) && ok;
    ok = try_result("{}", (findings){.segments = 3, .lost = 3}) && ok;
    return try_views() && ok;
}
