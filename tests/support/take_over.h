/* Two servers on one store, one of which ends or is away. Server A is the server of the
 * scenario's world. */
#ifndef TAKE_OVER_H
#define TAKE_OVER_H

#include "support/shared_store.h"
#include "support/world_inside.h"

#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"

extern world take_over_other; /* server B; the world of the scenario is server A */

#define LEASE_MS 1000

/* A store with leases that both servers share, made with the public headers alone.
 * NULL = the stores of the matrix. */
extern shared_place *take_over_place;

extern shared_store *take_over_instance;

void take_over_open_instance(segue_store **out, shared_store **self);

void take_over_with_shared(world *w);

void take_over_begin(world *w);

void take_over_end(void);

int take_over_count_of(const char *text, const char *what);

void take_over_let_all_go(world *w);

#endif
