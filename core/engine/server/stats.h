/* The statistics of a server: used resources, waiting work, and counts of past events.
 * stats.def is the list. */
#ifndef SGI_STATS_H
#define SGI_STATS_H

#include "engine/server/server.h"

typedef enum sgi_stat_kind {
    SGI_STAT_NOW,  /* a level that rises and falls */
    SGI_STAT_TOTAL /* a count since the start */
} sgi_stat_kind;

typedef struct sgi_stat {
    const char *group;
    const char *name;
    sgi_stat_kind kind;
    const char *help;
    int64_t value; /* negative = not known */
} sgi_stat;

enum {
    SGI_STATS = 0 /* number of rows of stats.def */
#define STAT(group, name, kind, help, value) +1
#include "engine/server/stats.def"
#undef STAT
};

/* Reads each number of stats.def, in the order of the list. */
void sgi_stats_read(const segue_server *server, sgi_stat stats[SGI_STATS]);

/* Appends the statistics to `out` as a JSON object; segue_server_stats describes the
 * members. */
void sgi_stats_write(const segue_server *server, sgi_buf *out);

#endif
