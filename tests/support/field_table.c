#include "support/field_table.h"

#include <stdio.h>

#include "support/bad_fields.h"
#include "support/tap.h"
#include "support/vector.h"

#define DAY_MS (24 * 3600 * INT64_C(1000))

typedef struct row_test {
    const field_stage *stage;
    const field_row *row;
    char *name;
} row_test;

static char letter_of(const char *line)
{
    static const struct {
        const char *code;
        char letter;
    } codes[] = {{"-32700", 'J'}, {"-32600", 'R'}, {"-32601", 'M'}, {"-32602", 'P'},
                 {"-32603", 'I'}, {"-32002", 'N'}, {"-32021", 'C'}, {"-32022", 'V'}};
    if (!line)
        return '.';
    if (*json_at(line, "result"))
        return !strcmp(json_at(line, "result.isError"), "true") ? 'F' : 'K';
    const char *code = json_at(line, "error.code");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(code, codes[i].code))
            return codes[i].letter;
    return *json_at(line, "method") ? 'A' : '!';
}

/* Sends one line, reads all answers and returns the letter of the outcome. The id can be
 * used again afterwards. */
static char say(wire *c, const char *line)
{
    char letter = '.';
    const char *answer;
    wire_send(c, line);
    while ((answer = wire_next(c))) {
        char next = letter_of(answer);
        if (letter == '.' || letter == 'A')
            letter = next;
    }
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    while (wire_next(c))
        ;
    return letter;
}

/* Makes the correct message of a row. */
static char *compose(const field_stage *stage, const field_row *row)
{
    bool is_note = row->method && !strncmp(row->method, "notifications/", 14);
    const char *meta = stage->meta && !is_note ? stage->meta : "";
    if (!row->method)
        return strdup(row->members);
    return vector_text("{\"jsonrpc\":\"2.0\",%s\"method\":\"%s\",\"params\":{%s%s%s}}",
                       is_note ? "" : "\"id\":1,", row->method, row->members,
                       *row->members && *meta ? "," : "", meta);
}

/* Plays one value. text -1 = the value goes into the field; otherwise the message is one
 * of the texts that are not JSON. */
static char play_value(world *w, wire *c, const row_test *t, const char *message,
                       int value, int text)
{
    char *id = t->stage->make_question ? t->stage->make_question(w, c) : NULL;
    char *whole = id ? bad_field_fill(message, "REQ", id) : strdup(message);
    char *line = text < 0 ? bad_field_line(whole, t->row->path, value)
                          : bad_field_text(whole, t->row->path, text);
    char letter = say(c, line);
    if (text >= 0 && letter != 'J')
        fail_msg("is no JSON, and was taken: %.300s", line);
    free(line);
    free(whole);
    free(id);
    t->stage->still_works(c);
    return letter;
}

static void play_row(world *w, const row_test *t, char *got)
{
    wire *c = t->stage->begin(w);
    char *right = compose(t->stage, t->row);
    char *task = strstr(right, "TASK") ? t->stage->make_task(c) : NULL;
    char *message = task ? bad_field_fill(right, "TASK", task) : strdup(right);
    for (int i = 0; i < BAD_FIELD_VALUES; i++)
        got[i] = play_value(w, c, t, message, i, -1);
    for (int i = 0; i < BAD_FIELD_TEXTS; i++)
        play_value(w, c, t, message, 0, i);
    free(message);
    free(task);
    free(right);
    wire_drop(c);
    world_jump(w, 2 * DAY_MS); /* after this time, state that the server may keep for a
                                * while has expired */
}

static void compare(const row_test *t, const char *got)
{
    if (getenv("SEGUE_FIELDS"))
        print_message("%s  %s\n", got, t->name);
    for (int i = 0; i < BAD_FIELD_VALUES; i++)
        if (got[i] != t->row->expected[i])
            fail_msg("%s = %s: %c, expected %c (all: %s, expected %s)", t->row->path,
                     bad_field_name(i), got[i], t->row->expected[i], got,
                     t->row->expected);
}

static void run_row(void **state)
{
    const row_test *t = *state;
    char got[BAD_FIELD_VALUES + 1] = "";
    world w = {.tune = t->stage->tune};
    size_t live[3];
    tap_test(t->name);
    world_begin(&w);
    for (int i = 0; i < 3; i++) {
        play_row(&w, t, got);
        live[i] = w.mem.live;
    }
    assert_int_equal(w.log_count, 0);
    if (live[2] > live[1])
        fail_msg("%d bytes are left behind", (int)(live[2] - live[1]));
    world_end(&w);
    compare(t, got);
}

int fields_run(const char *group, const field_stage *stage, const field_row *rows,
               size_t count)
{
    row_test *list = calloc(count, sizeof *list);
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    const char *only = getenv("SEGUE_SCENARIO");
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        list[i] = (row_test){stage, &rows[i], NULL};
        list[i].name =
            vector_text("%s: %s of %.60s, row %d", group, rows[i].path,
                        rows[i].method ? rows[i].method : rows[i].members, (int)i);
        if (!only || strstr(list[i].name, only))
            tests[n++] = (struct CMUnitTest){list[i].name, run_row, NULL, NULL, &list[i]};
    }
    int failed = _cmocka_run_group_tests(group, tests, n, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        free(list[i].name);
    free(list);
    free(tests);
    return failed;
}

/* ---- common to all revisions ---- */

#define CALL "tools/call", "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"}"
#define ABOUT "\"taskId\":\"TASK\""
#define CURSOR "\"cursor\":\"c\""
#define PROMPT "prompts/get", "\"name\":\"arguments\",\"arguments\":{\"arg1\":\"a\"}"
#define COMPLETE                                                                         \
    "completion/complete",                                                               \
        "\"ref\":{\"type\":\"ref/"                                                       \
        "prompt\",\"name\":\"arguments\"},\"argument\":{\"name\":"                       \
        "\"arg1\",\"value\":\"w\"},\"context\":{\"arguments\":{\"arg2\":\"b\"}}"

static const field_row common[] = {
    {CALL, "jsonrpc", "RRRRRRRRRRRRRR"},
    {CALL, "id", ".RRKKRRRKKKKRR"},
    {CALL, "method", "RRRRRRRRMMMMRR"},
    {CALL, "params", "PRRRRRRRRRRRRP"},
    {CALL, "params>name", "PPPPPPPPPPPPPP"},
    {CALL, "params>arguments", "KKPPPPPPPPPPPK"},
    {CALL, "params>arguments>name", "KKKKKKKKKKKKKK"},
    {"tasks/get", ABOUT, "params>taskId", "PPPPPPPPPPPPPP"},
    {"tasks/cancel", ABOUT, "params>taskId", "PPPPPPPPPPPPPP"},
    {"tools/list", CURSOR, "params>cursor", "KPPPPPPPPPPPPP"},
    {"resources/list", CURSOR, "params>cursor", "KPPPPPPPPPPPPP"},
    {"resources/templates/list", CURSOR, "params>cursor", "KPPPPPPPPPPPPP"},
    {"prompts/list", CURSOR, "params>cursor", "KPPPPPPPPPPPPP"},
    {PROMPT, "params>name", "PPPPPPPPPPPPPP"},
    {PROMPT, "params>arguments", "PPPPPPPPPPPPPP"},
    {PROMPT, "params>arguments>arg1", "PPPPPPPPKKKKPP"},
    {COMPLETE, "params>ref", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>ref>type", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>ref>name", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>argument", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>argument>name", "PPPPPPPPKKKKPP"},
    {COMPLETE, "params>argument>value", "PPPPPPPPKKKKPP"},
    {COMPLETE, "params>context", "KPPPPPPPPPPPPK"},
    {COMPLETE, "params>context>arguments", "KPPPPPPPPPPPPK"},
};

int fields_run_common(const char *group, const field_stage *stage)
{
    return fields_run(group, stage, common, sizeof common / sizeof *common);
}
