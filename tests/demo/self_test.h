/* Does the demo see a segment that was lost, doubled or altered? */
#ifndef SELF_TEST_H
#define SELF_TEST_H

/* Damages a text on purpose, in many ways, and expects the comparison to say what was
 * done and the verdict to fail. Returns an exit status. */
int self_test_run(void);

#endif
