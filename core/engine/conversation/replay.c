/* Stores events one after another in the form in which they were sent. `ends` has the
 * position at which each event ends, in the order of the event numbers. Old events are
 * dropped before a new event is added, so the buffer hardly exceeds its limit. */
#include "engine/conversation/replay.h"

#include "base/rare.h"

#include <stdio.h>

#include "wire/sse.h"

void sgi_replay_init(sgi_replay *replay, const sgi_mem *mem, size_t most, int64_t stream,
                     bool primes)
{
    *replay = (sgi_replay){.most = most ? most : SGI_REPLAY_MAX,
                           .stream = stream,
                           .next = 1,
                           .first = 1,
                           .primes = primes};
    sgi_buf_init(&replay->kept, mem);
    sgi_buf_init(&replay->ends, mem);
}

void sgi_replay_free(sgi_replay *replay)
{
    sgi_buf_free(&replay->kept);
    sgi_buf_free(&replay->ends);
}

/* Appends only the line with the id of the next event. The caller writes the other lines
 * of the event directly into the output. */
void sgi_replay_write_next_id(const sgi_replay *replay, sgi_buf *out)
{
    sgi_buf_add_lit(out, "id: ");
    sgi_buf_add_int(out, replay->stream);
    sgi_buf_add_char(out, '-');
    sgi_buf_add_uint(out, replay->next);
    if (sgi_replay_id_follows_event(replay)) {
        sgi_buf_add_char(out, '~');
        sgi_buf_add_str(out, sgi_str_of(replay->tag));
        sgi_buf_add_char(out, '~');
        sgi_buf_add_uint(out, replay->at);
    }
    sgi_buf_add_char(out, '\n');
}

void sgi_replay_write_priming_event(const sgi_replay *replay, sgi_buf *out)
{
    char id[48];
    snprintf(id, sizeof id, "%lld-%llu", (long long)replay->stream,
             (unsigned long long)replay->next - 1);
    /* -1 = no retry field is written, so the client chooses how long it waits */
    sgi_sse_write_priming(out, sgi_str_of(id), -1);
}

static sgi_replay_event_end mark_of(const sgi_replay *replay, uint64_t event)
{
    sgi_replay_event_end mark;
    memcpy(&mark, replay->ends.p + (event - replay->first) * sizeof mark, sizeof mark);
    return mark;
}

static size_t end_of(const sgi_replay *replay, uint64_t event)
{
    return mark_of(replay, event).end;
}

/* Among the events up to number `event`, finds the newest event that is not a
 * notification. Stores the number of this event in `lost`, because the event will be
 * dropped. */
static void note_lost(sgi_replay *replay, uint64_t event)
{
    for (; event >= replay->first && event > replay->lost; event--)
        if (!mark_of(replay, event).is_note)
            replay->lost = event;
}

void sgi_replay_drop_all(sgi_replay *replay)
{
    note_lost(replay,
              replay->first + replay->ends.len / sizeof(sgi_replay_event_end) - 1);
    sgi_buf_reset(&replay->kept, 0);
    sgi_buf_reset(&replay->ends, 0);
    replay->first = replay->next;
}

/* True when n more bytes fit after the events up to number `event` were dropped, and the
 * remaining events use at most half of the limit. */
static bool leaves_room(const sgi_replay *replay, uint64_t event, size_t n)
{
    size_t rest = replay->kept.len - end_of(replay, event);
    return rest <= replay->most / 2 && rest + n <= replay->most;
}

/* Drops all events up to number `event`, including this event. */
static void drop_upto(sgi_replay *replay, uint64_t event)
{
    size_t cut = end_of(replay, event);
    size_t count = (size_t)(replay->next - event - 1);
    sgi_replay_event_end mark;
    note_lost(replay, event);
    sgi_buf_drop_front(&replay->ends, (size_t)(event + 1 - replay->first) * sizeof mark);
    sgi_buf_drop_front(&replay->kept, cut);
    replay->first = event + 1;
    for (size_t i = 0; i < count; i++) {
        memcpy(&mark, replay->ends.p + i * sizeof mark, sizeof mark);
        mark.end -= cut;
        memcpy(replay->ends.p + i * sizeof mark, &mark, sizeof mark);
    }
}

/* Drops events until n more bytes fit. At least the older half of the events is dropped,
 * so that the remaining events are seldom moved in the buffer. */
static void make_room(sgi_replay *replay, size_t n)
{
    uint64_t last = replay->first;
    SGI_RARE(replay_forgot);
    while (!leaves_room(replay, last, n))
        last++;
    drop_upto(replay, last);
}

void sgi_replay_keep(sgi_replay *replay, sgi_str event, bool is_note)
{
    bool fits = event.n <= replay->most;
    if (fits && replay->kept.len + event.n > replay->most)
        make_room(replay, event.n);
    if (fits)
        sgi_buf_add_str(&replay->kept, event);
    const sgi_replay_event_end mark = {.end = replay->kept.len, .is_note = is_note};
    sgi_buf_add(&replay->ends, &mark, sizeof mark);
    replay->next++;
    if (fits && !replay->kept.failed && !replay->ends.failed)
        return;
    sgi_replay_drop_all(replay);
    if (!is_note)
        replay->lost = replay->next - 1;
}

/* Moves the stored events into buffers of the exact size, to free unused memory. When out
 * of memory, drops all events. */
static void give_room_back(sgi_replay *replay)
{
    sgi_buf kept, ends;
    sgi_buf_init(&kept, replay->kept.mem);
    sgi_buf_init(&ends, replay->ends.mem);
    sgi_buf_add_str(&kept, sgi_buf_str(&replay->kept));
    sgi_buf_add_str(&ends, sgi_buf_str(&replay->ends));
    if (kept.failed || ends.failed) {
        sgi_buf_free(&kept);
        sgi_buf_free(&ends);
        sgi_replay_drop_all(replay);
        return;
    }
    sgi_replay_free(replay);
    replay->kept = kept;
    replay->ends = ends;
}

void sgi_replay_drop_half(sgi_replay *replay)
{
    uint64_t last = replay->first;
    if (!replay->kept.len) {
        sgi_replay_drop_all(replay);
        return;
    }
    while (end_of(replay, last) < replay->kept.len - replay->kept.len / 2)
        last++;
    drop_upto(replay, last);
    give_room_back(replay);
}

size_t sgi_replay_size(const sgi_replay *replay)
{
    return replay->kept.cap + replay->ends.cap;
}

void sgi_replay_copy(const sgi_replay *replay, uint64_t after, sgi_buf *out)
{
    size_t from = 0;
    if (after + 1 >= replay->next)
        return;
    if (after >= replay->first) {
        from = end_of(replay, after);
    } else if (after + 1 < replay->first) {
        sgi_buf_add_lit(out, ": events gone: ");
        sgi_buf_add_uint(out, replay->first - after - 1);
        sgi_buf_add_lit(out, "\n\n");
    }
    sgi_buf_add(out, replay->kept.p + from, replay->kept.len - from);
}

bool sgi_replay_parse_id(sgi_str id, int64_t *stream, uint64_t *event)
{
    uint64_t part[2] = {0, 0};
    size_t digits[2] = {0, 0};
    int which = 0;
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];
        if (c == '~')
            break;
        if (c == '-' && which == 0) {
            which = 1;
        } else if (c >= '0' && c <= '9' && ++digits[which] <= 15) {
            part[which] = part[which] * 10 + (uint64_t)(c - '0');
        } else {
            return false;
        }
    }
    *stream = (int64_t)part[0];
    *event = part[1];
    return which == 1 && digits[0] && digits[1];
}

bool sgi_replay_parse_id_position(sgi_str id, char tag[9], uint64_t *at)
{
    const char *mark = id.n ? memchr(id.p, '~', id.n) : NULL;
    /* the id ends with "~", 8 characters of the tag, "~" and digits */
    size_t n = mark ? id.n - (size_t)(mark - id.p) : 0;
    *at = 0;
    if (n < 11 || n > 26 || mark[9] != '~')
        return false;
    for (size_t i = 10; i < n; i++) {
        if (mark[i] < '0' || mark[i] > '9')
            return false;
        *at = *at * 10 + (uint64_t)(mark[i] - '0');
    }
    memcpy(tag, mark + 1, 8);
    tag[8] = 0;
    return true;
}
