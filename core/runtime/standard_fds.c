#include "runtime/standard_fds.h"

#include <fcntl.h>
#include <unistd.h>

void sgi_standard_fds_occupy(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* open returns the lowest free number, which is fd unless another thread opens a
         * file at the same time */
        int held = open("/dev/null", O_PATH | O_CLOEXEC);
        if (held > STDERR_FILENO)
            close(held); /* another thread has taken the number fd in the meantime */
    }
}

bool sgi_fd_is_open(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_PATH);
}
