/* How a server is: what is in use, what waits, what has happened. */
#ifndef SGI_STATS_H
#define SGI_STATS_H

#include "engine/serving/server.h"

/* Appends a JSON object; segue_server_stats says what is in it. */
void sgi_stats_write(const segue_server *server, sgi_buf *out);

#endif
