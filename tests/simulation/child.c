/* Servers that are child processes of their clients, as over stdio: a server runs as long
 * as its client keeps the pipe open, and the client starts it again after its death. Some
 * children die again and again, each time when they have read as many messages. */
#include "simulation/sim.h"

#include "base/thresholds.h"

/* The most starts in 10 s. Each request that is sent again has pauses of its own, also
 * the answer to a question of a task, and the session has some, too. A client that died
 * begins again with short pauses. */
#define STARTS_OF_REQUEST 10
#define STARTS_OF_SESSION 10

static sim_server *child_of(const sim_client *client)
{
    return &client->s->servers[client->index];
}

/* Tiny pauses between attempts allow any number of starts. So do tiny pauses between
 * polls: a child that answers some polls has worked, so its client starts it again at
 * once. */
static bool has_usual_pauses(void)
{
    return SGI_THRESHOLD(backoff_first_ms) >= 250 &&
           SGI_THRESHOLD(backoff_most_ms) >= 30000 && SGI_THRESHOLD(poll_most_ms) >= 1000;
}

static void set_fuse(sim_server *child)
{
    sim *s = child->s;
    child->fuse = 0;
    if (s->crashing != child || !s->left[SIM_crashes])
        return;
    s->left[SIM_crashes]--;
    child->fuse = s->crash_at;
}

sim_server *sim_child_start(sim_client *client)
{
    sim_server *child = child_of(client);
    sim *s = client->s;
    if (child->is_dead && child->runtime)
        return NULL;
    if (child->runtime && !child->hung_up && !child->ends_at)
        return child;
    if (child->runtime) /* the child of before has not ended yet */
        sim_server_end(child, false);
    int requests = (int)sim_planned(s, SIM_calls) * (sim_planned(s, SIM_asks) ? 2 : 1);
    int most = STARTS_OF_SESSION + STARTS_OF_REQUEST * requests;
    most *= 1 + (int)sim_planned(s, SIM_deaths);
    sim_tell(s, "start client%d most=%d", client->index, has_usual_pauses() ? most : 0);
    sim_server_start(child);
    set_fuse(child);
    return child;
}

void sim_child_hang_up(sim_server *child)
{
    child->hung_up = child->runtime && !child->is_dead && !child->ends_at &&
                     sim_planned(child->s, SIM_children);
}

void sim_child_reads(sim_server *child, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n && child->fuse; i++)
        if (bytes[i] == '\n' && !--child->fuse)
            child->is_dead = 1;
}

void sim_child_begin_to_crash(sim_server *child)
{
    child->s->crashing = child;
    child->s->crash_at = 1 + (int)dice_roll(&child->s->dice, 6);
    child->is_dead = 1;
}
