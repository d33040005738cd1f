/* Plays tables of bad fields against a client, whose server the test is. What came of a
 * message is one letter:
 *
 *   K the request ended well   E with SEGUE_E_PROTOCOL   R with the error of the server
 *   L its task is lost         X it was cancelled        ! in another way
 *   T the application was told something, the request goes on
 *   W a warning was counted, the request goes on         . nothing
 *   B both: the application was told something, and a warning was counted
 *   O the session opened       S it was closed           F it tries the handshake
 *   r the client answered with a result, P with -32602, M -32601, R -32600, I -32603
 *
 * Each value has a client of its own, which has to be usable afterwards and to leave
 * nothing behind. Environment: SEGUE_FIELDS=show prints what came. */
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
    model m;        /* its host, where it has one */
    record *r;      /* the request that the message is about; may be NULL */
    char id[64];    /* of what the message answers: REQ in it */
    char token[64]; /* of the request: TOKEN in it */
    int answers;    /* the message asks the client */
} client_scene;

typedef struct client_row {
    void (*begin)(client_scene *s);
    const char *message;
    const char *path;
    const char *expected;
} client_row;

/* Remembers what was heard: the request that is answered next. */
void scene_heard(client_scene *s, const char *line);
/* A message with REQ and TOKEN filled in; on the heap. */
char *scene_line(const client_scene *s, const char *message);

/* As cmocka tests, whose names begin with that of the group; the result for main. */
int client_fields_run(const char *group, const client_row *rows, size_t count);

#define ANSWER(members) "{\"jsonrpc\":\"2.0\",\"id\":REQ,\"result\":{" members "}}"
#define NOTE(method, members)                                                            \
    "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":{" members "}}"

#endif
