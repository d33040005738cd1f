/* A keyed plain call is sent again when its operation already exists: after a restart, or
 * at another server. The client gets the answer of that operation, with or without
 * pieces, as requested, in both eras. */
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

#include "engine/server/server.h"

#define LINES 5
#define LINE_MS 300
#define ALL_MS (LINE_MS * (LINES + 1))
#define CAPS_Z "{\"resumableRequests\":{}}"

static world other; /* server B; the world of the scenario is server A */

/* The form of the client's request. */
typedef struct form {
    bool modern;
    const char *caps;
    const char *meta; /* what asks for pieces; NULL = no pieces */
    const char *note; /* the notification that brings a piece; NULL = responses do */
} form;

#define ALLOW "\"allowPartial\":true"

static const form forms[] = {
    {true, "{\"partialResults\":{}}", "\"partialResultToken\":\"prt\"",
     "notifications/tools/partial_result"},
    {true, "{\"partialResults\":{}}", NULL, NULL},
    {true, NULL, NULL, NULL},
    {false, NULL, ALLOW, NULL},
    {false, NULL, NULL, NULL},
    {false, CAPS_Z, ALLOW, NULL},
    {false, CAPS_Z, NULL, NULL},
};
#define FORMS ((int)(sizeof forms / sizeof *forms))
#define EACH_FORM(f) for (const form *f = forms; f < forms + FORMS; f++)

static void begin(world *w)
{
    other = (world){.tune = w->tune};
    world_begin_beside(w, &other);
}

/* ---- requests ---- */

static wire *connect_as(world *w, const form *f)
{
    if (f->modern)
        return world_connect(w, "Ada");
    return legacy_connect(w, "Ada", f->caps);
}

static void ask(wire *c, const form *f)
{
    char params[512], meta[256], line[2048];
    snprintf(meta, sizeof meta, "\"dev.segue/idempotencyKey\":\"%032d\"%s%s",
             (int)(f - forms) + 1, f->meta ? "," : "", f->meta ? f->meta : "");
    snprintf(params, sizeof params,
             "\"name\":\"story\",\"arguments\":{\"n\":%d,\"delayMs\":%d}", LINES,
             LINE_MS);
    if (f->modern) {
        char *plain = wire_line("7", "tools/call", params, f->caps);
        const char *at = strstr(plain, "\"_meta\":{") + 9;
        snprintf(line, sizeof line, "%.*s%s,%s", (int)(at - plain), plain, meta, at);
        free(plain);
        wire_send(c, line);
    } else {
        snprintf(params + strlen(params), sizeof params - strlen(params),
                 ",\"_meta\":{%s}", meta);
        wire_ask_plain(c, "7", "tools/call", params);
    }
}

/* ---- answers ---- */

static void must_be_line(const char *message, const char *path, int n)
{
    char text[256], quoted[300];
    fixtures_story_line(n, 0, text, sizeof text);
    snprintf(quoted, sizeof quoted, "\"%s\"", text);
    assert_at(message, path, quoted);
}

/* Takes the blocks behind those that came before; returns how many there are then. */
static int take_blocks(const char *message, const char *list, int there)
{
    char path[64];
    for (int i = 0;; i++, there++) {
        snprintf(path, sizeof path, "%s.%d.text", list, i);
        if (!*json_at(message, path))
            return there;
        must_be_line(message, path, there + 1);
    }
}

/* P: several responses make the answer. */
static void must_end_in_parts(wire *c)
{
    int there = 0;
    const char *part;
    do {
        part = wire_response(c, "7");
        if (!strcmp(json_at(part, "result._meta.mergeStrategy"), "\"replace\""))
            there = 0;
        there = take_blocks(part, "result.content", there);
    } while (!strcmp(json_at(part, "result._meta.hasMore"), "true"));
    assert_int_equal(there, LINES);
}

static void must_end(wire *c, const form *f)
{
    if (!f->modern) {
        must_end_in_parts(c);
        return;
    }
    assert_int_equal(take_blocks(wire_response(c, "7"), "result.content", 0), LINES);
}

/* Checks that the client sees the first lines, or nothing yet when it wants no pieces. */
static void must_see_some(wire *c, const form *f)
{
    if (!f->meta) {
        assert_null(strstr(wire_history(c), "of the story"));
    } else if (f->note) {
        must_be_line(wire_notification(c, f->note), "params.content.0.text", 1);
        must_be_line(wire_notification(c, f->note), "params.content.0.text", 2);
    } else {
        assert_non_null(strstr(wire_history(c), "segment 2 of the story"));
        assert_null(strstr(wire_history(c), "segment 5 of the story"));
    }
}

static void must_have_run(const world *a, const world *b, int runs)
{
    assert_int_equal((a->runtime ? world_runs(a, "story") : 0) +
                         (b ? world_runs(b, "story") : 0),
                     runs);
}

/* ---- scenarios ---- */

static void after_the_end_and_a_restart(world *w)
{
    EACH_FORM(f)
    {
        wire *c = connect_as(w, f);
        ask(c, f);
        world_advance(w, ALL_MS);
        must_end(c, f);
        world_restart(w);
        c = connect_as(w, f);
        ask(c, f);
        world_run(w);
        must_end(c, f);
        must_have_run(w, NULL, 0);
    }
}

static void while_it_goes_on_after_a_restart(world *w)
{
    EACH_FORM(f)
    {
        wire *c = connect_as(w, f);
        ask(c, f);
        world_advance(w, LINE_MS + 50);
        world_restart(w);
        c = connect_as(w, f);
        ask(c, f);
        world_advance(w, ALL_MS);
        must_end(c, f);
        must_have_run(w, NULL, 1);
        world_restart(w);
    }
}

static void after_the_end_at_another_server(world *w)
{
    begin(w);
    EACH_FORM(f)
    {
        wire *a = connect_as(w, f);
        wire *b = connect_as(&other, f);
        ask(a, f);
        world_advance(w, ALL_MS);
        must_end(a, f);
        ask(b, f);
        world_run(w);
        must_end(b, f);
    }
    must_have_run(w, &other, FORMS);
    world_end(&other);
}

static void while_another_server_runs_it(world *w)
{
    begin(w);
    EACH_FORM(f)
    {
        wire *a = connect_as(w, f);
        wire *b = connect_as(&other, f);
        ask(a, f);
        world_advance(w, LINE_MS + 50);
        ask(b, f);
        world_run(w);
        must_see_some(b, f);
        world_advance(w, ALL_MS);
        if (!f->note)
            must_end(a, f);
        must_end(b, f);
    }
    must_have_run(w, &other, FORMS);
    world_end(&other);
}

/* A does nothing for a while: a client waits at B, and is answered when A goes on. */
static void while_its_owner_is_paused(world *w)
{
    begin(w);
    EACH_FORM(f)
    {
        wire *a = connect_as(w, f);
        wire *b = connect_as(&other, f);
        ask(a, f);
        world_advance(w, LINE_MS + 50);
        other.beside = NULL;
        ask(b, f);
        world_advance(&other, 2000);
        must_see_some(b, f);
        assert_null(strstr(wire_history(b), "\"error\""));
        other.beside = w;
        w->clock_ms = other.clock_ms;
        world_advance(w, ALL_MS);
        must_end(b, f);
    }
    must_have_run(w, &other, FORMS);
    world_end(&other);
}

/* The server that runs the calls ends, and B, where their clients wait, goes on. */
static void while_it_is_taken_over(world *w)
{
    wire *there[FORMS];
    begin(w);
    EACH_FORM(f)
    {
        ask(connect_as(w, f), f);
        there[f - forms] = connect_as(&other, f);
    }
    world_advance(w, LINE_MS + 50);
    EACH_FORM(f)
    {
        ask(there[f - forms], f);
    }
    world_run(w);
    world_stop(w);
    world_advance(&other, 2 * ALL_MS);
    EACH_FORM(f)
    {
        must_end(there[f - forms], f);
    }
    must_have_run(w, &other, FORMS);
    world_end(&other);
}

static const scenario scenarios[] = {
    {"AS-38a a key that ended is answered after a restart", after_the_end_and_a_restart,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38a a key that goes on after a restart is answered",
     while_it_goes_on_after_a_restart, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38a a key that ended is answered at another server",
     after_the_end_at_another_server, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38a a key that another server runs is answered", while_another_server_runs_it,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38a a key whose owner is paused is answered", while_its_owner_is_paused,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38a a key that is taken over is answered", while_it_is_taken_over,
     ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
