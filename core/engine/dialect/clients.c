/* All dialects of the client, in the order in which a request calls them. The tasks of
 * 2025-11-25 and of the draft stand before those of 2026-07-28 (sgi_cli_tasks_ext),
 * because read_token of sgi_cli_tasks_ext accepts every token of a task. */
#include "engine/dialect/rows.h"
#include "engine/client/dialects.h"

const sgi_cli_dialect *const sgi_cli_dialects[] = {
    &sgi_cli_tasks,          &sgi_cli_tasks_2025, &sgi_cli_tasks_draft,
    &sgi_cli_partial,        &sgi_cli_tasks_ext,  &sgi_cli_task_events,
    &sgi_cli_partial_result, &sgi_cli_resumable,  NULL,
};
