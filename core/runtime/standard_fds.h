/* Protects the descriptors 0, 1 and 2 in a process in which some of them are closed. */
#ifndef SGI_STANDARD_FDS_H
#define SGI_STANDARD_FDS_H

#include <stdbool.h>

/* Occupies those of the descriptors 0, 1 and 2 that are closed. Otherwise a later
 * descriptor could get one of these numbers, and a socket with the number 2 would receive
 * what the program writes to standard error. The occupying descriptors cannot be read or
 * written, so for the program they still look closed. */
void sgi_standard_fds_occupy(void);

/* True when the descriptor is open and was not opened by sgi_standard_fds_occupy. */
bool sgi_fd_is_open(int fd);

#endif
