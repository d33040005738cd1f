/* A connection over HTTP, between web.c and gateway.c. */
#ifndef SIM_WEB_H
#define SIM_WEB_H

#include "simulation/sim.h"
#include "support/cutting_line.h"

typedef struct sim_joined {
    cutting_line *line;
    sim_client *client;
    sim_server *server;
    int64_t hole_until;
    bool drops_answer; /* the gateway answers in place of the server */
} sim_joined;

/* Lets the gateway answer a request that begins, or whose answer comes. */
void sim_gateway_turn(sim *s, sim_joined *one, const struct pollfd pair[2]);

/* Breaks a connection in a way that its server notices later. */
void sim_web_haunt(sim *s);

#endif
