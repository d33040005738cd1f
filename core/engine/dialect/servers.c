/* All dialects of the server, in the order in which the server calls them. */
#include "engine/dialect/rows.h"
#include "engine/server/dialects.h"

const sgi_srv_dialect *const sgi_srv_dialects[] = {
    &sgi_srv_tasks_2025, &sgi_srv_tasks_draft,
    &sgi_srv_tasks_ext,  &sgi_srv_task_events,
    &sgi_srv_partial,    &sgi_srv_partial_result,
    &sgi_srv_resumable,  NULL,
};
