/* The set-up of tests of operations and their logs: a server on a fake host, whose memory
 * is counted. */
#ifndef LOG_STAGE_H
#define LOG_STAGE_H

#include "engine/log/op.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

extern test_mem log_mem;

extern fake_host log_host;

extern segue_server *log_server;

extern sgi_op *log_op; /* the operation of the test; freed after it */

int log_set_up(void **state);

int log_tear_down(void **state);

/* Appends an entry to log_op. */
void log_append(sgi_entry_kind kind, const char *payload);

/* Appends a segment. */
void log_say(sgi_op *op, const char *json);

/* Returns how many entries of the operation the store has. */
size_t log_rows_of(const sgi_op *op);

/* Commits with OK, except batches with a write of `bad`. */
void log_commit_unless(const sgi_op *bad);

typedef struct log_listener {
    sgi_waiter waiter;
    int fired;
    segue_status status;
} log_listener;

void log_fire(sgi_waiter *waiter, sgi_op *op, segue_status status);

/* A test with the set-up of this file. */
#define CASE(name) cmocka_unit_test_setup_teardown(name, log_set_up, log_tear_down)

#endif
