/* Tests whether the demo notices a segment that was lost, repeated or altered. */
#ifndef SELF_TEST_H
#define SELF_TEST_H

/* Damages a text in many ways; expects that the comparison reports the damage and that
 * the verdict fails. Returns an exit status. */
int self_test_run(void);

#endif
