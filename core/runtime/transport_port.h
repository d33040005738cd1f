/* The part of the engine that transports may use; a transport includes no other header of
 * the engine. None of the headers that this file includes defines a struct that is
 * private to the engine. */
#ifndef SGI_TRANSPORT_PORT_H
#define SGI_TRANSPORT_PORT_H

#include "engine/client/exchange_port.h"
#include "engine/conversation/conn_port.h"
#include "engine/event.h"
#include "engine/handle.h"
#include "engine/oauth/flow.h"
#include "engine/server/server_port.h"

#endif
