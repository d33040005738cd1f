/* AS-119, R-C-16: with every switch off the library is a plain server, byte by byte as it
 * was recorded. Each switch alone changes nothing for a client that does not opt in,
 * except what is declared: the answer to the handshake, and the list of tools.
 *
 * The recordings are text. tests/golden/history_<era>.txt is the plain one;
 * history_<era>_switches.txt has the lines that each switch changes. SEGUE_GOLDEN=write
 * in the environment writes them anew; a person reads the change before it is committed.
 * The history of the client is in test_history_client.c. */
#include "support/history.h"
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

static history_switch switched_on;

static void tune(segue_server_options *options)
{
    options->dialects_off = history_all_dialects() & ~switched_on.dialect;
    options->dialects_on = switched_on.dialect;
    options->draft_ways = SEGUE_WAY_NO_PARTIAL_INDEX ^ switched_on.way;
}

/* Sends a request and records what comes of it. */
static void put(history *h, wire *c, const char *id, const char *method,
                const char *params)
{
    size_t before = strlen(wire_history(c));
    history_add(h, "> %s %s {%s}\n", id, method, params ? params : "");
    if (h->is_modern)
        wire_ask(c, id, method, params, NULL);
    else
        wire_ask_plain(c, id, method, params);
    world_run(c->w);
    if (strlen(wire_history(c)) == before)
        world_advance(c->w, 1200); /* the tool takes some time */
    history_add(h, "%s", wire_history(c) + before);
}

static void call(history *h, wire *c, const char *id, const char *tool,
                 const char *arguments)
{
    char params[512];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{%s}%s", tool,
             arguments, h->is_modern ? "" : ",\"_meta\":{\"progressToken\":\"p\"}");
    put(h, c, id, "tools/call", params);
}

static void play(history *h, world *w)
{
    wire *c;
    if (h->is_modern) {
        c = world_connect(w, NULL);
        put(h, c, "0", "server/discover", NULL);
    } else {
        c = legacy_connect(w, NULL, NULL);
        history_add(h, "> initialize\n%s", wire_history(c));
        put(h, c, "1", "ping", NULL);
    }
    put(h, c, "\"tools\"", "tools/list", NULL);
    call(h, c, "2", "greet", "\"name\":\"Ada\"");
    call(h, c, "\"2\"", "story", "\"n\":3");
    call(h, c, "3", "slow_compute", "\"seconds\":1,\"label\":\"x\"");
    call(h, c, "4", "chatty", "\"n\":2");
    call(h, c, "5", "fail_after", "\"n\":1");
    call(h, c, "6", "fields", "");
    call(h, c, "7", "give_up", "");
    call(h, c, "8", "no_such_tool", "");
    put(h, c, "9", "tools/call", "\"name\":7");
    put(h, c, "10", "resources/read", "\"uri\":\"test://nothing\"");
    put(h, c, "11", "no/such/method", NULL);
    if (!h->is_modern)
        put(h, c, "12", "logging/setLevel", "\"level\":\"warning\"");
    wire_drop(c);
}

static void in_era(world *w, bool is_modern)
{
    history plain = {.is_modern = is_modern};
    history_judge judge = {.declares = is_modern ? "> 0 server/discover" : "> initialize",
                           .lists = "> \"tools\" tools/list"};
    snprintf(judge.name, sizeof judge.name, "history_%s",
             is_modern ? "modern" : "legacy");
    switched_on = (history_switch){0};
    world_restart(w);
    play(&plain, w);
    history_assert_golden(&plain, judge.name);
    for (size_t i = 0; history_switches[i].name; i++) {
        history with = {.is_modern = is_modern};
        switched_on = history_switches[i];
        world_restart(w);
        play(&with, w);
        history_compare(&judge, history_switches[i].name, &plain, &with);
        history_free(&with);
    }
    history_end(&judge);
    history_free(&plain);
}

static void server_legacy(world *w)
{
    in_era(w, false);
}

static void server_modern(world *w)
{
    in_era(w, true);
}

static const scenario scenarios[] = {
    {"AS-119 switches of a server, and a client of 2025-11-25 that opts in to nothing",
     server_legacy, ONLY_HERE | ONE_DRIVE, tune},
    {"AS-119 switches of a server, and a client of 2026-07-28 that opts in to nothing",
     server_modern, ONLY_HERE | ONE_DRIVE, tune},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
