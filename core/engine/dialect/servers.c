/* The server's table of all dialects, made from rows.def. */
#include "engine/dialect/rows.h"
#include "engine/server/dialects.h"

#define SGI_CLIENT_DIALECT(name)
#define SGI_DIALECT(name) &sgi_srv_##name,

const sgi_srv_dialect *const sgi_srv_dialects[] = {
#include "engine/dialect/rows.def"
    NULL,
};
