/* The statistics of a server: which resources are in use, what is waiting, and what has
 * happened so far. */
#ifndef SGI_STATS_H
#define SGI_STATS_H

#include "engine/server/server.h"

/* Appends the statistics as a JSON object; segue_server_stats describes its members. */
void sgi_stats_write(const segue_server *server, sgi_buf *out);

#endif
