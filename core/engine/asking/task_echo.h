/* requestState of a task of DRAFT-2026-v1: a text of the server's that goes back with the
 * next request about the task, byte by byte as it came (R-2557-32). It belongs to the
 * task: a handle of the application has it for all requests made from it. */
#ifndef SGI_TASK_ECHO_H
#define SGI_TASK_ECHO_H

#include "base/base.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

typedef struct segue_request segue_request;

typedef struct sgi_echo {
    char *text; /* a JSON string, with its quotes; NULL = none */
    size_t len;
} sgi_echo;

/* false: out of memory, and it holds none. Empty: none. */
bool sgi_echo_set(sgi_echo *echo, const sgi_mem *mem, sgi_json text);
void sgi_echo_free(sgi_echo *echo, const sgi_mem *mem);

/* What the application's request knows of its task. */
sgi_json sgi_task_echo(const segue_request *request);
/* A message about the task has come. An answer without the member clears it, a
 * notification does not. */
void sgi_task_echo_note(segue_request *request, sgi_json task, bool is_answer);
/* The member, into the params of a request about the task. */
void sgi_task_echo_write(const segue_request *request, sgi_jw *w);

#endif
