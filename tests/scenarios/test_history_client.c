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

#define PIECES ((uint32_t)(SEGUE_DIALECT_PARTIAL | SEGUE_DIALECT_PARTIAL_RESULTS))

typedef enum client_switch {
    NONE,
    TASKS,
    IDEMPOTENCY,
    PARTIAL,
    PARTIAL_RESULTS,
    DRAFT_TASKS, /* with TASKS, without which it means nothing */
    RESUMABLE,
    SWITCHES
} client_switch;

static const char *const names[] = {
    "none",     "tasks",           "idempotency",
    "PARTIAL",  "PARTIAL_RESULTS", "DRAFT_TASKS and tasks",
    "RESUMABLE"};

static segue_session_options options_with(client_switch on, bool is_modern)
{
    segue_session_options o = SEGUE_SESSION_OPTIONS_INIT;
    o.era = is_modern ? SEGUE_ERA_MODERN : SEGUE_ERA_LEGACY;
    o.no_tasks = on != TASKS && on != DRAFT_TASKS;
    o.no_idempotency = on != IDEMPOTENCY;
    o.dialects_off = PIECES;
    if (on == PARTIAL)
        o.dialects_off &= ~(uint32_t)SEGUE_DIALECT_PARTIAL;
    if (on == PARTIAL_RESULTS)
        o.dialects_off &= ~(uint32_t)SEGUE_DIALECT_PARTIAL_RESULTS;
    if (on == DRAFT_TASKS)
        o.dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
    if (on == RESUMABLE)
        o.dialects_on = SEGUE_DIALECT_RESUMABLE;
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

static void play(history *h, client_switch on)
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
    play(&plain, NONE);
    history_assert_golden(&plain, judge.name);
    for (client_switch on = NONE + 1; on < SWITCHES; on++) {
        history with = {.is_modern = is_modern};
        play(&with, on);
        history_compare(&judge, names[on], &plain, &with);
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
