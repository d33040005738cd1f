/* The tracker of segments with any numbers, bytes, repeats and failing memory. The
 * checks: segments are passed on from the first number, in order, each once, with the
 * bytes that came first. Held bytes are bounded. A repeat with other bytes is
 * distinguished from an equal one. All memory is freed. */
#include <string.h>

#include "engine/dialect/tasks_2025/tracker.h"
#include "support/fuzz_input.h"
#include "support/test_mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUMBERS 256
#define MAX_HELD 300

/* The first content of each number; -1 = none that counted. */
static int first[NUMBERS + 1];
static uint64_t last;
static uint64_t begin;

static void hand_on(uint64_t number, const char *bytes, size_t len)
{
    fuzz_check(number == last + 1);
    last = number;
    fuzz_check(number > NUMBERS || first[number] == (int)len);
    for (size_t i = 0; i < len; i++)
        fuzz_check(bytes[i] == (char)len);
}

static uint64_t number_of(fuzz_input *in)
{
    uint8_t how = fuzz_byte(in);
    if (how == 255)
        return UINT64_C(1) << 53;
    return how < 128 ? last + how % 8 + (last + how % 8 == 0) : 1 + how % 128u;
}

static void check_verdict(const sgi_tracker *tracker, uint64_t number, size_t len,
                          uint64_t before, sgi_tracked tracked)
{
    int known = number <= NUMBERS ? first[number] : -1;
    if (number <= NUMBERS && known < 0 && number >= begin &&
        (tracked == SGI_TRACKED_NEXT || tracked == SGI_TRACKED_HELD))
        first[number] = (int)len;
    if (tracked == SGI_TRACKED_OTHER && number <= NUMBERS)
        fuzz_check(known >= 0 && known != (int)len);
    if (tracked == SGI_TRACKED_NEXT)
        fuzz_check(number == before + 1);
    if (number <= before)
        fuzz_check(tracked == SGI_TRACKED_REPEAT || tracked == SGI_TRACKED_OTHER);
    fuzz_check(tracker->highest >= number || number <= before);
}

static void step(fuzz_input *in, sgi_tracker *tracker, test_mem *tm)
{
    char bytes[64];
    sgi_held_segment *held;
    uint64_t number = number_of(in);
    size_t len = fuzz_byte(in) % sizeof bytes;
    uint64_t before = last;
    memset(bytes, (int)len, sizeof bytes);
    test_mem_rearm(tm);
    if (fuzz_one_in(in, 6))
        tm->fail_at = 1 + fuzz_below(in, 3);
    sgi_tracked tracked = sgi_tracker_add(tracker, number, (sgi_str){bytes, len});
    check_verdict(tracker, number, len, before, tracked);
    if (tracked == SGI_TRACKED_NEXT) {
        hand_on(number, bytes, len);
        while ((held = sgi_tracker_pop(tracker))) {
            hand_on(held->number, held->bytes, held->len);
            sgi_tracker_release(tracker, held);
        }
    }
    fuzz_check(sgi_tracker_prefix(tracker) == last);
    fuzz_check(tracker->held_bytes <= MAX_HELD);
    fuzz_check(sgi_tracker_has_hole(tracker) == (tracker->highest > last));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t seed[2] = {3, 4};
    fuzz_input in = {data, size};
    sgi_tracker tracker;
    test_mem tm;
    test_mem_init(&tm);
    for (int i = 0; i <= NUMBERS; i++)
        first[i] = -1;
    begin = fuzz_one_in(&in, 4) ? 1 + fuzz_below(&in, 50) : 1;
    last = begin - 1;
    sgi_tracker_init(&tracker, &tm.mem, seed, begin, MAX_HELD);
    while (in.left)
        step(&in, &tracker, &tm);
    sgi_tracker_free(&tracker);
    fuzz_check(tm.live == 0);
    return 0;
}
