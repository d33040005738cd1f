/* Each file has three parts: what a reader sees (`now`), what is on the disk (`disk`),
 * and the list of writes between the two. A sync applies the list; a power cut applies
 * some of it.
 *
 * The VFS reports POWERSAFE_OVERWRITE to SQLite: a write does not damage the bytes beside
 * it. This is also SQLite's default for any disk. */
#include "support/power_vfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <sqlite3.h>

#define SECTOR 512
#define REGIONS 64

typedef struct bytes {
    unsigned char *p;
    size_t n;
    size_t cap;
} bytes;

typedef struct change {
    TAILQ_ENTRY(change) link;
    size_t at;
    size_t n;
    bool cuts; /* the write truncates the file at `at` */
    unsigned char p[];
} change;

TAILQ_HEAD(change_list, change);

typedef struct disk_file {
    TAILQ_ENTRY(disk_file) link;
    char name[512];
    bytes now;
    bytes disk;
    struct change_list changes;
    bool there;         /* the file exists now */
    bool there_on_disk; /* the file certainly exists after a cut */
    bool maybe;         /* the file may exist after a cut */
    void *regions[REGIONS];
} disk_file;

typedef struct handle {
    sqlite3_file base;
    disk_file *file;
} handle;

static TAILQ_HEAD(, disk_file) files = TAILQ_HEAD_INITIALIZER(files);
static power_plan plan;
static uint64_t calls;
static uint64_t log_syncs;
static uint64_t chance;
static bool happened;
static sqlite3_vfs *real;

/* ---- bytes ---- */

static void need(bool condition)
{
    if (condition)
        return;
    fprintf(stderr, "power_vfs: no memory\n");
    abort();
}

static void set_size(bytes *b, size_t n)
{
    if (n > b->cap) {
        b->cap = n * 2;
        b->p = realloc(b->p, b->cap);
        need(b->p != NULL);
    }
    if (n > b->n)
        memset(b->p + b->n, 0, n - b->n);
    b->n = n;
}

static void put(bytes *b, size_t at, const void *p, size_t n)
{
    if (at + n > b->n)
        set_size(b, at + n);
    if (n)
        memcpy(b->p + at, p, n);
}

static uint64_t next_chance(void)
{
    uint64_t x = chance += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void drop_changes(disk_file *file)
{
    change *c;
    while ((c = TAILQ_FIRST(&file->changes))) {
        TAILQ_REMOVE(&file->changes, c, link);
        free(c);
    }
}

static void add_change(disk_file *file, size_t at, const void *p, size_t n, bool cuts)
{
    change *c = malloc(sizeof *c + n);
    need(c != NULL);
    c->at = at;
    c->n = n;
    c->cuts = cuts;
    if (n)
        memcpy(c->p, p, n);
    TAILQ_INSERT_TAIL(&file->changes, c, link);
}

static void write_now(disk_file *file, size_t at, const void *p, size_t n)
{
    put(&file->now, at, p, n);
    add_change(file, at, p, n, false);
}

/* ---- the plan ---- */

static bool is_dead(void)
{
    return plan.cut_at && calls >= plan.cut_at;
}

/* Counts a call; returns true when it must fail. */
static bool strike(void)
{
    calls++;
    bool fails =
        plan.fail_at && calls >= plan.fail_at && calls <= plan.fail_at + plan.fail_for;
    happened |= fails || is_dead();
    return fails || is_dead();
}

void power_vfs_plan(power_plan next)
{
    plan = next;
    calls = 0;
    happened = false;
    chance = next.seed;
}

uint64_t power_vfs_calls(void)
{
    return calls;
}

bool power_vfs_happened(void)
{
    return happened;
}

uint64_t power_vfs_log_syncs(void)
{
    return log_syncs;
}

/* ---- the cut ---- */

static void land(bytes *disk, const change *c)
{
    if (c->cuts) {
        if (next_chance() % 2)
            set_size(disk, c->at);
        return;
    }
    for (size_t from = c->at; from < c->at + c->n;) {
        size_t to = (from / SECTOR + 1) * SECTOR;
        if (to > c->at + c->n)
            to = c->at + c->n;
        uint64_t what = next_chance() % 16;
        if (what < 8)
            put(disk, from, c->p + (from - c->at), to - from);
        for (size_t i = from; what == 15 && i < to; i++) {
            unsigned char junk = (unsigned char)next_chance();
            put(disk, i, &junk, 1);
        }
        from = to;
    }
}

static void free_regions(disk_file *file)
{
    for (int i = 0; i < REGIONS; i++) {
        free(file->regions[i]);
        file->regions[i] = NULL;
    }
}

void power_vfs_cut(void)
{
    disk_file *file;
    TAILQ_FOREACH(file, &files, link) {
        const change *c;
        bool there = file->there_on_disk || (file->maybe && next_chance() % 2);
        bool nothing = next_chance() % 8 == 0, all = next_chance() % 8 == 0;
        TAILQ_FOREACH(c, &file->changes, link) {
            if (all && !c->cuts)
                put(&file->disk, c->at, c->p, c->n);
            else if (all)
                set_size(&file->disk, c->at);
            else if (!nothing)
                land(&file->disk, c);
        }
        drop_changes(file);
        if (!there)
            set_size(&file->disk, 0);
        file->there = file->there_on_disk = file->maybe = there;
        set_size(&file->now, 0);
        put(&file->now, 0, file->disk.p, file->disk.n);
        free_regions(file);
    }
    power_vfs_plan((power_plan){.seed = chance});
}

/* ---- files ---- */

/* SQLite syncs the directory with the first sync of a file that it made. */
static void sync_directory(void)
{
    disk_file *file;
    TAILQ_FOREACH(file, &files, link)
        if (!file->there)
            file->maybe = false;
}

static int sync_file(sqlite3_file *f, int flags)
{
    disk_file *file = ((handle *)f)->file;
    const change *c;
    (void)flags;
    if (strike()) {
        if (plan.fault == POWER_FORGETS && !is_dead())
            drop_changes(file);
        errno = EIO;
        return SQLITE_IOERR_FSYNC;
    }
    TAILQ_FOREACH(c, &file->changes, link) {
        if (c->cuts)
            set_size(&file->disk, c->at);
        else
            put(&file->disk, c->at, c->p, c->n);
    }
    drop_changes(file);
    if (!file->there_on_disk)
        sync_directory();
    file->there_on_disk = true;
    if (strstr(file->name, "-wal"))
        log_syncs++;
    return SQLITE_OK;
}

static int close_file(sqlite3_file *f)
{
    (void)f;
    return SQLITE_OK;
}

static int read_file(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    const disk_file *file = ((handle *)f)->file;
    if (strike()) {
        errno = EIO;
        return SQLITE_IOERR_READ;
    }
    size_t from = (size_t)at, left = from < file->now.n ? file->now.n - from : 0;
    size_t have = left < (size_t)n ? left : (size_t)n;
    if (have)
        memcpy(to, file->now.p + from, have);
    memset((char *)to + have, 0, (size_t)n - have);
    return have == (size_t)n ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int write_file(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    disk_file *file = ((handle *)f)->file;
    if (!strike()) {
        write_now(file, (size_t)at, p, (size_t)n);
        return SQLITE_OK;
    }
    if (is_dead() || plan.fault == POWER_SHORT)
        write_now(file, (size_t)at, p, (size_t)n / 2);
    errno = plan.fault == POWER_FULL && !is_dead() ? ENOSPC : EIO;
    return errno == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int truncate_file(sqlite3_file *f, sqlite3_int64 size)
{
    disk_file *file = ((handle *)f)->file;
    if (strike()) {
        errno = EIO;
        return SQLITE_IOERR_TRUNCATE;
    }
    set_size(&file->now, (size_t)size);
    add_change(file, (size_t)size, NULL, 0, true);
    return SQLITE_OK;
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size)
{
    *size = (sqlite3_int64)((handle *)f)->file->now.n;
    return SQLITE_OK;
}

static int lock_file(sqlite3_file *f, int level)
{
    (void)f;
    (void)level;
    return SQLITE_OK;
}

static int check_lock(sqlite3_file *f, int *out)
{
    (void)f;
    *out = 0;
    return SQLITE_OK;
}

static int control(sqlite3_file *f, int op, void *arg)
{
    (void)f;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *f)
{
    (void)f;
    return SECTOR;
}

static int characteristics(sqlite3_file *f)
{
    (void)f;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **out)
{
    disk_file *file = ((handle *)f)->file;
    *out = NULL;
    if (region >= REGIONS)
        return SQLITE_IOERR_SHMMAP;
    if (!file->regions[region] && extend) {
        file->regions[region] = calloc(1, (size_t)size);
        need(file->regions[region] != NULL);
    }
    *out = file->regions[region];
    return SQLITE_OK;
}

static int shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    (void)f;
    (void)offset;
    (void)n;
    (void)flags;
    return SQLITE_OK;
}

static void shm_barrier(sqlite3_file *f)
{
    (void)f;
}

/* The last connection has closed, so the next connection finds the shared memory
 * empty. */
static int shm_unmap(sqlite3_file *f, int delete_flag)
{
    (void)delete_flag;
    free_regions(((handle *)f)->file);
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {2,
                                           close_file,
                                           read_file,
                                           write_file,
                                           truncate_file,
                                           sync_file,
                                           file_size,
                                           lock_file,
                                           lock_file,
                                           check_lock,
                                           control,
                                           sector_size,
                                           characteristics,
                                           shm_map,
                                           shm_lock,
                                           shm_barrier,
                                           shm_unmap,
                                           NULL,
                                           NULL};

/* ---- the directory ---- */

static disk_file *find_file(const char *name)
{
    disk_file *file;
    TAILQ_FOREACH(file, &files, link)
        if (!strcmp(file->name, name))
            break;
    return file;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
                     int *out)
{
    handle *h = (handle *)f;
    (void)vfs;
    f->pMethods = NULL;
    if (strike() || !name || strlen(name) >= sizeof h->file->name) {
        errno = EIO;
        return SQLITE_CANTOPEN;
    }
    disk_file *file = find_file(name);
    if (!file) {
        file = calloc(1, sizeof *file);
        need(file != NULL);
        strcpy(file->name, name);
        TAILQ_INIT(&file->changes);
        TAILQ_INSERT_TAIL(&files, file, link);
    }
    if (!file->there && !(flags & SQLITE_OPEN_CREATE))
        return SQLITE_CANTOPEN;
    file->there = file->maybe = true;
    h->file = file;
    f->pMethods = &methods;
    if (out)
        *out = flags;
    return SQLITE_OK;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
    disk_file *file = find_file(name);
    (void)vfs;
    if (strike()) {
        errno = EIO;
        return SQLITE_IOERR_DELETE;
    }
    if (!file || !file->there)
        return SQLITE_IOERR_DELETE_NOENT;
    file->there = false;
    set_size(&file->now, 0);
    add_change(file, 0, NULL, 0, true);
    file->maybe = file->there_on_disk && !sync_directory;
    file->there_on_disk = false;
    return SQLITE_OK;
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    const disk_file *file = find_file(name);
    (void)vfs;
    *out = file && file->there && (flags != SQLITE_ACCESS_EXISTS || file->now.n > 0);
    return SQLITE_OK;
}

static int full_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void)vfs;
    return real->xFullPathname(real, name, size, out);
}

static int randomness(sqlite3_vfs *vfs, int n, char *out)
{
    (void)vfs;
    return real->xRandomness(real, n, out);
}

static int pause(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    return microseconds; /* no other thread runs, so there is nothing to wait for */
}

static int current_time(sqlite3_vfs *vfs, double *now)
{
    (void)vfs;
    return real->xCurrentTime(real, now);
}

static int last_error(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    (void)size;
    (void)out;
    return errno;
}

void power_vfs_install(void)
{
    static sqlite3_vfs vfs = {.iVersion = 1,
                              .szOsFile = sizeof(handle),
                              .mxPathname = 500,
                              .zName = "power",
                              .xOpen = open_file,
                              .xDelete = delete_file,
                              .xAccess = access_file,
                              .xFullPathname = full_name,
                              .xRandomness = randomness,
                              .xSleep = pause,
                              .xCurrentTime = current_time,
                              .xGetLastError = last_error};
    real = sqlite3_vfs_find(NULL);
    sqlite3_vfs_register(&vfs, 1);
}

void power_vfs_clear(void)
{
    disk_file *file;
    while ((file = TAILQ_FIRST(&files))) {
        TAILQ_REMOVE(&files, file, link);
        drop_changes(file);
        free_regions(file);
        free(file->now.p);
        free(file->disk.p);
        free(file);
    }
    power_vfs_plan((power_plan){.seed = 1});
}
