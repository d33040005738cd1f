/* A JSON Schema validator as an application may bring one, for tests. The validator knows
 * type, required, properties and items. For a schema with $ref or with a dialect it
 * answers that it cannot check. The validator counts its calls. */
#ifndef SMALL_VALIDATOR_H
#define SMALL_VALIDATOR_H

#include <segue/segue.h>

/* A segue_validate_fn; user is ignored. */
segue_status small_validate(void *user, const char *tool, int32_t what,
                            const char *schema, size_t schema_len, const char *value,
                            size_t value_len, char *reason, size_t size);
/* Returns how often it validated arguments (1) or results (2) since the last call of this
 * function. */
int small_validations(int32_t what);
/* Called once, inside the next validation of a result. */
extern void (*small_validator_hook)(void);

#endif
