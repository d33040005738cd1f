#include "transport/resumptions.h"

#include "base/backoff.h"
#include "base/thresholds.h"

#define RETRY_FIRST_MS SGI_THRESHOLD(sse_retry_ms)
#define RETRY_LEAST_MS 10
/* The longest pause in ms before a resumption, unless the server asks for a longer
 * pause. */
#define RETRY_MOST_MS 30000
#define RETRY_UNSAID (-1)
/* maximum number of resumptions in a row that fail */
#define RESUMPTIONS_MAX SGI_THRESHOLD(resumptions_max)
#define STEADY_MS SGI_THRESHOLD(steady_ms)

void sgi_resumptions_init(sgi_resumptions *resumptions, bool is_endless)
{
    *resumptions = (sgi_resumptions){.retry_ms = RETRY_UNSAID, .is_endless = is_endless};
}

void sgi_resumptions_on_begin(sgi_resumptions *resumptions, int64_t now)
{
    resumptions->opened_ms = now;
}

void sgi_resumptions_on_end(sgi_resumptions *resumptions, int64_t now, bool was_silent)
{
    int64_t opened_ms = resumptions->opened_ms;
    resumptions->opened_ms = 0;
    if (opened_ms && !was_silent && sgi_time_sub(now, opened_ms) >= STEADY_MS) {
        resumptions->count = 0;
        resumptions->was_short = false;
    }
}

bool sgi_resumptions_are_left(const sgi_resumptions *resumptions)
{
    return resumptions->count < RESUMPTIONS_MAX;
}

bool sgi_resumptions_have_retry_time(const sgi_resumptions *resumptions)
{
    return resumptions->retry_ms != RETRY_UNSAID;
}

bool sgi_resumptions_are_polls(const sgi_resumptions *resumptions)
{
    return sgi_resumptions_have_retry_time(resumptions) && !resumptions->count;
}

int64_t sgi_resumptions_begin(sgi_resumptions *resumptions)
{
    sgi_backoff coming = {.first_ms = RETRY_FIRST_MS, .most_ms = RETRY_MOST_MS};
    int64_t retry_ms = resumptions->retry_ms;
    int32_t failures = resumptions->count++;
    bool waits = !failures && resumptions->is_endless && resumptions->was_short;
    resumptions->was_short = false;
    if (retry_ms == RETRY_UNSAID)
        return sgi_backoff_ms(&coming, waits ? 1 : failures);
    coming.first_ms = retry_ms < RETRY_LEAST_MS ? RETRY_LEAST_MS : retry_ms;
    if (coming.most_ms < coming.first_ms)
        coming.most_ms = coming.first_ms;
    return sgi_backoff_ms(&coming, resumptions->count);
}

void sgi_resumptions_on_event(sgi_resumptions *resumptions, const sgi_sse_event *event,
                              bool is_message)
{
    if (event->has_retry)
        resumptions->retry_ms = event->retry_ms;
    if (is_message || (event->has_id && resumptions->retry_ms != RETRY_UNSAID))
        /* The stream makes progress, or its server asks to be polled: it sends an id
         * without a message, and has said when to come again. So counting the resumptions
         * starts again. */
        resumptions->count = 0;
    resumptions->was_short |= is_message;
}
