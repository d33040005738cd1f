#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/runtime.h"

/* /proc/self/statm has the sizes of the process in pages: all of its memory, then what is
 * resident. */
int64_t sgi_runtime_resident_bytes(void)
{
    char text[128];
    unsigned long long all, resident;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (len <= 0)
        return -1;
    text[len] = 0;
    if (sscanf(text, "%llu %llu", &all, &resident) != 2)
        return -1;
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}
