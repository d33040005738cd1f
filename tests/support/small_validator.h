/* A validator of JSON Schema as an application may bring one, for tests: knows type,
 * required, properties and items, says that it cannot tell where a schema has $ref or
 * names a dialect, and counts how often it was asked. */
#ifndef SMALL_VALIDATOR_H
#define SMALL_VALIDATOR_H

#include <segue/segue.h>

/* A segue_validate_fn; user is not looked at. */
segue_status small_validate(void *user, const char *tool, int32_t what,
                            const char *schema, size_t schema_len, const char *value,
                            size_t value_len, char *reason, size_t size);
/* How often it was asked about arguments (1) or results (2) since it was last said. */
int small_validations(int32_t what);
/* Runs once, inside the next validation of a result. */
extern void (*small_validator_hook)(void);

#endif
