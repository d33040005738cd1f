/* The companion takes part when SEGUE_DEMO_PYTHON names an interpreter that can import
 * segue; `make demo` does. It is not killed on purpose: what it has to live through are
 * the kills of the server and the cuts, as it comes through the same proxy. Its task is
 * the one of the first reader: it takes the token from that one's state file and asks for
 * all segments from the first. */
#include "companion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare.h"

void companion_init(companion *c, const char *dir)
{
    const char *python = getenv("SEGUE_DEMO_PYTHON");
    *c = (companion){.player = {.voice = -1}, .dir = dir};
    if (python && *python)
        c->python = python;
}

static void note(companion *c, const char *why)
{
    if (!*c->why)
        snprintf(c->why, sizeof c->why, "%s", why);
}

void companion_start(companion *c, const char *url)
{
    char state[4200], output[4200], parent[32];
    char script[] = SEGUE_DEMO_READER, no_cache[] = "-B";
    if (!c->python || c->started)
        return;
    snprintf(state, sizeof state, "%s/state", c->dir);
    snprintf(output, sizeof output, "%s/output.py", c->dir);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    char *const argv[] = {(char *)c->python, no_cache, script, parent,
                          (char *)url,       state,    output, NULL};
    c->started = true;
    int fault = player_start(&c->player, argv);
    if (fault)
        note(c, strerror(fault));
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
        fprintf(stderr, "python: %s\n", said);
}

void companion_hear(companion *c)
{
    if (player_hear(&c->player, take_line, c))
        return;
    int status = player_reap(&c->player);
    if (!c->done || !WIFEXITED(status) || WEXITSTATUS(status))
        note(c, "it ended too early");
}

bool companion_is_over(const companion *c)
{
    return !c->python || *c->why || (c->started && !c->player.pid);
}

void companion_end(companion *c)
{
    player_kill_all(&c->player);
    player_reap(&c->player);
}

bool companion_judge(const companion *c, const text *sent)
{
    char path[4200];
    text arrived = {0};
    comparison found = {0};
    if (!c->python)
        return true;
    snprintf(path, sizeof path, "%s/output.py", c->dir);
    text_load(&arrived, path); /* not there: nothing has arrived */
    bool ok = compare_texts(sent, &arrived, &found) && found.same_bytes && !*c->why;
    printf("read in Python at the same time: %zu segments, %s%s%s\n", found.segments,
           found.same_bytes ? "the same, byte by byte" : "NOT the same",
           *c->why ? "; went wrong: " : "", c->why);
    text_free(&arrived);
    return ok;
}
