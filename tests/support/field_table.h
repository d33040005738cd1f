/* Plays tables of bad fields against the server of the world (pair, memory). One letter
 * is the outcome of a message:
 *
 *   J -32700   R -32600   M -32601   P -32602   I -32603   N -32002
 *   C -32021 a capability is missing   V -32022 no such revision
 *   K a result   F a result that is an error   . nothing
 *   A no result yet, but a notification or a request
 *
 * Each row runs three times on connections of its own. The third time must leave no more
 * memory behind than the second. With SEGUE_FIELDS=show in the environment the outcomes
 * are printed. */
#ifndef FIELD_TABLE_H
#define FIELD_TABLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "support/world.h"

typedef struct field_row {
    const char *method; /* NULL = `members` is the whole message */
    /* Members of params, or a whole message. In it TASK stands for the id of a running
     * task, and REQ for the id of a question of the server. */
    const char *members;
    const char *path;
    const char *expected; /* one letter for each value of bad_fields.h */
} field_row;

/* The functions of a client of one protocol revision. A test may leave unused members
 * NULL. */
typedef struct field_stage {
    wire *(*begin)(world *w);
    void (*still_works)(wire *c); /* fails the test when the server does not work any
                                   * more */
    char *(*make_task)(wire *c);  /* returns the task's id, on the heap */
    /* Makes a call with the id 1 that asks a question; returns the id of the question, on
     * the heap. This function is called anew for each value. */
    char *(*make_question)(world *w, wire *c);
    const char *meta; /* the _meta of all requests, as a member */
    void (*tune)(segue_server_options *options);
} field_stage;

/* Runs the rows as cmocka tests named after the group; returns the exit code for main. */
int fields_run(const char *group, const field_stage *stage, const field_row *rows,
               size_t count);

/* Runs the rows that have the same outcome in all revisions. */
int fields_run_common(const char *group, const field_stage *stage);

#endif
