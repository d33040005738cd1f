/* Two channels resume one request at once (SEP-975): the newest one gets it. The
 * thread sanitizer checks this test too (AS-123). label: threads, because of the
 * SQLite store. */
#include "support/legacy_wire.h"
#include "support/scratch.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CAPS_Z "{\"resumableRequests\":{}}"

/* Sends a call that takes a second, and copies its token. */
static void call_for_token(wire *c, char *token, size_t size)
{
    wire_ask_plain(c, "123", "tools/call",
                   "\"name\":\"slow_compute\",\"arguments\":{\"seconds\":1,"
                   "\"label\":\"x\"}");
    const char *policy = wire_notification(c, "notifications/requests/resumePolicy");
    snprintf(token, size, "%s", json_at(policy, "params.resumeToken"));
}

static void ask_resume(wire *c, const char *token)
{
    char params[256];
    snprintf(params, sizeof params, "\"resumeToken\":%s", token);
    wire_ask_plain(c, "123", "requests/resume", params);
}

/* Runs a thousand times; with SQLite, whose thread must be waited for, only with
 * SEGUE_LONG in the environment. */
static void newest_wins(world *w)
{
    int runs = w->store_kind == WORLD_MEMORY || getenv("SEGUE_LONG") ? 1000 : 50;
    for (int i = 0; i < runs; i++) {
        wire *c = legacy_connect(w, NULL, CAPS_Z);
        char token[128];
        call_for_token(c, token, sizeof token);
        wire *a = legacy_connect(w, NULL, CAPS_Z);
        wire *b = legacy_connect(w, NULL, CAPS_Z);
        int is_cut = world_chance(w, 2) != 0;
        if (is_cut)
            wire_drop(c);
        ask_resume(a, token);
        ask_resume(b, token);
        world_advance(w, 2000);
        int got = (strstr(wire_history(a), "\"id\":123,\"result\"") != NULL) +
                  (strstr(wire_history(b), "\"id\":123,\"result\"") != NULL) +
                  (!is_cut && strstr(wire_history(c), "\"id\":123,\"result\""));
        assert_int_equal(got, 1);
        wire_drop(a);
        wire_drop(b);
        if (!is_cut)
            wire_drop(c);
    }
}

/* Only the order of events matters, so the store does not use the disk. */
static void in_memory(world *w)
{
    scratch_name(w->path, sizeof w->path, "/dev/shm/segue-resume-race");
}

static const scenario scenarios[] = {
    {"AS-102 AS-123 of two channels that resume, the newest wins", newest_wins,
     ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                  in_memory);
}
