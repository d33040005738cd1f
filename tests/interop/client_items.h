/* The checks of resources, prompts and completion. The servers offer these under the
 * names of tests/support/item_fixtures.c. */
#ifndef CLIENT_ITEMS_H
#define CLIENT_ITEMS_H

#include "probe.h"

const char *check_resources(peer *p);
const char *check_templates(peer *p);
const char *check_read(peer *p);
const char *check_read_template(peer *p);
const char *check_read_nowhere(peer *p);
const char *check_prompts(peer *p);
const char *check_prompt_arguments(peer *p);
const char *check_prompt_blocks(peer *p);
const char *check_completion(peer *p);
/* What changes, and who is told: by resources/subscribe in the handshake eras, by
 * subscriptions/listen since. */
const char *check_update(peer *p);
const char *check_item_lists(peer *p);

#endif
