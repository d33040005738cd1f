/* The statistics of a server: used resources, waiting work, and counts of past events. */
#ifndef SGI_STATS_H
#define SGI_STATS_H

#include "engine/server/server.h"

/* Appends the statistics to `out` as a JSON object; segue_server_stats describes the
 * members. */
void sgi_stats_write(const segue_server *server, sgi_buf *out);

#endif
