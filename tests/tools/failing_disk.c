/* Failures of a disk and jumps of a clock, for a program that is started with LD_PRELOAD:
 * PostgreSQL with all its processes. The test and the program share a page of memory, the
 * file that SEGUE_FAILING_DISK names (support/failing_disk.h). Without that variable
 * nothing fails. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "support/failing_disk.h"

/* ISO C knows no conversion from an object pointer to a function pointer. */
#define ORIGINAL(name) (__extension__(__typeof__(&(name))) dlsym(RTLD_NEXT, #name))

static failing_disk *page;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("SEGUE_FAILING_DISK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory != MAP_FAILED)
        page = memory;
}

static bool is_in(int fd, const char *directory)
{
    char link[40], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = 0;
    return strstr(path, directory) != NULL;
}

/* Returns whether this call fails; errno then says why. */
static bool fails(int fd, failing_call call)
{
    if (!page || !atomic_load(&page->left[call]))
        return false;
    if (!is_in(fd, call == FAILING_TABLE_WRITE || call == FAILING_TABLE_READ
                       ? "/base/"
                       : "/pg_wal/"))
        return false;
    int32_t left = atomic_load(&page->left[call]);
    while (left > 0 && !atomic_compare_exchange_weak(&page->left[call], &left, left - 1))
        ;
    if (!left)
        return false;
    atomic_fetch_add(&page->failed[call], 1);
    errno = atomic_load(&page->error);
    return true;
}

static bool write_fails(int fd)
{
    return fails(fd, FAILING_TABLE_WRITE) || fails(fd, FAILING_LOG_WRITE);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    return write_fails(fd) ? -1 : ORIGINAL(pwrite)(fd, data, len, at);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    return write_fails(fd) ? -1 : ORIGINAL(pwrite64)(fd, data, len, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    return write_fails(fd) ? -1 : ORIGINAL(pwritev)(fd, parts, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at)
{
    return write_fails(fd) ? -1 : ORIGINAL(pwritev64)(fd, parts, count, at);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
    return write_fails(fd) ? errno : ORIGINAL(posix_fallocate)(fd, at, len);
}

int posix_fallocate64(int fd, off64_t at, off64_t len)
{
    return write_fails(fd) ? errno : ORIGINAL(posix_fallocate64)(fd, at, len);
}

ssize_t pread(int fd, void *data, size_t len, off_t at)
{
    return fails(fd, FAILING_TABLE_READ) ? -1 : ORIGINAL(pread)(fd, data, len, at);
}

ssize_t pread64(int fd, void *data, size_t len, off64_t at)
{
    return fails(fd, FAILING_TABLE_READ) ? -1 : ORIGINAL(pread64)(fd, data, len, at);
}

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t at)
{
    return fails(fd, FAILING_TABLE_READ) ? -1 : ORIGINAL(preadv)(fd, parts, count, at);
}

ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t at)
{
    return fails(fd, FAILING_TABLE_READ) ? -1 : ORIGINAL(preadv64)(fd, parts, count, at);
}

int fdatasync(int fd)
{
    return fails(fd, FAILING_LOG_SYNC) ? -1 : ORIGINAL(fdatasync)(fd);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int status = ORIGINAL(gettimeofday)(now, zone);
    if (page)
        now->tv_sec += atomic_load(&page->jump_s);
    return status;
}
