/* Runs test_json_read.c for the code of machines without SSE2. The sources are compiled
 * into this program, so that no object of the library is linked. */
#define SGI_JSON_PLAIN 1

#include "wire/json_keys.c"
#include "wire/json_read.c"
#include "wire/json_span.c"
#include "wire/json_write.c"

_Static_assert(SGI_JSON_BLOCK == 8, "the plain twin was asked for");

#include "test_json_read.c"
