/* A client's answers to a server that asks for a task (2025-11-25 client/sampling,
 * hosted by the client), with every field wrong in every way (bad_fields.h). The tool
 * gets an error, an invalid answer is asked for again (R-2557-27), or the field does
 * not matter. */
#include "support/field_table.h"

#include "support/asked_wire.h"

#define ANSWER(members) "{\"jsonrpc\":\"2.0\",\"id\":REQ,\"result\":{" members "}}"
#define MADE ANSWER(CREATED)
#define GOT(status) ANSWER(FACTS(status))
#define WHOLE ANSWER("\"content\":" TEXT("Hi") "," ENDS "," META)
#define PIECE ANSWER(PART(NUMBERED(1, "a")))
#define END ANSWER(LAST(NUMBERED(1, "a")))
#define REFUSED                                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":REQ,\"error\":{\"code\":-1,\"message\":\"no\","         \
    "\"data\":1}}"
#define STATUS "notifications/tasks/status", FACTS("working")
#define TASK_OF(answer) answer, "result>_meta>io.modelcontextprotocol/related-task"

/* The first answer to the question. */
static const field_row first_rows[] = {
    {NULL, MADE, "jsonrpc", "FFFFFFFFFFFFFF"},
    {NULL, MADE, "id", ".............."},
    {NULL, MADE, "result", "FFFFFFFFFFFFFA"},
    {NULL, MADE, "result>task", "AFFFFFFFFFFFFF"},
    {NULL, MADE, "result>task>taskId", "FFFFFFFFF.FFFF"},
    {NULL, MADE, "result>task>status", ".............."},
    {NULL, MADE, "result>task>createdAt", ".............."},
    {NULL, MADE, "result>task>lastUpdatedAt", ".............."},
    {NULL, MADE, "result>task>ttl", ".............."},
    {NULL, MADE, "result>task>pollInterval", ".............."},
    {NULL, WHOLE, "result>content", "AAAAAAAAAAAAKK"},
    {NULL, WHOLE, "result>role", "KKKKKKKKKKKKKK"},
    {NULL, WHOLE, "result>model", "KKKKKKKKKKKKKK"},
    {NULL, WHOLE, "result>_meta", "KKKKKKKKKKKKKK"},
    {NULL, REFUSED, "error", "FFFFFFFFFFFFFF"},
    {NULL, REFUSED, "error>code", "FFFFFFFFFFFFFF"},
    {NULL, REFUSED, "error>message", "FFFFFFFFFFFFFF"},
    {NULL, REFUSED, "error>data", "FFFFFFFFFFFFFF"},
    {NULL, END, "result>partial-content", "AFFFFFFFFFFFKF"},
    {NULL, END, "result>partial-content>0", "K............."},
    {NULL, END, "result>partial-content>0>seqNr", "...A.........."},
    {NULL, END, "result>partial-content>0>type", "KKKKKKKKKKKKKK"},
    {NULL, END, "result>isComplete", "..K..........."},
    {NULL, END, "result>isError", "KKAKKKKKKKKKKK"},
    {NULL, END, "result>_meta", "FFFFFFFFFFFFFF"},
    {NULL, TASK_OF(END), "FFFFFFFFFFFFFF"},
    {NULL, TASK_OF(END) ">taskId", "FFFFFFFFFKFFFF"},
};

/* The question is the task H, and its server polls it. */
static const field_row look_rows[] = {
    {NULL, GOT("completed"), "result", "AAAAAAAAAAAAAF"},
    {NULL, GOT("completed"), "result>taskId", "AFFFFFFFFFFFFF"},
    {NULL, GOT("completed"), "result>status", "FFFFFFFFFFFFFF"},
    {NULL, GOT("completed"), "result>createdAt", "AAAAAAAAAAAAAA"},
    {NULL, GOT("completed"), "result>lastUpdatedAt", "AAAAAAAAAAAAAA"},
    {NULL, GOT("completed"), "result>ttl", "AAAAAAAAAAAAAA"},
    {NULL, GOT("completed"), "result>pollInterval", "AAAAAAAAAAAAAA"},
    {STATUS, "params", ".RRRRRRRRRRRR."},
    {STATUS, "params>taskId", ".............."},
    {STATUS, "params>status", ".............."},
};

/* The task has ended, and its result is fetched. */
static const field_row result_rows[] = {
    {NULL, WHOLE, "result", "FFFFFFFFFFFFFA"},
    {NULL, WHOLE, "result>content", "AAAAAAAAAAAAKK"},
    {NULL, WHOLE, "result>_meta", "KKKKKKKKKKKKKK"},
    {NULL, TASK_OF(WHOLE), "KKKKKKKKKKKKKK"},
    {NULL, TASK_OF(WHOLE) ">taskId", "KKKKKKKKKKKKKK"},
    {NULL, PIECE, "result>partial-content", "AFFFFFFFFFFFFF"},
    {NULL, REFUSED, "error>code", "FFFFFFFFFFFFFF"},
};

static wire *begin(world *w)
{
    return legacy_connect(w, "who", CAPS_S);
}

static void still_works(wire *c)
{
    assert_at(wire_do_plain(c, "\"alive\"", "ping", NULL), "result", "{}");
}

static char *ask(world *w, wire *c)
{
    char id[WIRE_ID];
    (void)w;
    asker_call(c, "1", "ask_model");
    asker_asked(c, SAMPLE, id);
    return strdup(id);
}

static char *look(world *w, wire *c)
{
    char *first = ask(w, c), id[WIRE_ID];
    asker_reply(c, first, "{" CREATED "}");
    free(first);
    asker_polled(w, c, GET, id);
    return strdup(id);
}

static char *fetch(world *w, wire *c)
{
    char *got = look(w, c), id[WIRE_ID];
    asker_reply(c, got, TASK("completed"));
    free(got);
    asker_asked(c, RESULT, id);
    return strdup(id);
}

#define STAGE(question)                                                                  \
    {                                                                                    \
        .begin = begin, .still_works = still_works, .make_question = question,           \
        .tune = asker_tune                                                               \
    }
#define COUNT(rows) (sizeof rows / sizeof *rows)

int main(void)
{
    static const field_stage asks = STAGE(ask), looks = STAGE(look),
                             fetches = STAGE(fetch);
    return fields_run("AS-116 fields of an answer of a client", &asks, first_rows,
                      COUNT(first_rows)) +
           fields_run("AS-116 fields of a task of a client", &looks, look_rows,
                      COUNT(look_rows)) +
           fields_run("AS-116 fields of a result of a client", &fetches, result_rows,
                      COUNT(result_rows));
}
