/* The Python companion takes part when SEGUE_DEMO_PYTHON names an interpreter that has
 * the package. The Node companion takes part when SEGUE_DEMO_NODE names its program,
 * compiled and where it finds the package. `make demo` sets both. The companions are not
 * killed on purpose: they must survive the kills of the server and the cuts, through the
 * same proxy. Their task is the one of the first reader: they take its token from the
 * state file and ask for all segments from the first. The demo itself starts them
 * (demo.c, --follow), so that they die with it. */
#include "companion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare.h"

static const char *find(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

void companions_init(companions *all, const char *dir)
{
    const char *python = find("SEGUE_DEMO_PYTHON"), *reader = find("SEGUE_DEMO_NODE");
    *all = (companions){.each = {{.language = "Python", .player = {.voice = -1}},
                                 {.language = "Node", .player = {.voice = -1}}},
                        .dir = dir};
    if (python)
        memcpy(all->each[0].run, (const char *[]){python, "-B", SEGUE_DEMO_READER},
               sizeof all->each[0].run);
    if (reader)
        memcpy(all->each[1].run, (const char *[]){"node", "--no-deprecation", reader},
               sizeof all->each[1].run);
}

void companions_dismiss(companions *all)
{
    for (int i = 0; i < COMPANIONS; i++)
        all->each[i].run[0] = NULL;
}

static void note(companion *c, const char *why)
{
    if (!*c->why)
        snprintf(c->why, sizeof c->why, "%s", why);
}

static void output_path(const companions *all, const companion *c, char path[4200])
{
    snprintf(path, 4200, "%s/output.%s", all->dir, c->language);
}

static void start(const companions *all, companion *c, const char *program,
                  const char *url)
{
    char state[4200], output[4200], parent[32], mode[] = "--follow";
    snprintf(state, sizeof state, "%s/state", all->dir);
    output_path(all, c, output);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    char *const argv[] = {(char *)program,
                          mode,
                          parent,
                          (char *)c->run[0],
                          (char *)c->run[1],
                          (char *)c->run[2],
                          (char *)url,
                          state,
                          output,
                          NULL};
    c->started = true;
    int fault = player_start(&c->player, argv);
    if (fault)
        note(c, strerror(fault));
}

void companions_start(companions *all, const char *program, const char *url)
{
    for (int i = 0; i < COMPANIONS; i++)
        if (all->each[i].run[0] && !all->each[i].started)
            start(all, &all->each[i], program, url);
}

static void take_line(void *user, const char *said)
{
    companion *c = user;
    uint64_t n;
    if (sscanf(said, "reader at %" SCNu64, &n) == 1)
        c->segments = (size_t)n;
    else if (strcmp(said, "reader done") == 0)
        c->done = true;
    else if (strncmp(said, "reader failed ", 14) == 0)
        note(c, said + 14);
    else
        fprintf(stderr, "%s: %s\n", c->language, said);
}

void companion_hear(companion *c)
{
    if (player_hear(&c->player, take_line, c))
        return;
    int status = player_reap(&c->player);
    if (!c->done || !WIFEXITED(status) || WEXITSTATUS(status))
        note(c, "it ended too early");
}

bool companions_are_over(const companions *all)
{
    for (int i = 0; i < COMPANIONS; i++) {
        const companion *c = &all->each[i];
        if (c->run[0] && !*c->why && !(c->started && !c->player.pid))
            return false;
    }
    return true;
}

void companions_end(companions *all)
{
    for (int i = 0; i < COMPANIONS; i++) {
        player_kill_all(&all->each[i].player);
        player_reap(&all->each[i].player);
    }
}

static bool judge(const companions *all, const companion *c, const text *sent)
{
    char path[4200];
    text arrived = {0};
    comparison found = {0};
    if (!c->run[0])
        return true;
    output_path(all, c, path);
    text_load(&arrived, path); /* no file: nothing has arrived */
    bool ok = compare_texts(sent, &arrived, &found) && found.same_bytes && !*c->why;
    printf("read in %s at the same time: %zu segments, %s%s%s\n", c->language,
           found.segments, found.same_bytes ? "the same, byte by byte" : "NOT the same",
           *c->why ? "; went wrong: " : "", c->why);
    text_free(&arrived);
    return ok;
}

bool companions_judge(const companions *all, const text *sent)
{
    bool ok = true;
    for (int i = 0; i < COMPANIONS; i++)
        if (!judge(all, &all->each[i], sent))
            ok = false;
    return ok;
}
