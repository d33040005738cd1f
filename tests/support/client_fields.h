/* Plays tables of bad fields against a client; the test plays the server. One letter is
 * the outcome of a message:
 *
 *   K the request ended well   E with SEGUE_E_PROTOCOL   R with the error of the server
 *   L its task is lost         X it was cancelled        ! in another way
 *   T the application got a callback, the request goes on
 *   W a warning was counted, the request goes on         . nothing
 *   B both: the application got a callback, and a warning was counted
 *   O the session opened       S it was closed           F it tries the handshake
 *   r the client answered with a result, P with -32602, M -32601, R -32600, I -32603
 *
 * Each value of a field has a client of its own, which must be usable afterwards and must
 * leave no memory behind. With SEGUE_FIELDS=show in the environment the outcomes are
 * printed. */
#ifndef CLIENT_FIELDS_H
#define CLIENT_FIELDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "support/client_kit.h"
#include "support/model_fixtures.h"

typedef struct client_scene {
    kit k;
    model m;        /* the host of the client, in scenes that have one */
    record *r;      /* the request that the message is about; may be NULL */
    char id[64];    /* id of the request that the message answers; replaces REQ in
                     * messages */
    char token[64]; /* token of the request; replaces TOKEN in messages */
    int answers;    /* 1 = the message is a request to the client */
} client_scene;

typedef struct client_row {
    void (*begin)(client_scene *s);
    const char *message;
    const char *path;
    const char *expected;
} client_row;

/* Remembers the client's request in this line, which the message answers. */
void scene_heard(client_scene *s, const char *line);
/* Returns the message on the heap, with REQ and TOKEN filled in. */
char *scene_line(const client_scene *s, const char *message);

/* Runs the rows as cmocka tests named after the group; returns the exit code for main. */
int client_fields_run(const char *group, const client_row *rows, size_t count);

#define ANSWER(members) "{\"jsonrpc\":\"2.0\",\"id\":REQ,\"result\":{" members "}}"
#define NOTE(method, members)                                                            \
    "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":{" members "}}"

#endif
