/* A disk for SQLite that loses power, or fails, when it is told to.
 *
 *     power_vfs_install();                      the default VFS from now on
 *     power_vfs_plan((power_plan){.cut_at = 70, .seed = 3});
 *     ... work: the 70th call that touches the disk, and all after it, fail ...
 *     power_vfs_cut();                          what is left is what a disk might hold
 *     ... open again ...
 *
 * Files are in memory, one connection at a time. What was synced is there after a cut. Of
 * what was written since, each sector of each write has come to the disk, or has not, or
 * was torn (it is garbage then); files get their new size or do not; what was removed
 * without a sync of its directory may be there again. */
#ifndef POWER_VFS_H
#define POWER_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum power_fault {
    POWER_ERROR,   /* the call fails: EIO */
    POWER_FULL,    /* ... ENOSPC, where something is written */
    POWER_SHORT,   /* ... having written the first half */
    POWER_FORGETS, /* a sync fails and what it was for will never be written; else EIO */
    POWER_FAULTS
} power_fault;

typedef struct power_plan {
    uint64_t cut_at;   /* number of the call at which power goes; 0 = it stays */
    uint64_t fail_at;  /* number of the call that fails; 0 = none */
    uint64_t fail_for; /* and how many after it as well */
    power_fault fault;
    uint64_t seed; /* of what a cut leaves */
} power_plan;

void power_vfs_install(void);
/* Files are gone, and the plan. */
void power_vfs_clear(void);
/* Counts calls from 1 again. */
void power_vfs_plan(power_plan plan);
/* Calls so far, and whether what was planned has come. */
uint64_t power_vfs_calls(void);
bool power_vfs_happened(void);
/* Power is gone and comes back; every file must be closed. Forgets the plan. */
void power_vfs_cut(void);
/* A number that grows with every complete sync of a write-ahead log. */
uint64_t power_vfs_log_syncs(void);

#endif
