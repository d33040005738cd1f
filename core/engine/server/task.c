#include "engine/server/task.h"

#include "engine/log/dropping.h"
#include "engine/server/dialects.h"
#include "engine/server/rounds.h"

#include <stdio.h>

static int64_t clamp_ttl(const sgi_op *op, int64_t wanted)
{
    int64_t most = sgi_op_server(op)->options.max_ttl_ms;
    int64_t ttl = wanted ? wanted : op->served->item->options.ttl_ms;
    if (most < 0)
        return ttl; /* the server does not limit the time to live */
    return ttl < 0 || ttl > most ? most : ttl;
}

/* Rounds a time to live up to a multiple of the dialect's unit, so that no task expires
 * early (R-2557-2). */
static int64_t round_ttl(const sgi_op *op, int64_t ttl_ms)
{
    int64_t unit = op->served->dialect ? op->served->dialect->ttl_unit_ms : 0;
    if (!unit || ttl_ms < 0 || ttl_ms % unit == 0 || ttl_ms > INT64_MAX - unit)
        return ttl_ms;
    return ttl_ms - ttl_ms % unit + unit;
}

/* Gives the operation an id, and stores the operation. tasking: the new value of the
 * head's member. */
static segue_status give_identity(sgi_op *op, int64_t ttl_ms, sgi_tasking tasking)
{
    sgi_tasking before = op->head.tasking;
    char id[SGI_OPERATION_TEXT + 1];
    if (!sgi_operation_text(&op->engine->env, id) ||
        !sgi_operation_id(&op->engine->env, op->id))
        return SEGUE_E_FATAL;
    op->ttl_ms = round_ttl(op, clamp_ttl(op, ttl_ms));
    if (op->served->lasting && tasking != SGI_TASKING_YES && !op->key)
        /* the dialect limits how long a lasting call (its client can leave and come back)
         * lives, so the operation itself has no time limit */
        op->ttl_ms = -1;
    op->served->poll_ms = op->served->item->options.poll_ms;
    op->head.tasking = tasking;
    segue_status status = sgi_op_turn_into_stored(op, sgi_str_of(id));
    if (status != SEGUE_OK) {
        op->head.tasking = before;
        return status;
    }
    if (tasking != SGI_TASKING_NO && op->served->dialect && op->served->dialect->retains)
        sgi_op_limit_retained_events(op);
    sgi_server_put_in_maps(op);
    sgi_server_start_ttl(op);
    return SEGUE_OK;
}

/* Logs that a stored call becomes a task. */
static segue_status append_task(sgi_op *op, int64_t ttl_ms)
{
    char text[40];
    snprintf(text, sizeof text, "{\"ttl\":%lld}",
             (long long)round_ttl(op, clamp_ttl(op, ttl_ms)));
    segue_status status = sgi_op_append(op, SGI_ENTRY_TASK, sgi_str_of(text));
    if (status == SEGUE_OK)
        sgi_server_start_ttl(op);
    return status;
}

segue_status sgi_op_turn_into_task(sgi_op *op, int64_t ttl_ms)
{
    int32_t others = op->served->who->live_tasks - (op->served->round != NULL);
    if (others >= sgi_op_server(op)->options.max_tasks)
        return SEGUE_E_LIMIT;
    segue_status status = sgi_op_is_logged(op)
                              ? append_task(op, ttl_ms)
                              : give_identity(op, ttl_ms, SGI_TASKING_YES);
    if (status == SEGUE_OK) {
        sgi_round_end(op);
        sgi_op_server(op)->counts.tasks++;
        op->served->who->live_tasks++;
        op->served->counted = true;
        sgi_engine_clear_timer(op->engine, &op->served->promote);
        sgi_task_log_begin(op);
    }
    return status;
}

segue_status sgi_op_store_without_task(sgi_op *op)
{
    /* a stored call whose client can leave and come back cannot become a task */
    segue_status status =
        give_identity(op, 0, op->served->lasting ? SGI_TASKING_NO : op->head.tasking);
    if (status == SEGUE_OK && op->served->lasting) {
        op->served->who->live_tasks++;
        op->served->counted = true;
    }
    return status;
}
