/* The owner numbers, which decide which instance may write. A side file beside a store's
 * SQLite file shows which owners are alive.
 *
 * Every instance that opens the store takes an owner number that was never used before (a
 * counter in the database) and locks the byte at that offset in `<path>-owners`. Each
 * operation has the number of the instance that runs it. The kernel drops the lock when
 * the instance ends, in whatever way it ends. Therefore a number whose byte is not locked
 * belongs to a dead instance and is never used again. The operations of a dead instance
 * may be claimed without waiting for a timeout, and a living instance cannot lose its
 * operations.
 *
 * The locks belong to an open file description (F_OFD_SETLK): two instances in one
 * process are two owners, and closing another descriptor of the file does not drop the
 * locks. If the byte of a new number is already locked, the lock belongs to a user of an
 * earlier file with this name, and the next number is tried. Number 0 means no owner.
 *
 * The first byte, which is no owner's, belongs to the instance that writes next
 * (sqlite_turn.c).
 *
 * An instance that reads format 3 also locks the byte of its number in a second range, so
 * that others see which formats a living instance reads.
 *
 * A child that was forked without exec shares the locks and keeps them while it lives;
 * exec drops them. */
#include "store/sqlite_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Owner numbers are below this one. The range of a format begins at this number times the
 * number of the format. */
#define RANGE (INT64_C(1) << 56)
#define FIRST_SHOWN 3

_Static_assert(SGI_SQLITE_FORMAT < 128, "the ranges of formats end at 2^63");

/* The byte of the instance that writes next (sqlite_turn.c). No owner has this number. */
#define TURN 0

/* *type is the lock that is set, and then the one that was found. */
static int lock_byte(int descriptor, int command, int64_t byte, short *type)
{
    struct flock lock = {
        .l_type = *type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    int result = fcntl(descriptor, command, &lock);
    *type = lock.l_type;
    return result;
}

bool sgi_sqlite_owner_lives(const sgi_sqlite_file *file, int64_t owner)
{
    short type = F_WRLCK;
    if (!owner)
        return false;
    if (owner == file->owner || lock_byte(file->owners, F_OFD_GETLK, owner, &type))
        return true;
    return type != F_UNLCK;
}

bool sgi_sqlite_others_live(const sgi_sqlite_file *file)
{
    /* F_OFD_GETLK does not report the lock of this instance itself. The length 0 means up
     * to the end of the file. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1};
    return fcntl(file->owners, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool sgi_sqlite_lock_turn(const sgi_sqlite_file *file, bool on)
{
    short type = on ? F_WRLCK : F_UNLCK;
    return !lock_byte(file->owners, F_OFD_SETLK, TURN, &type) && on;
}

bool sgi_sqlite_turn_is_taken(const sgi_sqlite_file *file)
{
    short type = F_WRLCK;
    return !lock_byte(file->owners, F_OFD_GETLK, TURN, &type) && type != F_UNLCK;
}

/* True when the instance with this owner number locked its byte in the range of the
 * format. */
static bool reads_format(const sgi_sqlite_file *file, int64_t owner, int format)
{
    short type = F_WRLCK;
    return !lock_byte(file->owners, F_OFD_GETLK, RANGE * format + owner, &type) &&
           type != F_UNLCK;
}

/* F_OFD_GETLK reports any one of the locks in a range. So the function looks at that one,
 * then at the range before it, then at the rest. */
static bool older_in(const sgi_sqlite_file *file, int64_t from, int64_t to, int format)
{
    while (from < to) {
        struct flock lock = {.l_type = F_WRLCK,
                             .l_whence = SEEK_SET,
                             .l_start = (off_t)from,
                             .l_len = (off_t)(to - from)};
        if (fcntl(file->owners, F_OFD_GETLK, &lock))
            return true;
        if (lock.l_type == F_UNLCK)
            return false;
        if (lock.l_len != 1 || !reads_format(file, lock.l_start, format) ||
            older_in(file, from, lock.l_start, format))
            return true;
        from = lock.l_start + 1;
    }
    return false;
}

bool sgi_sqlite_older_lives(const sgi_sqlite_file *file, int format)
{
    return older_in(file, 1, RANGE, format);
}

/* Opens the side file beside the database, at the path that SQLite has resolved. The side
 * file gets the permissions of the database, because a user who can write the database
 * must be able to lock the side file. */
static segue_status open_owners(sgi_sqlite_opening *o)
{
    const char *database = sqlite3_db_filename(o->file->db, "main");
    char path[PATH_MAX];
    struct stat info;
    int n = snprintf(path, sizeof path, "%s-owners", database);
    if (n < 0 || (size_t)n >= sizeof path)
        return sgi_sqlite_fail_opening(o, SEGUE_E_STORE, "the file name is too long");
    mode_t mode = stat(database, &info) ? 0600 : info.st_mode & 0666;
    o->file->owners = open(path, O_RDWR | O_CREAT | O_CLOEXEC, mode);
    if (o->file->owners < 0)
        return sgi_sqlite_fail_opening(
            o, errno == ENOSPC ? SEGUE_E_STORE_FULL : SEGUE_E_STORE, "cannot open %s: %s",
            path, strerror(errno));
    return SEGUE_OK;
}

static segue_status next_number(sgi_sqlite_opening *o, int64_t *number)
{
    int code =
        sgi_sqlite_exec(o->file->db, o->format < 3 ? "UPDATE owners SET last = last + 1"
                                                   : "UPDATE owners SET reads = 3;"
                                                     "UPDATE owners SET last = last + 1;"
                                                     "UPDATE owners SET reads = 0");
    if (!code)
        code = sgi_sqlite_query_int(o->file->db, "SELECT last FROM owners", number);
    return code ? sgi_sqlite_fail_opening_by_code(o, code) : SEGUE_OK;
}

static segue_status take_number(sgi_sqlite_opening *o)
{
    for (;;) {
        int64_t number = 0;
        short type = F_WRLCK;
        segue_status status = next_number(o, &number);
        if (status)
            return status;
        bool taken = !lock_byte(o->file->owners, F_OFD_SETLK, number, &type);
        for (int64_t format = FIRST_SHOWN; taken && format <= SGI_SQLITE_FORMAT; format++)
            taken =
                !lock_byte(o->file->owners, F_OFD_SETLK, RANGE * format + number, &type);
        if (taken) {
            o->file->owner = number;
            return SEGUE_OK;
        }
        if (errno != EAGAIN && errno != EACCES)
            return sgi_sqlite_fail_opening(
                o, SEGUE_E_STORE,
                "the lock file beside the database (%s-owners) "
                "cannot be locked: %s",
                o->path, strerror(errno));
    }
}

segue_status sgi_sqlite_become_owner(sgi_sqlite_opening *o)
{
    segue_status status = open_owners(o);
    if (status)
        return status;
    int code = sgi_sqlite_exec(o->file->db, "BEGIN IMMEDIATE");
    if (code)
        return sgi_sqlite_fail_opening_by_code(o, code);
    status = sgi_sqlite_read_format(o);
    if (!status)
        status = take_number(o);
    if (!status && (code = sgi_sqlite_exec(o->file->db, "COMMIT")))
        status = sgi_sqlite_fail_opening_by_code(o, code);
    if (!sqlite3_get_autocommit(o->file->db))
        sgi_sqlite_exec(o->file->db, "ROLLBACK");
    atomic_init(&o->file->format.number, (int)o->format);
    return status;
}
