/* Turns of the instances that write to one database.
 *
 * SQLite lets one instance write at a time, and an instance that waits looks again after
 * a pause. An instance that writes without a pause gives the lock back for microseconds
 * only, so another one could wait for seconds. Therefore an instance that had to wait
 * locks the first byte of the side file (sqlite_owners.c) until it may write. Before each
 * transaction, the others look at this byte, and let the waiting instance go first.
 *
 *     BEGIN --busy--> takes the byte, looks again every PAUSE_US --> begun: gives it back
 *
 * An instance that has the byte and does not use its turn (a stopped process) is waited
 * for YIELD_MS, and is then passed by for a while. Where nobody else lives, a transaction
 * costs one system call for this. */
#include "store/sqlite_open.h"

#include "base/thresholds.h"

#include <time.h>

#define PAUSE_US 250
#define YIELD_MS SGI_THRESHOLD(sqlite_yield_ms)
/* For this many times YIELD_MS, an instance that did not use its turn is passed by. */
#define PASSED_BY 50

int64_t sgi_sqlite_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_shortly(void)
{
    struct timespec pause = {.tv_nsec = PAUSE_US * 1000};
    nanosleep(&pause, NULL);
}

/* The busy handler of the connection. SQLite calls it while a lock is not free, and looks
 * at the lock again after 1. */
static int wait_shortly(void *user, int count)
{
    sgi_sqlite_file *file = user;
    int64_t now_ms = sgi_sqlite_now_ms();
    if (!count)
        file->turn.since_ms = now_ms;
    if (file->turn.begins && !file->turn.held)
        file->turn.held = sgi_sqlite_lock_turn(file, true);
    if (now_ms - file->turn.since_ms >= file->turn.busy_ms)
        return 0;
    pause_shortly();
    return 1;
}

void sgi_sqlite_turn_init(sgi_sqlite_file *file, int64_t busy_ms)
{
    file->turn = (sgi_sqlite_turn){.busy_ms = busy_ms};
    sqlite3_busy_handler(file->db, wait_shortly, file);
}

/* Lets an instance go first that has waited. */
static void yield(sgi_sqlite_file *file)
{
    if (!sgi_sqlite_others_live(file) || !sgi_sqlite_turn_is_taken(file))
        return;
    int64_t now_ms = sgi_sqlite_now_ms();
    int64_t until_ms = sgi_time_add(now_ms, YIELD_MS);
    if (now_ms < file->turn.passes_until_ms)
        return;
    while (sgi_sqlite_turn_is_taken(file)) {
        if (sgi_sqlite_now_ms() >= until_ms) {
            file->turn.passes_until_ms = sgi_time_add(until_ms, YIELD_MS * PASSED_BY);
            return;
        }
        pause_shortly();
    }
}

void sgi_sqlite_turn_begin(sgi_sqlite_file *file)
{
    yield(file);
    file->turn.begins = true;
}

void sgi_sqlite_turn_end(sgi_sqlite_file *file)
{
    file->turn.begins = false;
    if (file->turn.held)
        sgi_sqlite_lock_turn(file, false);
    file->turn.held = false;
}
