/* What every store must do, written once and run for each.
 *
 *     static const store_suite suite = {"memory", open_memory, clear_nothing};
 *     return store_suite_run(&suite);
 */
#ifndef STORE_SUITE_H
#define STORE_SUITE_H

#include "store/store.h"

typedef struct store_suite {
    const char *name;
    segue_status (*open)(const segue_store_options *options, segue_store **out);
    void (*clear)(void); /* the next open starts empty */
} store_suite;

/* Returns the number of failed cases. */
int store_suite_run(const store_suite *suite);
/* Those that keep principals within bounds. */
int store_suite_run_bounds(const store_suite *suite);

#endif
