/* The part of the engine that transports use: a transport includes no other header of
 * the engine. None of these headers defines a struct that is private to the engine. */
#ifndef SGI_RUNTIME_EXCHANGE_H
#define SGI_RUNTIME_EXCHANGE_H

#include "engine/client/exchange.h"
#include "engine/conversation/exchange.h"
#include "engine/handle.h"
#include "engine/oauth/flow.h"
#include "engine/server/exchange.h"

#endif
