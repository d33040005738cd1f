/* The levels of log messages, from "debug" = 0 to "emergency" = 7. */
#ifndef SGI_LOG_LEVEL_H
#define SGI_LOG_LEVEL_H

#include "wire/json_read.h"

#define SGI_LOG_LEVELS 8

/* Returns the number of the level with this name, or -1 when there is no such level. */
int32_t sgi_log_level_parse(sgi_str text);
const char *sgi_log_level_name(int32_t level);
/* Returns the number of the level that a JSON string names, or -1 for any other value. */
int32_t sgi_log_level_parse_json(sgi_json value);

#endif
