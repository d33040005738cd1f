/* What the files of the store suite share. */
#ifndef STORE_SUITE_CASES_H
#define STORE_SUITE_CASES_H

#include "support/store_suite.h"

struct CMUnitTest;

/* Opens an empty store of the suite. */
segue_store *store_suite_open_empty(void **state, const segue_store_options *options);
/* Runs cases of the suite. Returns the number of failed cases. */
int store_suite_run_group(const store_suite *suite, const char *group,
                          struct CMUnitTest *cases, size_t count);
#define STORE_SUITE_RUN_GROUP(suite, group, cases)                                       \
    store_suite_run_group(suite, group, cases, sizeof(cases) / sizeof *(cases))

/* ---- store_suite_work.c ---- */

void store_suite_many_operations(void **state);
void store_suite_threads_share_a_store(void **state);
void store_suite_random_batches_match_a_model(void **state);

#endif
