/* A disk for SQLite that loses power or fails as planned.
 *
 *     power_vfs_install();                      the default VFS from now on
 *     power_vfs_plan((power_plan){.cut_at = 70, .seed = 3});
 *     ... work: the 70th call that touches the disk, and all after it, fail ...
 *     power_vfs_cut();                          what is left is what a disk might hold
 *     ... open again ...
 *
 * Files are in memory, with one connection at a time. After a cut, synced bytes still
 * exist. Of later writes, each sector has reached the disk, or has not, or is torn
 * (garbage). A file has its new size or its old size. A file that was removed without a
 * sync of its directory may exist again. */
#ifndef POWER_VFS_H
#define POWER_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum power_fault {
    POWER_ERROR,   /* the call fails: EIO */
    POWER_FULL,    /* the call fails with ENOSPC if it writes something */
    POWER_SHORT,   /* the call writes the first half, then fails */
    POWER_FORGETS, /* a sync fails and its data is never written; other calls fail with
                    * EIO */
    POWER_FAULTS
} power_fault;

typedef struct power_plan {
    uint64_t cut_at;   /* number of the call at which the power fails; 0 = the power stays
                        * on */
    uint64_t fail_at;  /* number of the call that fails; 0 = none */
    uint64_t fail_for; /* the number of later calls that fail as well */
    power_fault fault;
    uint64_t seed; /* seed of the random choice of what remains after a cut */
} power_plan;

void power_vfs_install(void);
/* Removes all files and the plan. */
void power_vfs_clear(void);
/* Sets the plan, and counts calls from 1 again. */
void power_vfs_plan(power_plan plan);
/* power_vfs_calls returns the number of calls so far. power_vfs_happened returns whether
 * the planned event has happened. */
uint64_t power_vfs_calls(void);
bool power_vfs_happened(void);
/* Cuts the power and switches it on again; every file must be closed. Forgets the
 * plan. */
void power_vfs_cut(void);
/* Returns a number that grows with every complete sync of a write-ahead log. */
uint64_t power_vfs_log_syncs(void);

#endif
