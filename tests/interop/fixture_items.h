/* The items that clients of interop find beside the tools of the fixtures: items that
 * come and go, a resource that changes, questions of every kind. */
#ifndef FIXTURE_ITEMS_H
#define FIXTURE_ITEMS_H

#include <segue/segue.h>

/* Adds the tools and the items that they use (item_fixtures.h). */
segue_status fixture_items_add(segue_runtime *runtime, segue_server *server);

#endif
