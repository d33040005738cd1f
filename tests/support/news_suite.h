/* Tests of the changes that every store must report to its listeners. They run for each
 * store; see store_suite.h. */
#ifndef NEWS_SUITE_H
#define NEWS_SUITE_H

#include "support/store_suite.h"

/* Tests with listeners of one handle. Returns the number of failed cases. */
int news_suite_run(const store_suite *suite);
/* Tests with two handles of one store; suite->open is called twice, and each handle is an
 * owner. For stores that several processes may share. */
int news_suite_run_shared(const store_suite *suite);

#endif
