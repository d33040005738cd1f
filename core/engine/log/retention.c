/* Counts the events of a task in groups. Only the newest group grows. When all groups are
 * in use, the two oldest groups are merged. */
#include "engine/log/retention.h"

#include "engine/log/op.h"

/* a group is a group of consecutive events; it has at most 1/PARTS of each limit */
#define PARTS 8

bool sgi_retention_is_bounded(const sgi_retention_limits *limits)
{
    return limits->max_events > 0 || limits->max_bytes > 0 || limits->ttl_ms > 0;
}

static sgi_retention_group *newest(sgi_retention *kept)
{
    return kept->count ? &kept->groups[kept->count - 1] : NULL;
}

static void shift(sgi_retention *kept)
{
    kept->count--;
    memmove(&kept->groups[0], &kept->groups[1],
            (size_t)kept->count * sizeof kept->groups[0]);
}

static bool is_full(const sgi_retention *kept, const sgi_retention_group *group,
                    int64_t at_ms)
{
    const sgi_retention_limits *limits = &kept->limits;
    return (limits->max_events && group->events >= limits->max_events / PARTS) ||
           (limits->max_bytes && (int64_t)group->bytes >= limits->max_bytes / PARTS) ||
           (limits->ttl_ms &&
            sgi_time_sub(at_ms, group->first_ms) >= limits->ttl_ms / PARTS);
}

static sgi_retention_group *open_group(sgi_retention *kept, int64_t at_ms)
{
    sgi_retention_group *groups = kept->groups;
    if (kept->count == SGI_RETENTION_GROUPS) {
        groups[1].events += groups[0].events;
        groups[1].bytes += groups[0].bytes;
        groups[1].segment_bytes += groups[0].segment_bytes;
        groups[1].first_ms = groups[0].first_ms;
        shift(kept);
    }
    groups[kept->count] = (sgi_retention_group){.first_ms = at_ms};
    return &groups[kept->count++];
}

void sgi_retention_count_event(sgi_retention *kept, const sgi_entry *entry)
{
    sgi_retention_group *group = newest(kept);
    if (!group || is_full(kept, group, entry->at_ms))
        group = open_group(kept, entry->at_ms);
    group->event = entry->event;
    group->seq = entry->seq;
    group->events++;
    group->bytes += entry->len;
    if (entry->kind == SGI_ENTRY_SEGMENT)
        group->segment_bytes += entry->len;
    if (entry->at_ms > group->last_ms)
        group->last_ms = entry->at_ms;
    kept->events++;
    kept->bytes += entry->len;
}

static bool is_beyond(const sgi_retention *kept, int64_t now_ms)
{
    const sgi_retention_limits *limits = &kept->limits;
    return (limits->max_events && kept->events > limits->max_events) ||
           (limits->max_bytes && kept->bytes > (size_t)limits->max_bytes) ||
           (limits->ttl_ms &&
            sgi_time_sub(now_ms, kept->groups[0].last_ms) >= limits->ttl_ms);
}

void sgi_retention_apply_limits(sgi_retention *kept, int64_t now_ms)
{
    while (kept->count && is_beyond(kept, now_ms)) {
        const sgi_retention_group *oldest = &kept->groups[0];
        kept->earliest = oldest->event + 1;
        kept->seq = oldest->seq;
        kept->events -= oldest->events;
        kept->bytes -= oldest->bytes;
        kept->gone_bytes += oldest->segment_bytes;
        shift(kept);
    }
}
