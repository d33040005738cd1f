/* Protection of the descriptors 0, 1 and 2 in a process that has closed some of them. */
#ifndef SGI_STANDARD_FDS_H
#define SGI_STANDARD_FDS_H

#include <stdbool.h>

/* Occupies the free numbers among 0, 1 and 2, so that no descriptor that is opened later
 * gets one: a socket with the number 2 would receive what the program writes to standard
 * error. The occupying descriptors cannot be read or written, so they still look closed
 * to the program. */
void sgi_standard_fds_occupy(void);

/* True when the descriptor is open and is not one of these placeholders. */
bool sgi_fd_is_open(int fd);

#endif
