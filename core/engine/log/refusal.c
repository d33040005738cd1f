#include "engine/log/refusal.h"

#include "base/thresholds.h"

#include <stdio.h>

#define RETRY_AFTER_MS SGI_THRESHOLD(refused_again_ms)

typedef struct reason_row {
    segue_status status;
    const char *reason;
    const char *text;
    bool retry;
} reason_row;

static const reason_row reason_rows[] = {
#define SGI_REASON(status, reason, text, retry) {status, reason, text, retry},
#include "api/reasons.def"
#undef SGI_REASON
};

static const reason_row *find_reason(segue_status status)
{
    for (size_t i = 0; i < sizeof reason_rows / sizeof *reason_rows; i++)
        if (reason_rows[i].status == status)
            return &reason_rows[i];
    bool is_ours = status == SEGUE_E_CLOSED || status == SEGUE_E_TERMINAL;
    /* these two statuses do not come from the store, so no row of the table applies */
    return is_ours ? NULL : reason_rows;
}

static const char *const failure_texts[] = {
    [SGI_UNSTORED] = "The server cannot store the operation",
    [SGI_PUT_OFF] = "The server cannot make the change now",
    [SGI_UNREADABLE] = "The server cannot read the operation",
    [SGI_UNLISTED] = "The server cannot list the tasks",
};

/* True when the same request may succeed later, so that the error tells the client when
 * to try again (retryAfterMs). An operation that failed because it was not stored stays
 * failed, so its error has no retryAfterMs. */
static bool may_pass(sgi_store_failure failure, segue_status status)
{
    if (failure == SGI_UNSTORED)
        return false;
    return status == SEGUE_E_STORE || status == SEGUE_E_NOMEM ||
           (status == SEGUE_E_STORE_FULL && failure == SGI_PUT_OFF);
}

sgi_store_refusal sgi_store_refusal_of(sgi_store_failure failure, segue_status status)
{
    const reason_row *row = find_reason(status);
    const char *what = failure_texts[failure];
    sgi_store_refusal refusal;
    snprintf(refusal.text, sizeof refusal.text, row ? "%s: %s" : "%s", what,
             row ? row->text : "");
    if (!row)
        *refusal.data = 0;
    else if (row->retry || may_pass(failure, status))
        snprintf(refusal.data, sizeof refusal.data,
                 "{\"reason\":\"%s\",\"retryAfterMs\":%d}", row->reason, RETRY_AFTER_MS);
    else
        snprintf(refusal.data, sizeof refusal.data, "{\"reason\":\"%s\"}", row->reason);
    return refusal;
}
