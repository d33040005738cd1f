/* Random work on a store, checked against a model of it. */
#ifndef STORE_MODEL_H
#define STORE_MODEL_H

#include "support/store_kit.h"
#include "support/test_mem.h"

/* Plays `rounds` random batches from the seed on an empty store. tm: the store's
 * allocator if it may fail, otherwise NULL. A commit that returned SEGUE_E_NOMEM must
 * have changed nothing, and must succeed once there is memory again. Returns whether a
 * commit returned SEGUE_E_NOMEM. */
bool test_model_play(segue_store *store, uint64_t seed, int rounds, test_mem *tm);

#endif
