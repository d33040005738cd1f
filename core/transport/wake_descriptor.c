/* Finds the eventfd of a context of libwebsockets, which has no public name. The eventfd
 * is found by its counter, which /proc shows: each lws_cancel_service adds one to the
 * counter, and no other eventfd of the process gains exactly SIGNALS by chance in the
 * same moment. */
#include "transport/wake_descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libwebsockets.h>

#define SIGNALS 61
#define COUNT_KEY "eventfd-count:"

/* Reads the counter of an eventfd from /proc. Returns false when fd is not an eventfd. */
static bool read_count(int fd, uint64_t *count)
{
    char path[64], line[128];
    bool found = false;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        found = strncmp(line, COUNT_KEY, strlen(COUNT_KEY)) == 0;
        if (found)
            *count = strtoull(line + strlen(COUNT_KEY), NULL, 16);
    }
    if (file)
        fclose(file);
    return found;
}

/* True when the descriptor with this name in /proc/self/fd is an eventfd. */
static bool is_eventfd(DIR *descriptors, const char *name)
{
    char target[32];
    ssize_t len = readlinkat(dirfd(descriptors), name, target, sizeof target - 1);
    if (len < 0)
        return false;
    target[len] = 0;
    return strcmp(target, "anon_inode:[eventfd]") == 0;
}

/* True when SIGNALS wake-ups of the context increase the counter of this eventfd by
 * exactly SIGNALS. */
static bool is_woken(int fd, struct lws_context *context)
{
    uint64_t before, after;
    if (!read_count(fd, &before))
        return false;
    for (int n = 0; n < SIGNALS; n++)
        lws_cancel_service(context);
    return read_count(fd, &after) && after - before == SIGNALS;
}

sgi_wake_descriptor sgi_wake_descriptor_find(struct lws_context *context)
{
    sgi_wake_descriptor wake = {.fd = -1, .twin = -1};
    DIR *descriptors = opendir("/proc/self/fd");
    struct dirent *entry;
    while (descriptors && wake.fd < 0 && (entry = readdir(descriptors)))
        if (is_eventfd(descriptors, entry->d_name) &&
            is_woken(atoi(entry->d_name), context))
            wake.fd = atoi(entry->d_name);
    if (descriptors)
        closedir(descriptors);
    if (wake.fd >= 0)
        wake.twin = fcntl(wake.fd, F_DUPFD_CLOEXEC, 0);
    return wake;
}

void sgi_wake_descriptor_close(sgi_wake_descriptor wake)
{
    uint64_t before, after, gain = SIGNALS;
    if (wake.twin < 0)
        return;
    if (read_count(wake.fd, &before) &&
        write(wake.twin, &gain, sizeof gain) == (ssize_t)sizeof gain &&
        read_count(wake.fd, &after) && after - before == SIGNALS)
        close(wake.fd);
    close(wake.twin);
}
