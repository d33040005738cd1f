/* Plays tables of bad fields against the server of the world (pair, memory). What came of
 * a message is one letter:
 *
 *   J -32700   R -32600   M -32601   P -32602   I -32603   N -32002
 *   C -32021 a capability is missing   V -32022 no such revision
 *   K a result   F a result that is an error   . nothing
 *   A no result yet, but a notification or a request
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
    const char *method; /* NULL = members is the whole message */
    /* Of its params. In it, and in a whole message, TASK is the id of a task that runs,
     * and REQ the id of a question of the server. */
    const char *members;
    const char *path;
    const char *expected; /* a letter for each value of bad_fields.h */
} field_row;

/* A revision, as its clients speak. What is not needed is NULL. */
typedef struct field_stage {
    wire *(*begin)(world *w);
    void (*still_works)(wire *c); /* fails the test when it does not */
    char *(*make_task)(wire *c);  /* its id, on the heap */
    /* A call with the id 1 has asked: the id of the question, on the heap. For each value
     * anew. */
    char *(*make_question)(world *w, wire *c);
    const char *meta; /* the _meta of all requests, as a member */
    void (*tune)(segue_server_options *options);
} field_stage;

/* As cmocka tests, whose names begin with that of the group; the result for main. */
int fields_run(const char *group, const field_stage *stage, const field_row *rows,
               size_t count);

/* What all revisions have, with the same words for what is wrong. */
int fields_run_common(const char *group, const field_stage *stage);

#endif
