/* The descriptors 0, 1 and 2 of a process that has closed some of them. */
#ifndef SGI_STANDARD_FDS_H
#define SGI_STANDARD_FDS_H

#include <stdbool.h>

/* Takes the numbers that are free, so that no descriptor that is opened later gets one: a
 * socket with the number 2 would receive what the program writes to standard error. What
 * takes them cannot be read or written: to the program they are closed as before. */
void sgi_hold_standard_fds(void);

/* Is open, and not merely held. */
bool sgi_fd_is_open(int fd);

#endif
