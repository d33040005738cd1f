/* A service: the MCP server at one path of the listener, or at standard input and output.
 * It has the upstreams (sources) of its path, its clients and its store.
 *
 * An ended service (stages.h) answers the calls under way. It is freed after its server
 * and its sources. */
#ifndef PROXY_SERVICE_H
#define PROXY_SERVICE_H

#include "proxy.h"

struct service {
    service *next;
    proxy *proxy;
    /* number of references: one of the proxy, one of the server and one of the watch of
     * the server's clients, and one of each source */
    int32_t refs;
    service_stage stage;
    char *path;
    segue_store *store;   /* NULL = in memory */
    segue_server *server; /* NULL = it is not made yet, or the service has ended */
    source *sources;
    source *retired;        /* the sources that end after their calls */
    struct errand *errands; /* conversations of the proxy with the server (errand.h) */
    client *clients;
    bool idle;    /* true when no client has a conversation, and none can begin one */
    bool unready; /* true when no upstream can be used */
};

/* Returns the service at a path, and makes it with its store if there is none. On failure
 * reports the reason, stores the exit status, and returns NULL. */
service *service_at(proxy *p, const char *path, int *status);
/* Makes the server. only: the source whose name and instructions the server gets; NULL =
 * the server has the name of the proxy. On failure tells it, and ends the program when it
 * does not serve yet. */
bool service_make_server(service *v, const source *only);
void service_ref(service *v);
/* Drops a reference; a segue_free_fn. */
void service_unref(void *user);
/* True when clients reach the service. */
bool service_is_reached(const service *v);
/* True when all sources of the service have settled. */
bool service_has_settled(const service *v);
/* Ends the services that have no source any more: their paths are gone. Does nothing
 * while a new configuration is being taken. */
void services_end_empty(proxy *p);
/* Frees the handles of all servers. The program ends. */
void services_let_go(proxy *p);
/* Frees all services with their sources. The runtime has ended. */
void services_free(proxy *p);

/* Opens the store of a path (store.c). where: the value of --store. name: what the path
 * adds to the name of the store; "" = nothing. */
segue_status store_open(const char *where, const char *name, segue_store **out,
                        segue_error **error);
/* Writes what a path adds to the name of a store: some lower-case letters, digits and
 * underscores. */
#define STORE_NAME_SIZE 32
void store_name_of(const char *path, char name[STORE_NAME_SIZE]);

#endif
