/* requestState of a task of DRAFT-2026-v1 (D): a text of the server that the client sends
 * back unchanged with its next request about the task (R-2557-32). The text belongs to
 * the task. So a task handle stores the text for all requests that are made from the
 * handle. */
#ifndef SGI_TASK_ECHO_H
#define SGI_TASK_ECHO_H

#include "engine/client/dialects.h"

/* The state of a task of DRAFT-2026-v1 (dialect D), for a request that was made without a
 * task handle. */
typedef struct sgi_draft_task {
    sgi_cli_dialect_state state;
    /* requestState: a JSON string with its quotes; empty = the task has no
     * requestState */
    sgi_buf echo;
} sgi_draft_task;

/* Returns the requestState of the request's task; may be empty. */
sgi_json sgi_task_request_state_of(const segue_request *request);
/* Stores the requestState from a message about the task. When an answer has no
 * requestState, the stored text is cleared. When a notification has no requestState, the
 * stored text stays. */
void sgi_task_request_state_store(segue_request *request, sgi_json task, bool is_answer);
/* Writes the member requestState into the params of a request about the task. */
void sgi_task_request_state_write(const segue_request *request, sgi_jw *w);

/* The next two functions are members of the dialect's table. */
void sgi_task_request_state_free(segue_request *request, sgi_cli_dialect_state *state);
bool sgi_task_request_state_restore(segue_request *request, const sgi_request_spec *spec);

#endif
