/* Both ends of a question to a model. The server has tools that ask one, whose result is
 * what on_input got, as text: ask_model (plain), ask_model_task (a task). The client has
 * a host that plays the model, and says what the test tells it to. Public API only. */
#ifndef MODEL_FIXTURES_H
#define MODEL_FIXTURES_H

#include <segue/segue.h>

segue_status model_tools_add(segue_runtime *runtime, segue_server *server);

/* A call that the host has. */
typedef struct model_call {
    struct model_call *next;
    struct model *model;
    segue_call *call; /* NULL once it has ended */
    int cancelled;
    char params[1024];
} model_call;

typedef struct model {
    segue_runtime *runtime;
    segue_server *host;
    model_call *calls; /* the last one first */
    int count;
    int at_once;       /* set by the test: it answers in its first turn, */
    const char *first; /* ... or says this in it */
} model;

/* options, item: may be NULL: what is not set there is INCREMENTAL, SEGUE_TASK_MAY. */
void model_begin(model *m, segue_runtime *runtime, const segue_server_options *options,
                 const segue_item_options *item);
/* The same with the defaults; 0 when it could not be made. */
int model_try(model *m, segue_runtime *runtime);
/* Lets go of the host, and of the calls. */
void model_end(model *m);

/* One more piece of the answer. */
segue_status model_say(model_call *c, const char *text);
segue_status model_field(model_call *c, const char *name, const char *json);
/* The end: model "m-1", stopReason "endTurn". */
segue_status model_complete(model_call *c);
segue_status model_fail(model_call *c, int code, const char *message);

#endif
