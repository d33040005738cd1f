/* The tests that every store must pass, run for each store.
 *
 *     static const store_suite suite = {"memory", open_memory, clear_nothing, 10000};
 *     return store_suite_run(&suite);
 */
#ifndef STORE_SUITE_H
#define STORE_SUITE_H

#include "store/store.h"

typedef struct store_suite {
    const char *name;
    segue_status (*open)(const segue_store_options *options, segue_store **out);
    void (*clear)(void); /* makes the next open start with an empty store */
    /* Of a large store, a multiple of 100. A store in another process has fewer: each
     * call waits for two processes there, which takes long on a busy machine. */
    uint32_t operations;
} store_suite;

/* Returns the number of failed cases. */
int store_suite_run(const store_suite *suite);
/* Runs the cases in which memory runs out: each opens the store anew. */
int store_suite_run_allocations(const store_suite *suite);
/* Runs the cases for stores that limit the operations of a principal. */
int store_suite_run_bounds(const store_suite *suite);

#endif
