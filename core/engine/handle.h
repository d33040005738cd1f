/* The first member of every public handle: a magic number for the kind of handle, and the
 * engine whose lock protects the object. The engine counts the application's reference to
 * a handle like every other reference to the object. */
#ifndef SGI_HANDLE_H
#define SGI_HANDLE_H

#include "engine/port.h"

#define SGI_MAGIC_SERVER 0x53475356u
#define SGI_MAGIC_CALL 0x5347434cu
#define SGI_MAGIC_SESSION 0x53475345u
#define SGI_MAGIC_REQUEST 0x53475251u
#define SGI_MAGIC_TASK 0x53475441u
#define SGI_MAGIC_BEARER 0x53474245u
#define SGI_MAGIC_CONTENT 0x5347434fu
#define SGI_MAGIC_TIMER 0x5347544du
#define SGI_MAGIC_EXCHANGE 0x53474558u
#define SGI_MAGIC_FREED 0xdeadu

typedef struct sgi_handle {
    uint32_t magic;
    sgi_engine *engine;
} sgi_handle;

#endif
