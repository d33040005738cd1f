/* A held segment waits for an earlier segment that is missing. Held segments are in an
 * array, sorted by number, and found by binary search. The array is short, because
 * segments nearly always arrive in order. */
#include "engine/dialect/tasks_2025/tracker.h"

#include "base/map.h"

void sgi_tracker_init(sgi_tracker *tracker, const sgi_mem *mem, const uint64_t seed[2],
                      uint64_t next, size_t max_bytes)
{
    *tracker = (sgi_tracker){.mem = mem,
                             .seed = {seed[0], seed[1]},
                             .next = next,
                             .highest = next - 1,
                             .max_bytes = max_bytes,
                             .first_hash = next};
    sgi_buf_init(&tracker->held, mem);
    sgi_buf_init(&tracker->hashes, mem);
}

static size_t held_count(const sgi_tracker *tracker)
{
    return tracker->held.len / sizeof(sgi_held_segment *);
}

static sgi_held_segment *held_at(const sgi_tracker *tracker, size_t i)
{
    sgi_held_segment *held;
    memcpy(&held, tracker->held.p + i * sizeof held, sizeof held);
    return held;
}

void sgi_tracker_release(sgi_tracker *tracker, sgi_held_segment *held)
{
    sgi_free(tracker->mem, held, sizeof *held + held->len);
}

void sgi_tracker_free(sgi_tracker *tracker)
{
    for (size_t i = 0; i < held_count(tracker); i++)
        sgi_tracker_release(tracker, held_at(tracker, i));
    sgi_buf_free(&tracker->held);
    sgi_buf_free(&tracker->hashes);
    tracker->held_bytes = 0;
}

/* ---- segments that were passed on ---- */

/* Moves `next` past a segment and remembers the hash of the segment. When out of memory,
 * drops older hashes. A repeated segment without a stored hash is accepted as equal. */
static void hand_on(sgi_tracker *tracker, uint64_t hash)
{
    sgi_buf *hashes = &tracker->hashes;
    if (hashes->len >= 2 * SGI_TRACKER_WINDOW * sizeof hash) {
        sgi_buf_drop_front(hashes, SGI_TRACKER_WINDOW * sizeof hash);
        tracker->first_hash += SGI_TRACKER_WINDOW;
    }
    sgi_buf_add(hashes, &hash, sizeof hash);
    tracker->next++;
    if (hashes->failed) {
        sgi_buf_reset(hashes, 0);
        tracker->first_hash = tracker->next;
    }
    if (tracker->highest < tracker->next - 1)
        tracker->highest = tracker->next - 1;
}

static sgi_tracked compare(uint64_t known, uint64_t hash)
{
    return known == hash ? SGI_TRACKED_REPEAT : SGI_TRACKED_OTHER;
}

static sgi_tracked take_known(const sgi_tracker *tracker, uint64_t number, uint64_t hash)
{
    uint64_t known;
    if (number < tracker->first_hash)
        /* this segment's hash is no longer stored, so the repeated segment is accepted as
         * equal */
        return SGI_TRACKED_REPEAT;
    memcpy(&known, tracker->hashes.p + (number - tracker->first_hash) * sizeof known,
           sizeof known);
    return compare(known, hash);
}

/* ---- held segments ---- */

/* Returns the index of the first held segment whose number is not below `number`. */
static size_t find(const sgi_tracker *tracker, uint64_t number)
{
    size_t low = 0;
    size_t high = held_count(tracker);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (held_at(tracker, middle)->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static sgi_tracked hold(sgi_tracker *tracker, size_t at, uint64_t number, uint64_t hash,
                        sgi_str bytes)
{
    sgi_buf *all = &tracker->held;
    if (held_count(tracker) >= SGI_TRACKER_HELD_MAX ||
        bytes.n > tracker->max_bytes - tracker->held_bytes)
        return SGI_TRACKED_FULL;
    sgi_held_segment *held = sgi_alloc(tracker->mem, sizeof *held + bytes.n);
    if (!held || !sgi_buf_reserve(all, sizeof held)) {
        /* the array could not grow; it is unchanged and still valid */
        all->failed = false;
        sgi_free(tracker->mem, held, sizeof *held + bytes.n);
        return SGI_TRACKED_NOMEM;
    }
    *held = (sgi_held_segment){.number = number, .hash = hash, .len = bytes.n};
    memcpy(held->bytes, bytes.p, bytes.n);
    char *place = all->p + at * sizeof held;
    memmove(place + sizeof held, place, all->len - at * sizeof held);
    memcpy(place, &held, sizeof held);
    all->len += sizeof held;
    tracker->held_bytes += bytes.n;
    return SGI_TRACKED_HELD;
}

sgi_tracked sgi_tracker_add(sgi_tracker *tracker, uint64_t number, sgi_str bytes)
{
    uint64_t hash = sgi_siphash(tracker->seed, bytes.p, bytes.n);
    if (number < tracker->next)
        return take_known(tracker, number, hash);
    if (number > tracker->highest)
        tracker->highest = number;
    /* No held segment has this number. After an earlier segment, sgi_tracker_pop has
     * returned all segments that follow. */
    if (number == tracker->next) {
        hand_on(tracker, hash);
        return SGI_TRACKED_NEXT;
    }
    size_t at = find(tracker, number);
    if (at < held_count(tracker) && held_at(tracker, at)->number == number)
        return compare(held_at(tracker, at)->hash, hash);
    return hold(tracker, at, number, hash, bytes);
}

sgi_held_segment *sgi_tracker_pop(sgi_tracker *tracker)
{
    if (!held_count(tracker) || held_at(tracker, 0)->number != tracker->next)
        return NULL;
    sgi_held_segment *held = held_at(tracker, 0);
    sgi_buf_drop_front(&tracker->held, sizeof held);
    tracker->held_bytes -= held->len;
    hand_on(tracker, held->hash);
    return held;
}

bool sgi_tracker_has(const sgi_tracker *tracker, uint64_t number)
{
    size_t at = find(tracker, number);
    return number < tracker->next ||
           (at < held_count(tracker) && held_at(tracker, at)->number == number);
}
