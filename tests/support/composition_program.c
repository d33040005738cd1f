/* The program of a handler is drawn before the handler runs, so the result is known in
 * advance. The expected result follows from the program alone, not from data that the
 * library stored. All blocks of a program differ, because each begins with its number. */
#include "support/composition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json_read.h"

const char *const program_fields[COMPOSITION_FIELDS] = {"structuredContent", "note",
                                                        "count", "_meta"};

/* ---- drawing ---- */

static size_t draw_size(const program *p, dice *d)
{
    if (dice_once_in(d, 12))
        return dice_roll(d, p->largest);
    return dice_roll(d, 60);
}

/* Draws text that is hard to transport. */
static char *draw_text(const program *p, dice *d, int number, size_t *len)
{
    static const char *const bits[] = {"a",
                                       "\"",
                                       "\\",
                                       "\n",
                                       "\r\n",
                                       "\t",
                                       "\x01",
                                       "{}",
                                       "],",
                                       "\xc3\xa9",
                                       "data: ",
                                       "\xe2\x80\xa8",
                                       "\xf0\x9f\x8c\x8d",
                                       "\x7f"};
    size_t size = draw_size(p, d);
    char *text = malloc(size + 32);
    size_t n = (size_t)sprintf(text, "%d:", number);
    while (n < size) {
        const char *bit = bits[dice_roll(d, sizeof bits / sizeof *bits)];
        memcpy(text + n, bit, strlen(bit));
        n += strlen(bit);
    }
    *len = n;
    return text;
}

static char *draw_json(const program *p, dice *d, int number, size_t *len)
{
    static const char *const forms[] = {
        "{\"type\":\"text\",\"text\":\"n%d %s\",\"annotations\":{\"priority\":0.50}}",
        "{\"type\":\"resource_link\",\"uri\":\"x:%d\",\"name\":\"r\\u00e9\\/%s\"}",
        "{\"text\":\"%d %s\",\"_meta\":{\"x/n\":1.0e2,\"a\":[]},\"type\":\"text\"}",
        "{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"image/png; n=%d%s\"}"};
    size_t size = draw_size(p, d);
    char *text = malloc(size + 160);
    char *filler = malloc(size + 1);
    memset(filler, 'z', size);
    filler[size] = 0;
    *len = (size_t)sprintf(text, forms[dice_roll(d, 4)], number, filler);
    free(filler);
    return text;
}

static void add_blocks(program *p, dice *d, program_step *s)
{
    static const int counts[] = {1, 1, 1, 1, 2, 3, 5};
    s->first = p->block_count;
    s->count = counts[dice_roll(d, 7)];
    for (int i = 0; i < s->count; i++) {
        program_block *b = &p->blocks[p->block_count++];
        b->is_text = s->count == 1 && !dice_once_in(d, 3);
        b->bytes = b->is_text ? draw_text(p, d, p->block_count, &b->len)
                              : draw_json(p, d, p->block_count, &b->len);
    }
}

static void draw_field(program_step *s, dice *d)
{
    int value = (int)dice_roll(d, 1000);
    s->number = (int)dice_roll(d, COMPOSITION_FIELDS);
    if (s->number == 0)
        snprintf(s->json, sizeof s->json, "{\"v\":%d,\"s\":\"\\u00e9\"}", value);
    else if (s->number == 3)
        snprintf(s->json, sizeof s->json, "{\"x/k%d\":%d}", value % 3, value);
    else
        snprintf(s->json, sizeof s->json, dice_once_in(d, 2) ? "%d" : "\"%d\"", value);
}

static void draw_step(program *p, dice *d, uint32_t flags, program_step *s)
{
    static const step_kind kinds[] = {
        STEP_SEND, STEP_SEND,       STEP_SEND,     STEP_SEND,    STEP_SEND,
        STEP_SEND, STEP_FIELD,      STEP_PROGRESS, STEP_LOG,     STEP_STATUS,
        STEP_ASK,  STEP_CHECKPOINT, STEP_PAUSE,    STEP_REPLACE, STEP_PAUSE};
    s->kind = kinds[dice_roll(d, sizeof kinds / sizeof *kinds)];
    if (s->kind == STEP_ASK && (!(flags & ROW_ASKS) || !dice_once_in(d, 2)))
        s->kind = STEP_SEND;
    if (flags & ROW_ASKS_MUCH && dice_once_in(d, 3))
        s->kind = STEP_ASK;
    if (s->kind == STEP_ASK && ++p->asks > COMPOSITION_ASKS)
        s->kind = STEP_SEND;
    if (s->kind == STEP_REPLACE && !dice_once_in(d, 3))
        s->kind = STEP_SEND;
    if (s->kind == STEP_PAUSE && dice_once_in(d, 12))
        s->kind = STEP_DEFER;
    s->number = p->count;
    if (s->kind == STEP_SEND)
        add_blocks(p, d, s);
    else if (s->kind == STEP_FIELD)
        draw_field(s, d);
    else if (s->kind == STEP_LOG)
        snprintf(s->json, sizeof s->json, "{\"step\":%d}", p->count);
    else if (s->kind == STEP_PAUSE)
        s->ms = 1 + dice_roll(d, dice_once_in(d, 8) ? 5000 : 60);
}

static void draw_end(program *p, dice *d, program_step *s)
{
    uint32_t what = dice_roll(d, 16);
    s->kind = what == 0 ? STEP_ABANDON : what < 3 ? STEP_FAIL : STEP_COMPLETE;
    s->number = p->count;
    if (s->kind != STEP_COMPLETE)
        return;
    s->is_error = dice_once_in(d, 6);
    if (dice_once_in(d, 2))
        add_blocks(p, d, s);
    if (dice_once_in(d, 3))
        snprintf(s->json, sizeof s->json, "{\"end\":%d}", (int)dice_roll(d, 1000));
}

void program_make(program *p, dice *d, uint32_t flags, uint32_t largest)
{
    static const uint32_t lengths[] = {1, 3, 8, COMPOSITION_STEPS - 1};
    int steps = (int)dice_roll(d, lengths[dice_roll(d, 4)] + 1);
    memset(p, 0, sizeof *p);
    p->largest = largest;
    for (; p->count < steps && p->block_count < COMPOSITION_BLOCKS - 12; p->count++)
        draw_step(p, d, flags, &p->steps[p->count]);
    draw_end(p, d, &p->steps[p->count]);
    p->count++;
}

void program_free(program *p)
{
    for (int i = 0; i < p->block_count; i++)
        free(p->blocks[i].bytes);
}

/* ---- places ---- */

program_place program_after(const program *p, uint64_t segments)
{
    for (int i = 0; segments && i < p->count; i++) {
        const program_step *s = &p->steps[i];
        int behind = (int)segments - s->first;
        if (!s->count || behind > s->count)
            continue;
        if (behind < s->count || s->kind == STEP_COMPLETE)
            return (program_place){i, behind};
        return (program_place){i + 1, 0};
    }
    return (program_place){0, 0};
}

uint64_t program_voided(const program *p, uint64_t number)
{
    uint64_t made = 0, voided = 0;
    for (int i = 0; i < p->count; i++) {
        if (made >= number)
            break;
        if (p->steps[i].kind == STEP_REPLACE)
            voided = made;
        made += (uint64_t)p->steps[i].count;
    }
    return voided;
}

const program_step *program_end(const program *p)
{
    return &p->steps[p->count - 1];
}

/* ---- the judge ---- */

static bool is_block(const program_block *b, sgi_json json)
{
    if (!b->is_text)
        return json.n == b->len && !memcmp(json.p, b->bytes, b->len);
    return sgi_json_string_is(sgi_json_get(json, "type"), SGI_STR("text")) &&
           sgi_json_string_is(sgi_json_get(json, "text"), (sgi_str){b->bytes, b->len});
}

int program_find(const program *p, const char *json, size_t len)
{
    for (int i = 0; i < p->block_count; i++)
        if (is_block(&p->blocks[i], (sgi_json){json, len}))
            return i;
    return -1;
}

/* Returns the text of the field at the end of the program; "" = the field is missing. For
 * _meta the function returns the text of member k. */
static const char *field_of(const program *p, int field, int k)
{
    char member[16];
    const char *value = "";
    snprintf(member, sizeof member, "{\"x/k%d\":", k);
    for (int i = 0; i < p->count; i++) {
        const program_step *s = &p->steps[i];
        if (s->kind == STEP_REPLACE)
            value = "";
        else if (s->kind == STEP_COMPLETE && field == 0 && *s->json)
            value = s->json;
        else if (s->kind == STEP_FIELD && s->number == field &&
                 (field != 3 || !strncmp(s->json, member, strlen(member))))
            value = s->json;
    }
    return value;
}

static bool judge_fields(const program *p, sgi_json result, char *why, size_t size)
{
    for (int f = 0; f < COMPOSITION_FIELDS + 2; f++) {
        int field = f < 3 ? f : 3;
        const char *expected = field_of(p, field, f - 3);
        sgi_json value = sgi_json_get(result, program_fields[field]);
        char name[8] = "";
        if (field == 3) {
            snprintf(name, sizeof name, "x/k%d", f - 3);
            value = value.n ? sgi_json_get(value, name) : value;
        }
        sgi_json wanted = {expected, strlen(expected)};
        if (field == 3 && wanted.n)
            wanted = sgi_json_get(wanted, name);
        if (!sgi_str_eq(wanted, value)) {
            snprintf(why, size, "%s %s is '%.*s', not '%.*s'", program_fields[field],
                     name, (int)value.n, value.p ? value.p : "", (int)wanted.n, wanted.p);
            return false;
        }
    }
    return true;
}

static bool judge_content(const program *p, sgi_json result, char *why, size_t size)
{
    sgi_json content = sgi_json_get(result, "content");
    int i = (int)program_voided(p, (uint64_t)p->block_count + 1);
    sgi_json item;
    if (sgi_json_kind_of(content) != SGI_JSON_ARRAY) {
        snprintf(why, size, "no content");
        return false;
    }
    for (size_t at = 0; sgi_json_next_item(content, &at, &item); i++)
        if (i >= p->block_count || !is_block(&p->blocks[i], item)) {
            snprintf(why, size, "block %d is '%.80s'", i, item.p);
            return false;
        }
    if (i != p->block_count) {
        snprintf(why, size, "content ends before block %d", i);
        return false;
    }
    return true;
}

bool program_judge(const program *p, const char *result, size_t len, bool discard,
                   char *why, size_t size)
{
    sgi_json json = {result, len};
    bool is_error = sgi_json_kind_of(sgi_json_get(json, "isError")) == SGI_JSON_TRUE;
    if (is_error != (program_end(p)->is_error != 0)) {
        snprintf(why, size, "isError is %d", is_error);
        return false;
    }
    return judge_fields(p, json, why, size) &&
           (discard || judge_content(p, json, why, size));
}
