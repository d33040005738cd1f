/* The door between transports and the engine: all that a transport may know of it. */
#ifndef SGI_RUNTIME_EXCHANGE_H
#define SGI_RUNTIME_EXCHANGE_H

#include "engine/authorizing/flow.h"
#include "engine/exchange.h"
#include "engine/handle.h"

#endif
