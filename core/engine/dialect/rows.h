/* Declares the table of each dialect in rows.def, for the files of this folder. Server
 * and client know the dialects only by the lists in servers.c and clients.c. */
#ifndef SGI_ROWS_H
#define SGI_ROWS_H

typedef struct sgi_srv_dialect sgi_srv_dialect;
typedef struct sgi_cli_dialect sgi_cli_dialect;

#define SGI_CLIENT_DIALECT(name) extern const sgi_cli_dialect sgi_cli_##name;
#define SGI_DIALECT(name)                                                                \
    extern const sgi_srv_dialect sgi_srv_##name;                                         \
    SGI_CLIENT_DIALECT(name)
#include "engine/dialect/rows.def"
#undef SGI_DIALECT
#undef SGI_CLIENT_DIALECT

#endif
