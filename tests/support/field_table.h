/* Plays tables of bad fields against the server of the world (pair, memory). What came of
 * a message is one letter:
 *
 *   J -32700   R -32600   M -32601   P -32602   I -32603   N -32002
 *   C -32021 a capability is missing   V -32022 no such revision
 *   K a result   A no result yet, but a notification: a subscription   . nothing
 *
 * Each row runs three times on connections of their own; the last time leaves no more
 * memory behind than the one before. Environment: SEGUE_FIELDS=show prints what came. */
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
    const char *message; /* TASK in it is the id of a task that runs */
    const char *path;
    const char *expected; /* a letter for each value of bad_fields.h */
} field_row;

typedef struct field_stage {
    wire *(*begin)(world *w);
    void (*still_works)(wire *c); /* fails the test when it does not */
    char *(*make_task)(wire *c);  /* its id, on the heap */
} field_stage;

/* As cmocka tests, whose names begin with that of the group; the result for main. */
int fields_run(const char *group, const field_stage *stage, const field_row *rows,
               size_t count);

#endif
