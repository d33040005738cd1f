/* What the client of the conformance suite does with a session, whatever the server:
 * it lists everything, calls each tool, reads each resource, gets each prompt, and
 * answers questions. One thread. Public API only; JSON by jansson.
 *
 * A call belongs to the play, and lives as long. The play ends when every call has
 * ended. */
#ifndef PLAY_H
#define PLAY_H

#include <segue/segue.h>

#include <jansson.h>
#include <stdbool.h>

typedef struct play play;

typedef enum call_state {
    CALL_PLANNED = 0,
    CALL_RUNNING,
    CALL_ASKING, /* the server waits for answers */
    CALL_ENDED
} call_state;

typedef struct call {
    struct call *next;
    play *p;
    const char *method; /* a static text */
    json_t *params;
    json_t *questions; /* array of {"key","method","params"} without an answer */
    segue_request *request;
    call_state state;
    bool is_list; /* a list: its items are played next */
} call;

struct play {
    segue_runtime *runtime;
    segue_session *session;
    const char *scenario;
    json_t *context; /* the suite's data for the scenario, or NULL */
    json_t *tools;   /* all tools that were listed */
    call *calls;
    call **last;
    bool is_open, has_tools, has_failed;
};

void play_init(play *p, segue_runtime *runtime, const char *scenario, json_t *context);
void play_free(play *p);
/* Called when the session is open: plays, and closes the session at the end. */
void play_begin(play *p);
/* Prints what went wrong; the program then ends with a failure. */
void play_failed(play *p, const char *what, const char *why);

/* ---- arguments.c: values that fit a schema. New references, never NULL. ---- */

/* Makes the required members. without_defaults: members with a default are left out. */
json_t *object_for(const json_t *schema, bool without_defaults);
/* Makes the params of tools/call. */
json_t *tool_params(const play *p, const json_t *tool);
/* Makes the answer to a question of the server. */
json_t *answer_to(const char *method, const json_t *params);

#endif
