/* Counts the events of a task in shares. Only the newest share grows. When all shares are
 * in use, the two oldest shares are merged. */
#include "engine/log/retention.h"

#include "engine/log/op.h"

/* a share is a group of consecutive events; it has at most 1/PARTS of each limit */
#define PARTS 8

bool sgi_retention_is_bounded(const sgi_retention_limits *limits)
{
    return limits->max_events > 0 || limits->max_bytes > 0 || limits->ttl_ms > 0;
}

static sgi_retention_share *newest(sgi_retention *kept)
{
    return kept->count ? &kept->shares[kept->count - 1] : NULL;
}

static void shift(sgi_retention *kept)
{
    kept->count--;
    memmove(&kept->shares[0], &kept->shares[1],
            (size_t)kept->count * sizeof kept->shares[0]);
}

static bool is_full(const sgi_retention *kept, const sgi_retention_share *share,
                    int64_t at_ms)
{
    const sgi_retention_limits *limits = &kept->limits;
    return (limits->max_events && share->events >= limits->max_events / PARTS) ||
           (limits->max_bytes && (int64_t)share->bytes >= limits->max_bytes / PARTS) ||
           (limits->ttl_ms &&
            sgi_time_sub(at_ms, share->first_ms) >= limits->ttl_ms / PARTS);
}

static sgi_retention_share *open_share(sgi_retention *kept, int64_t at_ms)
{
    sgi_retention_share *shares = kept->shares;
    if (kept->count == SGI_RETENTION_SHARES) {
        shares[1].events += shares[0].events;
        shares[1].bytes += shares[0].bytes;
        shares[1].segment_bytes += shares[0].segment_bytes;
        shares[1].first_ms = shares[0].first_ms;
        shift(kept);
    }
    shares[kept->count] = (sgi_retention_share){.first_ms = at_ms};
    return &shares[kept->count++];
}

void sgi_retention_add(sgi_retention *kept, const sgi_entry *entry)
{
    sgi_retention_share *share = newest(kept);
    if (!share || is_full(kept, share, entry->at_ms))
        share = open_share(kept, entry->at_ms);
    share->event = entry->event;
    share->seq = entry->seq;
    share->events++;
    share->bytes += entry->len;
    if (entry->kind == SGI_ENTRY_SEGMENT)
        share->segment_bytes += entry->len;
    if (entry->at_ms > share->last_ms)
        share->last_ms = entry->at_ms;
    kept->events++;
    kept->bytes += entry->len;
}

static bool is_beyond(const sgi_retention *kept, int64_t now_ms)
{
    const sgi_retention_limits *limits = &kept->limits;
    return (limits->max_events && kept->events > limits->max_events) ||
           (limits->max_bytes && kept->bytes > (size_t)limits->max_bytes) ||
           (limits->ttl_ms &&
            sgi_time_sub(now_ms, kept->shares[0].last_ms) >= limits->ttl_ms);
}

void sgi_retention_apply_limits(sgi_retention *kept, int64_t now_ms)
{
    while (kept->count && is_beyond(kept, now_ms)) {
        const sgi_retention_share *oldest = &kept->shares[0];
        kept->earliest = oldest->event + 1;
        kept->seq = oldest->seq;
        kept->events -= oldest->events;
        kept->bytes -= oldest->bytes;
        kept->gone_bytes += oldest->segment_bytes;
        shift(kept);
    }
}
