/* What every store must tell to who listens at it, written once and run for each; see
 * store_suite.h. */
#ifndef NEWS_SUITE_H
#define NEWS_SUITE_H

#include "support/store_suite.h"

/* Listeners of one handle. Returns the number of failed cases. */
int news_suite_run(const store_suite *suite);
/* Two handles of what suite->open opens twice, each an owner: for stores that several
 * processes may share. */
int news_suite_run_shared(const store_suite *suite);

#endif
