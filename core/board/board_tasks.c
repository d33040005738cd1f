/* The list of the tasks of a board: one scan over the records of a store, without their
 * logs. The page asks for summaries of the tasks that it shows. */
#include "board/board.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thresholds.h"
#include "inspect/places.h"

/* A row of the list. */
typedef struct row {
    sgi_place place;
    char *json; /* [id, created_ms, ended, tool, by] */
} row;

/* The rows of the newest tasks that were seen. While the scan runs there are up to twice
 * as many as the list may have. */
typedef struct rows {
    sgi_inspection *inspection;
    row *all;
    size_t count, cap, most;
    uint64_t seen;
    sgi_buf text;
    bool failed;
} rows;

static void free_row(rows *r, const row *at)
{
    sgi_text_free(r->inspection->env.mem, at->place.task_id);
    sgi_text_free(r->inspection->env.mem, at->json);
}

/* Sorts the rows, removes those that are there twice, and then the oldest. */
static void settle(rows *r)
{
    size_t kept = 0;
    if (r->count)
        qsort(r->all, r->count, sizeof *r->all, sgi_place_newest_first);
    for (size_t i = 0; i < r->count; i++) {
        if (kept && sgi_place_newest_first(&r->all[kept - 1], &r->all[i]) == 0) {
            r->seen--;
            free_row(r, &r->all[i]);
        } else if (kept == r->most) {
            free_row(r, &r->all[i]);
        } else {
            r->all[kept++] = r->all[i];
        }
    }
    r->count = kept;
}

static bool make_room(rows *r)
{
    const sgi_mem *mem = r->inspection->env.mem;
    if (r->count >= 2 * r->most)
        settle(r);
    if (r->count < r->cap)
        return true;
    size_t cap = r->cap ? 2 * r->cap : 64;
    row *more = sgi_realloc(mem, r->all, r->cap * sizeof *more, cap * sizeof *more);
    if (!more)
        return false;
    r->all = more;
    r->cap = cap;
    return true;
}

static void write_name(sgi_jw *w, sgi_json name)
{
    if (sgi_json_kind_of(name) == SGI_JSON_STRING)
        sgi_jw_raw(w, name);
    else
        sgi_jw_null(w);
}

static void write_row(rows *r, const segue_store_record *record)
{
    sgi_jw w = sgi_jw_to(&r->text);
    sgi_json data = sgi_inspection_data(r->inspection, record);
    sgi_buf_truncate(&r->text, 0);
    sgi_jw_open(&w, '[');
    sgi_jw_string(&w, sgi_str_of(record->task_id));
    sgi_jw_int(&w, record->created_ms);
    sgi_jw_int(&w, record->ended != SEGUE_STORE_LIVE);
    write_name(&w, sgi_json_get(data, "tool"));
    write_name(&w, sgi_json_get(data, "by"));
    sgi_jw_close(&w, ']');
}

/* Runs under the lock of the store. */
static int32_t add_row(void *user, const segue_store_record *record)
{
    rows *r = user;
    const sgi_mem *mem = r->inspection->env.mem;
    row fresh = {.place = {.created_ms = record->created_ms}};
    if (!sgi_inspection_shows(r->inspection, record))
        return 0;
    r->seen++;
    write_row(r, record);
    if (!r->text.failed && make_room(r)) {
        fresh.place.task_id = sgi_text_dup(mem, sgi_str_of(record->task_id));
        fresh.json = sgi_text_dup(mem, sgi_buf_str(&r->text));
    }
    r->failed = !fresh.place.task_id || !fresh.json;
    if (r->failed)
        free_row(r, &fresh);
    else
        r->all[r->count++] = fresh;
    return r->failed;
}

/* FNV-1a: tells one list from another, so that an unchanged list need not be sent. */
static uint64_t tag_of(const rows *r)
{
    uint64_t tag = 14695981039346656037u;
    for (size_t i = 0; i < r->count; i++)
        for (const char *c = r->all[i].json; *c; c++)
            tag = (tag ^ (uint8_t)*c) * 1099511628211u;
    return tag;
}

static void write_rows(sgi_board_request *request, const rows *r)
{
    char tag[24], known[24] = "";
    sgi_jw w = sgi_jw_to(&request->json);
    snprintf(tag, sizeof tag, "%016" PRIx64, tag_of(r));
    sgi_board_parameter(request, "tag", known, sizeof known);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "tag", sgi_str_of(tag));
    sgi_jw_member_int(&w, "total", (int64_t)r->seen);
    if (strcmp(tag, known) != 0) {
        sgi_jw_key(&w, "tasks");
        sgi_jw_open(&w, '[');
        for (size_t i = 0; i < r->count; i++)
            sgi_jw_raw(&w, sgi_str_of(r->all[i].json));
        sgi_jw_close(&w, ']');
    }
    sgi_jw_close(&w, '}');
}

void sgi_board_list_tasks(sgi_board_request *request)
{
    sgi_inspection inspection;
    sgi_inspection_begin(&inspection, request->store, NULL, NULL);
    inspection.only = sgi_board_principal(request);
    const sgi_mem *mem = inspection.env.mem;
    rows r = {.inspection = &inspection, .most = SGI_THRESHOLD(board_tasks)};
    sgi_buf_init(&r.text, mem);
    segue_status status = sgi_store_scan(request->store, add_row, &r);
    if (status == SEGUE_E_STORE_CORRUPT)
        status = SEGUE_OK; /* unreadable records are left out */
    if (status == SEGUE_OK && (r.failed || inspection.failed))
        status = SEGUE_E_NOMEM;
    settle(&r);
    if (status == SEGUE_OK)
        write_rows(request, &r);
    else
        sgi_board_fail(request, status);
    for (size_t i = 0; i < r.count; i++)
        free_row(&r, &r.all[i]);
    sgi_free(mem, r.all, r.cap * sizeof *r.all);
    sgi_buf_free(&r.text);
    sgi_inspection_end(&inspection);
}
