/* Finds the capabilities of a client before its first message is read. */
#ifndef PROXY_PEEK_H
#define PROXY_PEEK_H

#include <segue/segue.h>

#include "text.h"

/* Returns the capabilities for answering questions, as JSON, from the first message that
 * waits on fd. Waits at most 10 s for the message. Returns NULL when the capabilities
 * cannot be found out. The caller frees the text. */
char *peek_capabilities(segue_runtime *runtime, int fd);
/* Writes the capabilities for answering questions, as JSON. */
void peek_write_questions(text *out, json capabilities);

#endif
