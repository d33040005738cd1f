/* The levels of log messages, in order: "debug" = 0 ... "emergency" = 7. */
#ifndef SGI_LOG_LEVEL_H
#define SGI_LOG_LEVEL_H

#include "wire/json_read.h"

#define SGI_LOG_LEVELS 8

/* Returns the number of a level, or -1 when the text is not a level. */
int32_t sgi_log_level(sgi_str text);
const char *sgi_log_level_name(int32_t level);
/* Does what sgi_log_level does, for a JSON value. */
int32_t sgi_log_level_json(sgi_json value);

#endif
