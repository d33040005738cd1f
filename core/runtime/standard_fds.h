/* Protection of the descriptors 0, 1 and 2 in a process that has closed some of them. */
#ifndef SGI_STANDARD_FDS_H
#define SGI_STANDARD_FDS_H

#include <stdbool.h>

/* Occupies the free numbers among 0, 1 and 2. Otherwise a descriptor that is opened
 * later could get one of these numbers, and a socket with the number 2 would receive
 * what the program writes to standard error. The occupying descriptors cannot be read
 * or written, so they still look closed to the program. */
void sgi_standard_fds_occupy(void);

/* True when the descriptor is open and was not opened by sgi_standard_fds_occupy. */
bool sgi_fd_is_open(int fd);

#endif
