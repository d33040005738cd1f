/* The capabilities of a client that has not been read yet. */
#ifndef PROXY_PEEK_H
#define PROXY_PEEK_H

#include <segue/segue.h>

#include "text.h"

/* Returns the capabilities to answer questions in the first message that waits on fd, as
 * JSON; the caller frees it. NULL = they cannot be seen. Waits for the message for at
 * most 10 s. */
char *peek_capabilities(segue_runtime *runtime, int fd);

#endif
