/* What goes wrong between the turns, as planned, and how it comes right again. */
#include "simulation/sim.h"
#include "simulation/web.h"

static sim_server *any_server(sim *s)
{
    return sim_next_up(s,
                       (int)dice_roll(&s->dice, (uint32_t)sim_planned(s, SIM_servers)));
}

static void end_process(sim_server *server, bool dies)
{
    sim *s = server->s;
    sim_server_end(server, dies);
    server->down_until =
        s->now_ms + dice_roll(&s->dice, dice_once_in(&s->dice, 4) ? 20000 : 200);
}

static void take_down(sim_server *server, bool dies)
{
    sim *s = server->s;
    sim_show(server, dies ? "dies" : "ends", server->lives);
    sim_note(s, dies ? "dies" : "ends", "server", 6);
    sim_fault(s, dies ? "kill" : "stop");
    if (sim_forgets_calls(&s->plan))
        sim_fault(s, "loss");
    server->paused_until = 0;
    if (dies)
        end_process(server, true);
    else
        sim_server_close(server);
}

/* ---- what goes wrong ---- */

/* Returns whether one of these is due now. */
static bool is_due(sim *s, sim_knob knob, uint32_t patience)
{
    if (!s->left[knob] || !dice_once_in(&s->dice, patience))
        return false;
    s->left[knob]--;
    return true;
}

static void kill_server(sim *s)
{
    sim_server *server = any_server(s);
    if (!server)
        return;
    if (!server->instance || dice_once_in(&s->dice, 3))
        take_down(server, true);
    else
        shared_store_die_at(server->instance, 1 + (int)dice_roll(&s->dice, 4),
                            (int)dice_roll(&s->dice, 2), &server->is_dead);
}

static void cut_power(sim *s)
{
    for (int i = 0; i < sim_planned(s, SIM_servers); i++)
        if (s->servers[i].runtime)
            take_down(&s->servers[i], true);
    if (dice_once_in(&s->dice, 3))
        return;
    sim_fault(s, "loss");
    shared_place_lose(s->place, 1 + dice_roll(&s->dice, 1500));
}

static void pause_server(sim *s)
{
    static const uint32_t lengths[] = {100, 1000, 5000, 30000};
    sim_server *server = any_server(s);
    if (!server || sim_is_paused(server))
        return;
    sim_fault(s, "pause");
    server->paused_until =
        s->now_ms + 1 + dice_roll(&s->dice, lengths[dice_roll(&s->dice, 4)]);
    sim_show(server, "pauses until", server->paused_until);
}

static void refuse_commits(sim *s)
{
    sim_server *server = any_server(s);
    int commits = 1 + (int)dice_roll(&s->dice, 3);
    if (!server || !server->instance)
        return;
    sim_show(server, "has refused commits:", commits);
    if (dice_once_in(&s->dice, 4)) {
        sim_fault(s, "full");
        shared_store_refuse(server->instance, commits, SEGUE_E_STORE_FULL);
        return;
    }
    bool is_leased = sim_planned(s, SIM_store) != SIM_SQLITE;
    sim_fault(s, is_leased ? "store" : "full");
    shared_store_fail(server->instance, commits,
                      is_leased ? (int)dice_roll(&s->dice, 2) : 0);
}

static void cut_off_store(sim *s)
{
    sim_server *server = any_server(s);
    if (!server || !server->instance)
        return;
    sim_fault(s, "pause"); /* another server may take its operations over */
    shared_store_away(server->instance, 1);
    server->away_until = s->now_ms + 1 + dice_roll(&s->dice, 8000);
    sim_show(server, "cannot reach the store until", server->away_until);
}

static sim_client *any_client(sim *s)
{
    return &s->clients[dice_roll(&s->dice, (uint32_t)sim_planned(s, SIM_clients))];
}

static void go_wrong_with_clients(sim *s)
{
    if (is_due(s, SIM_refused, 10))
        any_client(s)->refused++;
    if (is_due(s, SIM_outages, 60))
        any_client(s)->refused_until = s->now_ms + 1 + dice_roll(&s->dice, 20000);
    if (!is_due(s, SIM_deaths, 100))
        return;
    sim_client *client = any_client(s);
    sim_fault(s, "death");
    sim_client_die(client);
    sim_client_start(client);
}

void sim_go_wrong(sim *s)
{
    if (is_due(s, SIM_cuts, 50))
        s->carrier->cut(s, false);
    if (is_due(s, SIM_holes, 100))
        s->carrier->cut(s, true);
    if (is_due(s, SIM_ghosts, 60))
        sim_web_haunt(s);
    if (is_due(s, SIM_kills, 100))
        kill_server(s);
    if (is_due(s, SIM_stops, 100) && any_server(s))
        take_down(any_server(s), false);
    if (!s->crashing && s->left[SIM_crashes] && dice_once_in(&s->dice, 60) &&
        any_server(s))
        sim_child_begin_to_crash(any_server(s));
    if (is_due(s, SIM_powers, 150))
        cut_power(s);
    if (is_due(s, SIM_pauses, 80))
        pause_server(s);
    if (is_due(s, SIM_losses, 100)) {
        sim_fault(s, "loss");
        shared_place_lose(s->place, 1 + dice_roll(&s->dice, 1500));
    }
    if (is_due(s, SIM_refusals, 60))
        refuse_commits(s);
    if (is_due(s, SIM_partitions, 80))
        cut_off_store(s);
    if (is_due(s, SIM_jumps, 80))
        s->servers[dice_roll(&s->dice, (uint32_t)sim_planned(s, SIM_servers))].wall_off +=
            (int64_t)dice_roll(&s->dice, 20000) - 10000;
    go_wrong_with_clients(s);
}

void sim_put_right(sim *s)
{
    for (int i = 0; i < sim_planned(s, SIM_servers); i++) {
        sim_server *server = &s->servers[i];
        if (server->is_dead && server->runtime)
            take_down(server, true);
        if (server->ends_at && s->now_ms >= server->ends_at)
            end_process(server, false);
        if (server->hung_up && sim_is_up(server))
            take_down(server, false);
        if (!server->runtime && s->now_ms >= server->down_until &&
            !sim_planned(s, SIM_children))
            sim_server_start(server);
        if (server->away_until && s->now_ms >= server->away_until) {
            server->away_until = 0;
            if (server->instance)
                shared_store_away(server->instance, 0);
        }
    }
}

/* A child may be down: its client starts it when it needs it. */
static bool is_well(const sim_server *server)
{
    bool may_be_down = sim_planned(server->s, SIM_children) && !server->runtime;
    return (sim_is_up(server) || may_be_down) && !sim_is_paused(server) &&
           !server->away_until && !server->fuse;
}

bool sim_is_all_well(const sim *s)
{
    static const sim_knob faults[] = {
        SIM_cuts,   SIM_holes,    SIM_ghosts,     SIM_refused, SIM_outages,
        SIM_kills,  SIM_stops,    SIM_powers,     SIM_pauses,  SIM_deaths,
        SIM_losses, SIM_refusals, SIM_partitions, SIM_crashes};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (s->left[faults[i]])
            return false;
    for (int i = 0; i < sim_planned(s, SIM_clients); i++)
        if (s->clients[i].refused || s->clients[i].refused_until > s->now_ms)
            return false;
    for (int i = 0; i < sim_planned(s, SIM_servers); i++)
        if (!is_well(&s->servers[i]))
            return false;
    return true;
}
