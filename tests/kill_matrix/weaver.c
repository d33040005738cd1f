/* The tool `weave` makes segments at a steady pace. Each run makes texts that no other
 * run makes. So a segment that was published and then made again, by the same server
 * after a crash or by another one, does not look the same:
 *
 *   NUMBER run NONCE at NANOSECONDS: padding
 *
 * NUMBER is the segment's own, NONCE that of the run, and the time is CLOCK_MONOTONIC,
 * which is the same for all processes of a machine.
 *
 * Every CHECKPOINT_EVERY segments the run leaves a checkpoint with its present number.
 * The checkpoint that a later run finds must be the last one before the segments that
 * it goes on from. If it is not, the call fails, and the readers count its segments as
 * lost. */
#include "weaver.h"

#include "history.h"

#include <inttypes.h>
#include <segue/segue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define CHECKPOINT_EVERY 8
#define LARGEST_TEXT 1048576
#define LONGEST_LABEL 96
#define MOST_LATE 10 /* number of segments */

typedef struct weaving {
    LIST_ENTRY(weaving) link;
    weaver *owner;
    segue_call *call; /* NULL once the call has ended */
    int64_t count;
    int64_t next; /* number of the next segment, from 1 */
    int64_t size; /* maximum size of a text, in bytes */
    int64_t pace_ns;
    int64_t due_ns;
    uint64_t nonce;
    uint64_t random;
    bool blocked;  /* waiting for on_drain */
    char name[64]; /* the argument "call": the name of the call in the history */
} weaving;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* xorshift64* */
static uint64_t draw(weaving *w)
{
    w->random ^= w->random >> 12;
    w->random ^= w->random << 25;
    w->random ^= w->random >> 27;
    return w->random * 0x2545f4914f6cdd1du;
}

/* Writes also characters that JSON must escape, and characters of several bytes. */
static size_t write_text(weaving *w, char *text)
{
    static const char *const bits[] = {
        "warp ", "weft ", "\xc3\xa9t\xc3\xa9 ", "\"", "\\", "\n",
        "\t",    "</x>",  "\xf0\x9f\xa7\xb5",   "0",  "{",  "\xe2\x80\xa8"};
    size_t len = (size_t)snprintf(text, LONGEST_LABEL,
                                  "%" PRId64 " run %016" PRIx64 " at %" PRId64 ": ",
                                  w->next, w->nonce, now_ns());
    size_t most = (size_t)(draw(w) % (uint64_t)w->size);
    for (;;) {
        const char *bit = bits[draw(w) % (sizeof bits / sizeof *bits)];
        size_t bit_len = strlen(bit);
        if (len + bit_len > most)
            return len;
        memcpy(text + len, bit, bit_len);
        len += bit_len;
    }
}

static void end(weaving *w)
{
    segue_call_free(w->call);
    w->call = NULL;
}

/* In the kill matrix only the library cancels a weaving: when another server has become
 * the owner of its task. */
static void let_go(weaving *w, const char *why)
{
    w->owner->let_go++;
    printf("let go %" PRId64 " %s\n", w->next, why);
    fflush(stdout);
    end(w);
}

static segue_status leave_checkpoint(weaving *w, int64_t number)
{
    if (number % CHECKPOINT_EVERY)
        return SEGUE_OK;
    char text[32];
    int len = snprintf(text, sizeof text, "%" PRId64, number);
    return segue_call_checkpoint(w->call, text, (size_t)len, NULL);
}

/* Sends what is due by now. A run that was stopped sends only a few late segments at a
 * time: it must still be busy when it is told that another server owns the task. */
static void go_on(weaving *w)
{
    int64_t first_ns = now_ns() - MOST_LATE * w->pace_ns;
    if (w->due_ns < first_ns)
        w->due_ns = first_ns;
    static char text[LARGEST_TEXT + LONGEST_LABEL];
    while (w->next <= w->count) {
        if (w->blocked || w->due_ns > now_ns())
            return;
        size_t len = write_text(w, text);
        if (*w->name)
            history_made(w->name, w->next, text, len);
        segue_status status = segue_call_send_text(w->call, text, len, NULL);
        if (status == SEGUE_E_WOULD_BLOCK) {
            w->blocked = true;
            return;
        }
        if (status == SEGUE_OK)
            status = leave_checkpoint(w, w->next);
        if (status != SEGUE_OK) {
            let_go(w, segue_status_name(status));
            return;
        }
        w->next++;
        w->due_ns += w->pace_ns;
    }
    segue_call_complete(w->call, NULL, NULL); /* the result consists of what was sent */
    end(w);
}

static void on_drain(void *user, segue_call *call)
{
    weaving *w = user;
    (void)call;
    w->blocked = false;
}

static void on_cancel(void *user, segue_call *call)
{
    (void)call;
    let_go(user, "cancelled");
}

static void weaving_gone(void *user)
{
    weaving *w = user;
    segue_call_free(w->call);
    LIST_REMOVE(w, link);
    free(w);
}

/* The segment is stored before its checkpoint, and both before the next segment. */
static bool checkpoint_fits(uint64_t done, const void *data, size_t len)
{
    char text[32] = "0";
    if (data && len < sizeof text)
        memcpy(text, data, len);
    uint64_t found = strtoull(text, NULL, 10);
    uint64_t last = done - done % CHECKPOINT_EVERY;
    return found == last || (done == last && found + CHECKPOINT_EVERY == last);
}

static int64_t argument(segue_call *call, const char *name, int64_t fallback,
                        int64_t most)
{
    int64_t value = fallback;
    segue_call_argument_int(call, name, &value);
    return value < 1 ? 1 : value > most ? most : value;
}

static weaving *begin(weaver *owner, segue_call *call)
{
    weaving *w = calloc(1, sizeof *w);
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    if (!w)
        return NULL;
    events.user = w;
    events.free_user = weaving_gone;
    events.on_cancel = on_cancel;
    events.on_drain = on_drain;
    w->owner = owner;
    w->call = call;
    w->count = argument(call, "count", 100, 1000000);
    w->size = argument(call, "size", 200, LARGEST_TEXT);
    w->pace_ns = argument(call, "paceUs", 10000, 60000000) * 1000;
    w->due_ns = now_ns();
    const char *name;
    size_t len;
    if (segue_call_argument_text(call, "call", &name, &len) == SEGUE_OK &&
        len < sizeof w->name)
        memcpy(w->name, name, len);
    if (getrandom(&w->nonce, sizeof w->nonce, 0) != (ssize_t)sizeof w->nonce)
        w->nonce = (uint64_t)w->due_ns;
    w->random = w->nonce | 1;
    LIST_INSERT_HEAD(&owner->weavings, w, link);
    if (segue_call_watch(call, &events) == SEGUE_OK)
        return w;
    LIST_REMOVE(w, link);
    free(w);
    return NULL;
}

void weaver_call(void *user, segue_call *call)
{
    uint64_t done = 0;
    const void *data = NULL;
    size_t len = 0;
    weaving *w = begin(user, call);
    if (!w) {
        segue_call_free(call);
        return;
    }
    w->next = 1;
    if (segue_call_resumed(call, &done, &data, &len) != SEGUE_OK)
        return;
    w->next = (int64_t)done + 1;
    w->owner->resumed++;
    if (!checkpoint_fits(done, data, len)) {
        char why[96];
        snprintf(why, sizeof why, "behind segment %" PRIu64 " the checkpoint is %.*s",
                 done, (int)(len < 20 ? len : 20), data ? (const char *)data : "none");
        segue_call_fail(call, -32603, why, NULL, 0, NULL);
        end(w);
    } else if (done && leave_checkpoint(w, (int64_t)done) != SEGUE_OK) {
        let_go(w, "no checkpoint"); /* the crash may have come before the checkpoint */
    }
}

int64_t weaver_work(weaver *owner, int64_t most_ms)
{
    int64_t now = now_ns(), wait_ns = most_ms * 1000000;
    for (weaving *w = LIST_FIRST(&owner->weavings), *next; w; w = next) {
        next = LIST_NEXT(w, link);
        if (w->call)
            go_on(w);
        if (!w->call || w->blocked)
            continue;
        int64_t left = w->due_ns - now;
        wait_ns = left < wait_ns ? left : wait_ns;
    }
    return wait_ns <= 0 ? 0 : (wait_ns + 999999) / 1000000;
}
