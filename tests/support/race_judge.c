/* Checks the rules that must hold whichever event comes first: core/docs/requirements.md
 * 5.4.1 and R-C-1 to R-C-3.
 *
 * The rows in the store are the truth. The state of a task follows from the rows, and
 * this file computes the state with its own code, not the engine's. Every message must
 * follow from the rows (R-C-2). The rows have at most one end, and no row after the end.
 * Once a client has received the end, no client receives another end (R-C-3, R-2557-37).
 * These rules hold in each of the three dialects. */
#include "support/race_world.h"

#include "engine/dialect/rows.h"
#include "engine/dialect/tasks_2025/tasks_2025.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct folded {
    int open; /* number of open questions */
    uint64_t segments;
    const fake_row *final;
} folded;

/* Folds the rows up to this entry. */
static folded fold_rows(const race_world *w, uint64_t upto)
{
    const fake_row *row;
    folded f = {0};
    TAILQ_FOREACH(row, &w->server.rows, link) {
        if (row->entry.seq > upto)
            break;
        if (f.final)
            race_fail(w, "entry %d is behind the end", (int)row->entry.seq);
        f.open += row->entry.kind == SGI_ENTRY_INPUT_ASK;
        f.open -= row->entry.kind == SGI_ENTRY_INPUT_ANSWER;
        if (sgi_entry_is_final(row->entry.kind))
            f.final = row;
        if (row->entry.kind != SGI_ENTRY_SEGMENT)
            continue;
        char text[48];
        snprintf(text, sizeof text, "{\"type\":\"text\",\"text\":\"s%d\"}",
                 (int)++f.segments);
        if (row->entry.segment != f.segments || row->entry.data_len != strlen(text) ||
            memcmp(row->entry.data, text, strlen(text)) != 0)
            race_fail(w, "segment %d is number %d: %.*s", (int)f.segments,
                      (int)row->entry.segment, (int)row->entry.data_len, row->entry.data);
    }
    return f;
}

const fake_row *race_final(const race_world *w)
{
    return fold_rows(w, UINT64_MAX).final;
}

static bool is_error_result(const fake_row *row)
{
    sgi_json payload = {row->entry.data, row->entry.data_len};
    return sgi_json_get(payload, "isError").n > 0;
}

/* Returns the status word of the dialect (5.4.1, rows 11 to 18). */
static const char *word_of(race_dialect dialect, const folded *f)
{
    if (!f->final)
        return f->open ? "input_required" : "working";
    switch (f->final->entry.kind) {
    case SGI_ENTRY_RESULT:
        return dialect == RACE_L && is_error_result(f->final) ? "failed" : "completed";
    case SGI_ENTRY_CANCELLED:
        return "cancelled";
    default:
        return "failed";
    }
}

static bool is_terminal(sgi_str word)
{
    return sgi_str_eq(word, SGI_STR("completed")) ||
           sgi_str_eq(word, SGI_STR("failed")) || sgi_str_eq(word, SGI_STR("cancelled"));
}

/* ---- the state ---- */

/* Checks the task in each dialect, as it would be shown now. */
static void judge_renderings(race_world *w, const sgi_op *op, const folded *f)
{
    for (int dialect = RACE_X; dialect <= RACE_D; dialect++) {
        sgi_buf out;
        sgi_str word = {0};
        sgi_buf_init(&out, &sgi_mem_libc);
        sgi_jw jw = sgi_jw_to(&out);
        sgi_jw_open(&jw, '{');
        if (dialect == RACE_X)
            sgi_srv_tasks_ext.write(&jw, op, NULL);
        else if (dialect == RACE_L)
            sgi_tasks_2025_write_task(&jw, op, NULL);
        else
            sgi_srv_tasks_draft.write(&jw, op, NULL);
        sgi_jw_close(&jw, '}');
        sgi_json status = sgi_json_get(sgi_buf_str(&out), "status");
        const char *expected = word_of((race_dialect)dialect, f);
        if (!sgi_json_plain_string(status, &word) ||
            !sgi_str_eq(word, sgi_str_of(expected)))
            race_fail(w, "dialect %d says %.*s, not %s", dialect, (int)word.n, word.p,
                      expected);
        sgi_buf_free(&out);
    }
}

void race_judge_state(race_world *w)
{
    const sgi_op *op = race_op(w);
    folded all = fold_rows(w, UINT64_MAX);
    if (w->broken)
        return; /* the end of the task is in memory alone */
    if (w->seen_final && (!all.final || all.final->entry.kind != w->seen_final))
        race_fail(w, "the end that was seen is gone");
    if (!op || !sgi_op_is_created(op))
        return;
    folded shown = fold_rows(w, op->durable);

    race_check(w, op->durable <= race_record(w)->last_seq);
    judge_renderings(w, op, &shown);
}

/* ---- what the server says ---- */

static void judge_word(race_world *w, race_wire *wire, sgi_str word)
{
    folded all = fold_rows(w, UINT64_MAX);
    char text[20];
    snprintf(text, sizeof text, "%.*s", (int)word.n, word.p);
    if (is_terminal(sgi_str_of(wire->status)) && strcmp(wire->status, text) != 0)
        race_fail(w, "%s after %s", text, wire->status);
    memcpy(wire->status, text, sizeof text);
    if (!is_terminal(word)) {
        if (w->seen_final)
            race_fail(w, "%s after an end that somebody has seen", text);
        return;
    }
    if (w->broken)
        return;
    if (!all.final)
        race_fail(w, "%s is told and is not stored", text);
    if (strcmp(word_of(w->row->dialect, &all), text) != 0)
        race_fail(w, "%s is told, and %s is stored", text,
                  word_of(w->row->dialect, &all));
    w->seen_final = all.final->entry.kind;
}

/* In 2026-07-28 each status has the members that belong to it (R-2557-13). */
static void judge_members(race_world *w, sgi_json task, sgi_str word)
{
    static const char *const members[][2] = {{"completed", "result"},
                                             {"failed", "error"},
                                             {"input_required", "inputRequests"}};
    for (int i = 0; i < 3; i++) {
        bool wanted = sgi_str_eq(word, sgi_str_of(members[i][0]));
        sgi_json found = sgi_json_get(task, members[i][1]);
        if (wanted != (found.n > 2))
            race_fail(w, "%.*s, and %s: %.*s", (int)word.n, word.p, members[i][1],
                      (int)task.n, task.p);
    }
}

/* created: the message must show how the task began, also when it answers a repeated
 * request (R-2557-9). */
static void judge_task(race_world *w, race_wire *wire, sgi_json task, bool created)
{
    sgi_str word, id;
    if (!sgi_json_plain_string(sgi_json_get(task, "status"), &word) ||
        !sgi_json_plain_string(sgi_json_get(task, "taskId"), &id))
        return;
    race_check(w, race_record(w) != NULL); /* the record exists before any client knows of
                                            * the task */
    race_check(w, sgi_str_eq(id, sgi_str_of(race_record(w)->record.task_id)));
    if (created) {
        race_check(w, sgi_str_eq(word, SGI_STR("working")));
        return;
    }
    judge_word(w, wire, word);
    if (w->row->dialect == RACE_X)
        judge_members(w, task, word);
}

static void judge_number(race_world *w, sgi_json number)
{
    int64_t n = 0;
    if (!sgi_json_read_int(number, &n))
        return;
    folded all = fold_rows(w, UINT64_MAX);
    bool says_why = all.final && (uint64_t)n == all.segments + 1;
    if (n < 1 || ((uint64_t)n > all.segments && !says_why && !w->broken))
        race_fail(w, "segment %d is told and is not stored", (int)n);
}

static void judge_partial(race_world *w, sgi_json result)
{
    sgi_json list = sgi_json_get(result, "partial-content"), item;
    size_t at = 0;
    while (list.n && sgi_json_next_item(list, &at, &item))
        judge_number(w, sgi_json_get(item, "seqNr"));
    bool ends = sgi_str_eq(sgi_json_get(result, "isComplete"), SGI_STR("true"));
    if (ends && !w->broken && !race_final(w))
        race_fail(w, "isComplete is told and no end is stored");
}

void race_judge_line(race_world *w, race_wire *wire, sgi_str line)
{
    sgi_json result = sgi_json_get(line, "result");
    sgi_json params = sgi_json_get(line, "params");
    sgi_json task = sgi_json_get(result, "task");
    bool created =
        w->row->dialect == RACE_X &&
        sgi_json_string_is(sgi_json_get(result, "resultType"), SGI_STR("task"));
    if (task.n)
        judge_task(w, wire, task, true);
    else if (result.n)
        judge_task(w, wire, result, created);
    else if (params.n)
        judge_task(w, wire, params, false);
    if (result.n)
        judge_partial(w, result);
    judge_number(w, sgi_json_get(sgi_json_get(params, "payload"), "segment"));
}

void race_judge_segment(race_world *w, uint64_t number, sgi_str block)
{
    folded all = fold_rows(w, UINT64_MAX);
    char text[16];
    race_check(w, number == w->segments + 1);
    w->segments = number;
    snprintf(text, sizeof text, "\"s%d\"", (int)number);
    char copy[200];
    snprintf(copy, sizeof copy, "%.*s", (int)block.n, block.p);
    bool says_why = all.final && all.final->entry.kind != SGI_ENTRY_RESULT &&
                    number == all.segments + 1; /* R-1905-44: the error comes after all
                                                 * segments */
    if (!strstr(copy, text) && !says_why && !w->broken)
        race_fail(w, "segment %d is %s", (int)number, copy);
    race_check(w, number <= all.segments || says_why || w->broken);
}

/* Checks the state when nothing is due any more. Then every answer that is durable has
 * reached its handler. */
void race_judge_quiet(race_world *w)
{
    const sgi_op *op = race_op(w);
    const sgi_op_question *input;
    if (!op || !w->handler.call)
        return;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (input->bound && input->answered && input->answered <= sgi_op_horizon(op))
            race_check(w, input->delivered);
}

/* ---- the end ---- */

static void judge_status(race_world *w)
{
    folded all = fold_rows(w, UINT64_MAX);
    bool succeeded = all.final && all.final->entry.kind == SGI_ENTRY_RESULT;
    bool purged = w->client.clock_ms >= RACE_TTL_MS;
    if (w->broken)
        return;
    if (w->status == SEGUE_OK) { /* 2025-11-25 reports other ends as such results, too */
        race_check(w, succeeded || (w->row->dialect == RACE_L && w->is_error));
        race_check(w, !succeeded || w->segments == all.segments);
    } else if (succeeded && !w->cancelled && !purged) {
        race_fail(w, "the result was stored, and its request ended with %d",
                  (int)w->status);
    }
    if (w->status == SEGUE_E_CANCELLED)
        race_check(w, w->cancelled || all.final->entry.kind == SGI_ENTRY_CANCELLED);
}

/* Checks the end of the run, and that a new client receives the same end. */
void race_judge_end(race_world *w)
{
    race_check(w, w->completed == 1);
    judge_status(w);
    if (!race_record(w) || !w->wires[1].conn)
        return;
    race_check(w, w->broken || race_final(w) != NULL);
}
