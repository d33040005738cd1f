/* The capabilities of a client whose first message was not read yet. */
#ifndef PROXY_PEEK_H
#define PROXY_PEEK_H

#include <segue/segue.h>

#include "text.h"

/* Returns the capabilities for answering questions, as JSON, from the first message that
 * waits on fd. The caller frees the text. NULL = they are not known. Waits for the
 * message for at most 10 s. */
char *peek_capabilities(segue_runtime *runtime, int fd);

#endif
