/* Checks of client.c: the tasks of 2025-11-25, of a server that has the tools `work` and
 * `fail_at_work`. A server without them has no such tasks. */
#ifndef CLIENT_TASKS_H
#define CLIENT_TASKS_H

#include "probe.h"

const char *check_task_result(peer *p);
const char *check_task_failure(peer *p);
const char *check_task_cancel(peer *p);
const char *check_task_found_again(peer *p);
const char *check_task_list(peer *p);
const char *check_task_unknown(peer *p);

#endif
