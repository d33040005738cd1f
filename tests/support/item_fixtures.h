/* The resources, templates and prompts that tests of the protocol need, under the names
 * of the public conformance suite if the suite has them. They use the public API only. */
#ifndef ITEM_FIXTURES_H
#define ITEM_FIXTURES_H

#include <segue/segue.h>

segue_status item_fixtures_add(segue_runtime *runtime, segue_server *server);

#endif
