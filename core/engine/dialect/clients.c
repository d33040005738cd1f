/* The client's table of all dialects, made from rows.def. */
#include "engine/dialect/rows.h"
#include "engine/client/dialects.h"

#define SGI_CLIENT_DIALECT(name) &sgi_cli_##name,
#define SGI_DIALECT(name) &sgi_cli_##name,

const sgi_cli_dialect *const sgi_cli_dialects[] = {
#include "engine/dialect/rows.def"
    NULL,
};
