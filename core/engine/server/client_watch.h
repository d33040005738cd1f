/* All clients of a server, if the application watches them (clients.h). */
#ifndef SGI_CLIENT_WATCH_H
#define SGI_CLIENT_WATCH_H

#include "base/map.h"

#include <segue/segue_ext.h>

typedef struct sgi_clients {
    bool watched; /* the application watches the clients */
    segue_client_events events;
    uint64_t last_number;
    /* the clients that have not ended; the key is the number of the client */
    sgi_map by_number;
} sgi_clients;

#endif
