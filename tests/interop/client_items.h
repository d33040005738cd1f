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
/* Changes, and their notifications: after resources/subscribe in the handshake eras,
 * after subscriptions/listen in 2026-07-28. */
const char *check_update(peer *p);
const char *check_item_lists(peer *p);

#endif
