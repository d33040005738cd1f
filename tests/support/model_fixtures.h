/* Both ends of a question to a model. The server has tools that ask a model: ask_model
 * (plain) and ask_model_task (a task). Their result is the answer that on_input got, as
 * text. The client has a host that plays the model and gives the answers of the test.
 * Only the public API is used. */
#ifndef MODEL_FIXTURES_H
#define MODEL_FIXTURES_H

#include <segue/segue.h>

segue_status model_tools_add(segue_runtime *runtime, segue_server *server);

/* A call to the host. */
typedef struct model_call {
    struct model_call *next;
    struct model *model;
    segue_call *call; /* NULL once the call has ended */
    int cancelled;
    char params[1024];
} model_call;

typedef struct model {
    segue_runtime *runtime;
    segue_server *host;
    model_call *calls; /* newest call first */
    int count;
    int at_once;       /* set by the test: 1 = a call is answered in its first turn */
    const char *first; /* set by the test: text that a call sends in its first turn */
} model;

/* Makes the host of the client. options and item may be NULL. Unset members of the item
 * become INCREMENTAL and SEGUE_TASK_MAY. */
void model_begin(model *m, segue_runtime *runtime, const segue_server_options *options,
                 const segue_item_options *item);
/* Makes the host with the defaults; returns 0 when the host could not be made. */
int model_try(model *m, segue_runtime *runtime);
/* Frees the host and its calls. */
void model_end(model *m);

/* Adds one more piece to the answer. */
segue_status model_say(model_call *c, const char *text);
segue_status model_field(model_call *c, const char *name, const char *json);
/* Ends the answer with model "m-1" and stopReason "endTurn". */
segue_status model_complete(model_call *c);
segue_status model_fail(model_call *c, int code, const char *message);

#endif
