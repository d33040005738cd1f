/* AS-119, the client's half: with every switch off its messages to a plain server are
 * those recorded. Each switch alone adds only what it declares or asks for. The server
 * answers the same each time (test_history.c has the other half, and says how to make the
 * recordings anew). */
#include "support/client_kit.h"
#include "support/history.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* The switches of a client: each row turns one of them on. */
static const struct client_switch {
    const char *name;
    bool tasks, idempotency;
    uint32_t pieces; /* a dialect that is on by default */
    uint32_t dialects_on;
} switches[] = {
    {.name = "tasks", .tasks = true},
    {.name = "idempotency", .idempotency = true},
    {.name = "PARTIAL", .pieces = SEGUE_DIALECT_PARTIAL},
    {.name = "PARTIAL_RESULTS", .pieces = SEGUE_DIALECT_PARTIAL_RESULTS},
    {.name = "DRAFT_TASKS and tasks", /* without tasks it means nothing */
     .tasks = true,
     .dialects_on = SEGUE_DIALECT_DRAFT_TASKS},
    {.name = "RESUMABLE", .dialects_on = SEGUE_DIALECT_RESUMABLE},
};
#define SWITCHES (sizeof switches / sizeof *switches)

static segue_session_options options_with(const struct client_switch *on, bool is_modern)
{
    segue_session_options o = SEGUE_SESSION_OPTIONS_INIT;
    o.era = is_modern ? SEGUE_ERA_MODERN : SEGUE_ERA_LEGACY;
    o.no_tasks = !on->tasks;
    o.no_idempotency = !on->idempotency;
    for (size_t i = 0; i < SWITCHES; i++)
        o.dialects_off |= switches[i].pieces;
    o.dialects_off &= ~on->pieces;
    o.dialects_on = on->dialects_on;
    return o;
}

static const char *take(history *h, kit *k, const char *method)
{
    const char *line = kit_expect(k, method);
    history_add(h, "> %s\n%s\n", method, line);
    return line;
}

static void shake_hands(history *h, kit *k)
{
    if (h->is_modern) {
        kit_result(k, take(h, k, "server/discover"),
                   "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                   "\"capabilities\":{\"tools\":{}},\"ttlMs\":0,"
                   "\"cacheScope\":\"private\"");
        return;
    }
    kit_result(k, take(h, k, "initialize"),
               "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
               "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}");
    take(h, k, "notifications/initialized");
}

static void play(history *h, const struct client_switch *on)
{
    kit k = {0};
    segue_session_options options = options_with(on, h->is_modern);
    const char *type = h->is_modern ? "\"resultType\":\"complete\"," : "";
    kit_begin(&k, &options);
    shake_hands(h, &k);
    record *r = kit_call(&k, "t");
    kit_result(&k, take(h, &k, "tools/call"), "%s\"content\":[]", type);
    assert_int_equal(r->status, SEGUE_OK);
    r = kit_start(&k, "resources/list", NULL, NULL);
    kit_result(&k, take(h, &k, "resources/list"), "%s\"resources\":[]", type);
    assert_int_equal(r->status, SEGUE_OK);
    r = kit_call(&k, "t");
    kit_error(&k, take(h, &k, "tools/call"), -32602, "{}");
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    r = kit_call(&k, "t");
    take(h, &k, "tools/call");
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    take(h, &k, "notifications/cancelled");
    kit_expect_silence(&k);
    kit_end(&k);
}

static void in_era(bool is_modern)
{
    history plain = {.is_modern = is_modern};
    history_judge judge = {0}; /* any message may opt in, so a person reads the
                                * differences */
    snprintf(judge.name, sizeof judge.name, "history_client_%s",
             is_modern ? "modern" : "legacy");
    play(&plain, &(struct client_switch){0});
    history_assert_golden(&plain, judge.name);
    for (size_t i = 0; i < SWITCHES; i++) {
        history with = {.is_modern = is_modern};
        play(&with, &switches[i]);
        history_compare(&judge, switches[i].name, &plain, &with);
        history_free(&with);
    }
    history_end(&judge);
    history_free(&plain);
}

static void client_legacy(void **state)
{
    (void)state;
    in_era(false);
}

static void client_modern(void **state)
{
    (void)state;
    in_era(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-119 switches of a client, to a plain server of 2025-11-25", client_legacy,
         NULL, NULL, NULL},
        {"AS-119 switches of a client, to a plain server of 2026-07-28", client_modern,
         NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("history_client", tests, NULL, NULL);
}
