#include "runtime/standard_fds.h"

#include <fcntl.h>
#include <unistd.h>

void sgi_hold_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int held = open("/dev/null", O_PATH | O_CLOEXEC); /* the lowest free number */
        if (held > STDERR_FILENO)
            close(held); /* another thread was faster */
    }
}

bool sgi_fd_is_open(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_PATH);
}
