/* What an upstream is asked for the sake of its clients, outside of calls: to report
 * changes of resources and lists, and the level of its log messages. Everything is asked
 * for again when a session with the upstream opens. */
#ifndef PROXY_WATCH_H
#define PROXY_WATCH_H

#include "proxy.h"

/* watch_add asks the upstream to report changes of the resource, unless an earlier
 * watch_add has done so. The watch lasts until watch_remove was called as often. */
void watch_add(upstream *u, const char *uri);
void watch_remove(upstream *u, const char *uri);
/* Sends the lowest level that a client of the upstream has set. */
void watch_set_level(upstream *u);
/* Called when a session with the upstream has opened, and when it has ended. */
void watch_opened(upstream *u);
void watch_lost(upstream *u);
void watch_free(upstream *u);

#endif
