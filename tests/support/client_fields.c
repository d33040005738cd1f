#include "support/client_fields.h"

#include <stdio.h>

#include "engine/engine.h"
#include "runtime/runtime.h"
#include "support/bad_fields.h"
#include "support/tap.h"
#include "support/vector.h"
#include "support/world.h"

#define PLAIN "\"resultType\":\"complete\",\"content\":[]"

typedef struct row_test {
    const client_row *row;
    char *name;
} row_test;

static uint64_t warnings(client_scene *s)
{
    return sgi_runtime_engine(s->k.runtime)->warnings;
}

void scene_heard(client_scene *s, const char *line)
{
    snprintf(s->id, sizeof s->id, "%s", json_at(line, "id"));
    const char *token = json_at(line, "params._meta.progressToken");
    if (*token)
        snprintf(s->token, sizeof s->token, "%s", token);
}

char *scene_line(const client_scene *s, const char *message)
{
    char *with_id = bad_field_fill(message, "REQ", s->id);
    char *line = bad_field_fill(with_id, "TOKEN", s->token);
    free(with_id);
    return line;
}

static char letter_of_end(const record *r)
{
    switch (r->status) {
    case SEGUE_OK:
        return 'K';
    case SEGUE_E_PROTOCOL:
        return 'E';
    case SEGUE_E_REMOTE:
        return 'R';
    case SEGUE_E_TASK_LOST:
        return 'L';
    case SEGUE_E_CANCELLED:
        return 'X';
    default:
        return '!';
    }
}

static char letter_of_answer(client_scene *s)
{
    static const struct {
        const char *code;
        char letter;
    } codes[] = {{"-32600", 'R'}, {"-32601", 'M'}, {"-32602", 'P'}, {"-32603", 'I'}};
    const char *line = kit_heard(&s->k);
    if (!line)
        return '.';
    if (*json_at(line, "result"))
        return 'r';
    const char *code = json_at(line, "error.code");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(code, codes[i].code))
            return codes[i].letter;
    return '!';
}

static char letter_of_session(client_scene *s)
{
    const char *line = kit_heard(&s->k);
    if (s->k.closed)
        return 'S';
    if (s->k.opened)
        return 'O';
    return line && !strcmp(json_at(line, "method"), "\"initialize\"") ? 'F' : '.';
}

static char say(client_scene *s, const char *line)
{
    uint64_t warned = warnings(s);
    size_t told = s->r ? s->r->log_len : 0;
    int notified = s->k.notifications;
    int was_open = s->k.opened;
    kit_say(&s->k, "%s", line);
    if (!was_open || s->k.closed)
        return letter_of_session(s);
    if (s->r && s->r->completed)
        return letter_of_end(s->r);
    char letter = s->answers ? letter_of_answer(s) : '.';
    if (letter != '.')
        return letter;
    bool is_warned = warnings(s) > warned;
    if ((s->r && s->r->log_len > told) || s->k.notifications > notified)
        return is_warned ? 'B' : 'T';
    return is_warned ? 'W' : '.';
}

static void answer_calls(client_scene *s, const record *until)
{
    const char *line;
    while (!until->completed && (line = kit_heard(&s->k))) {
        const char *method = json_at(line, "method");
        if (!strcmp(method, "\"tools/list\""))
            kit_result(&s->k, line, "\"resultType\":\"complete\",\"tools\":[]");
        else if (!strcmp(method, "\"tools/call\""))
            kit_result(&s->k, line, PLAIN);
    }
}

/* Checks that another call is sent and answered, whatever other messages the client
 * sends. When the bad message was an ignored list of tools, the call waits for that list
 * too. */
static void assert_works(client_scene *s)
{
    if (s->k.closed)
        return;
    record *r = kit_call(&s->k, "probe");
    answer_calls(s, r);
    if (!r->completed) {
        kit_say(&s->k, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[]}}",
                s->id);
        answer_calls(s, r);
    }
    if (!r->completed || r->status != SEGUE_OK)
        fail_msg("the session is of no use: %s", r->log ? r->log : "nothing came");
}

/* Plays one bad value. A session that did not open must only end. */
static char play(const client_row *row, int value, int text)
{
    client_scene s = {0};
    row->begin(&s);
    char *message = scene_line(&s, row->message);
    char *line = text < 0 ? bad_field_line(message, row->path, value)
                          : bad_field_text(message, row->path, text);
    uint64_t warned = warnings(&s);
    int opened = s.k.opened;
    char letter = say(&s, line);
    if (text >= 0 && (letter != (opened ? 'W' : '.') || warnings(&s) != warned + 1))
        fail_msg("is no JSON, and was taken: %.300s", line);
    if (s.k.opened)
        assert_works(&s);
    free(line);
    free(message);
    if (s.m.host)
        model_end(&s.m);
    kit_end(&s.k);
    return letter;
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
    tap_test(t->name);
    for (int i = 0; i < BAD_FIELD_VALUES; i++)
        got[i] = play(t->row, i, -1);
    for (int i = 0; i < BAD_FIELD_TEXTS; i++)
        play(t->row, 0, i);
    compare(t, got);
}

int client_fields_run(const char *group, const client_row *rows, size_t count)
{
    row_test *list = calloc(count, sizeof *list);
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    const char *only = getenv("SEGUE_SCENARIO");
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        list[i] =
            (row_test){&rows[i], vector_text("%s: %s of %.60s, row %d", group,
                                             rows[i].path, rows[i].message + 16, (int)i)};
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
