/* Memory fails at one of two servers on a store. Meanwhile an operation of the first is
 * read, answered and taken over at the second. Each allocation fails in turn, alone and
 * with all later ones. Nothing leaks or hangs, and when memory is back the operation is
 * seen to end, once. */
#include "support/legacy_wire.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"
#define TRIES 40
#define HOPS 400

typedef struct trial {
    world a, b;
    wire *at_a, *at_b;
    char id[64];
} trial;

typedef struct play {
    void (*prepare)(trial *t);
    void (*act)(trial *t); /* the action that fails; it asserts nothing */
    bool at_owner;
    const char *ends; /* the state at the end */
} play;

static void make(trial *t, const char *tool, const char *arguments)
{
    snprintf(t->id, sizeof t->id, "%s",
             wire_make_task(t->at_a, "1", tool, arguments, CAPS_ALL));
}

static void ask_about(trial *t, const char *id, const char *method, const char *more)
{
    char params[256];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"%s", t->id, more);
    char *line = wire_line(id, method, params, CAPS_ALL);
    /* The server may have no memory for it, or may have closed the conversation. */
    if (!t->at_b->closed && !t->at_b->detached) {
        segue_transport_feed(t->at_b->transport, line, strlen(line));
        segue_transport_feed(t->at_b->transport, "\n", 1);
    }
    free(line);
    world_run(&t->b);
}

static void a_story(trial *t)
{
    make(t, "story", "\"n\":4,\"delayMs\":100");
}

static void a_question(trial *t)
{
    make(t, "confirm_delete", NULL);
    world_run(&t->a);
}

static void look(trial *t)
{
    ask_about(t, "2", "tasks/get", "");
    ask_about(t, "3", "tasks/stream", "");
    world_advance(&t->b, 250);
}

static void answer(trial *t)
{
    ask_about(t, "2", "tasks/get", "");
    ask_about(t, "3", "tasks/update", ",\"inputResponses\":{\"input-1\":" ACCEPT "}");
    world_advance(&t->b, 1200);
}

static void cancel(trial *t)
{
    ask_about(t, "2", "tasks/get", "");
    ask_about(t, "3", "tasks/cancel", "");
    world_advance(&t->b, 1200);
}

static void take_over(trial *t)
{
    ask_about(t, "2", "tasks/get", "");
    ask_about(t, "3", "tasks/stream", "");
    world_stop(&t->a);
    world_advance(&t->b, 300);
}

static void take_over_unseen(trial *t)
{
    world_stop(&t->a);
    world_advance(&t->b, 300);
}

static const play plays[] = {
    {a_story, look, false, "\"completed\""},
    {a_story, look, true, NULL}, /* its owner may end it */
    {a_question, answer, false, "\"completed\""},
    {a_question, answer, true, NULL},
    {a_question, cancel, false, "\"cancelled\""},
    {a_question, cancel, true, NULL},
    {a_story, take_over, false, NULL},
    {a_story, take_over_unseen, false, NULL},
};

/* A message that was not received is sent again. */
static void must_end(trial *t, const play *p)
{
    wire *c = world_connect(&t->b, "Ada");
    char wanted[64];
    const char *r = NULL;
    t->at_b = c;
    for (int i = 0; i < HOPS; i++) {
        snprintf(wanted, sizeof wanted, "\"again-%d\"", i);
        r = wire_task(c, wanted, "tasks/get", t->id, NULL);
        const char *status = json_at(r, "result.status");
        if (!strcmp(status, "\"input_required\"") && p->act == answer)
            ask_about(t, "\"more\"", "tasks/update",
                      ",\"inputResponses\":{\"input-1\":" ACCEPT "}");
        if (!strcmp(status, "\"input_required\"") && p->act == cancel)
            ask_about(t, "\"more\"", "tasks/cancel", "");
        if (*status && strcmp(status, "\"working\"") != 0 &&
            strcmp(status, "\"input_required\"") != 0)
            break;
        world_advance(&t->b, 100);
    }
    const char *end = json_at(r, "result.status");
    if (strcmp(end, "\"failed\"") != 0 && strcmp(end, "\"completed\"") != 0 &&
        strcmp(end, "\"cancelled\"") != 0)
        fail_msg("it does not end: %s", r);
    if (p->ends)
        assert_string_equal(end, p->ends);
    /* the tool may run again, so only its handler ends it */
    assert_null(strstr(r, "Server restarted"));
}

static size_t try_it(const play *p, size_t fail_at, size_t fail_from)
{
    trial *t = calloc(1, sizeof *t);
    t->a = (world){.place = WORLD_PAIR, .store_kind = WORLD_MEMORY};
    t->b = (world){0};
    world_begin(&t->a);
    world_begin_beside(&t->a, &t->b);
    t->at_a = world_connect(&t->a, "Ada");
    t->at_b = world_connect(&t->b, "Ada");
    p->prepare(t);
    test_mem *mem = p->at_owner ? &t->a.mem : &t->b.mem;
    test_mem_rearm(mem);
    mem->fail_at = fail_at;
    mem->fail_from = fail_from;
    p->act(t);
    size_t calls = mem->calls;
    test_mem_rearm(mem);
    world_advance(&t->b, 2000);
    must_end(t, p);
    world_end(&t->b);
    world_end(&t->a);
    free(t);
    return calls;
}

static void tortured(void **state)
{
    const play *p = *state;
    size_t calls = try_it(p, 0, 0);
    size_t step = getenv("SEGUE_TORTURE") || calls < TRIES ? 1 : calls / TRIES;
    assert_true(calls > 0);
    for (size_t n = 1; n <= calls; n += step) {
        try_it(p, n, 0);
        try_it(p, 0, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a look", tortured, NULL, NULL, (void *)&plays[0]},
        {"a look, at the owner", tortured, NULL, NULL, (void *)&plays[1]},
        {"an answer", tortured, NULL, NULL, (void *)&plays[2]},
        {"an answer, at the owner", tortured, NULL, NULL, (void *)&plays[3]},
        {"a cancel", tortured, NULL, NULL, (void *)&plays[4]},
        {"a cancel, at the owner", tortured, NULL, NULL, (void *)&plays[5]},
        {"a take-over of what is looked at", tortured, NULL, NULL, (void *)&plays[6]},
        {"a take-over", tortured, NULL, NULL, (void *)&plays[7]},
    };
    return cmocka_run_group_tests_name("followed", tests, NULL, NULL);
}
