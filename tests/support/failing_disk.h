/* What tests/tools/failing_disk.c shares with the test: how many of the next calls fail,
 * and how far the clock has jumped. */
#ifndef FAILING_DISK_H
#define FAILING_DISK_H

#include <stdatomic.h>
#include <stdint.h>

typedef enum failing_call {
    FAILING_TABLE_WRITE, /* calls that write to a table or an index */
    FAILING_TABLE_READ,
    FAILING_LOG_WRITE, /* calls that write to the write-ahead log */
    FAILING_LOG_SYNC,
    FAILING_CALLS
} failing_call;

typedef struct failing_disk {
    _Atomic int32_t left[FAILING_CALLS]; /* calls that fail next; -1 = all */
    _Atomic int32_t error;               /* the errno of the calls that fail */
    _Atomic int32_t failed[FAILING_CALLS];
    _Atomic int64_t jump_s; /* seconds that are added to the time of the day */
} failing_disk;

#endif
