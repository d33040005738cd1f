/* The stages of the proxy, of a service and of a source. Each is one value, and changes
 * only along these arrows, which stages.c checks:
 *
 *     proxy     starting --the sources have settled--> serving --SIGTERM--> draining
 *               serving --SIGHUP--> changing --the entries were taken--> serving
 *               each of them --> ending
 *
 *     service   made --its sources have settled--> open --the log says so--> told
 *               each of them --it has no source any more--> ended
 *
 *     source    starting --its lists were read--> ready --succession.c--> offered
 *               starting, ready --> failed --tried again, or found later--> starting,
 *               ready, offered
 *               each of them --the configuration no longer has it--> retired */
#ifndef PROXY_STAGES_H
#define PROXY_STAGES_H

typedef enum proxy_stage {
    PROXY_STARTING, /* nothing is served before all sources have settled */
    PROXY_SERVING,
    PROXY_CHANGING, /* the entries of a new configuration are being taken */
    PROXY_DRAINING, /* calls under way may end, and no new ones begin */
    PROXY_ENDING    /* the runtime stops; nothing is begun any more */
} proxy_stage;

typedef enum service_stage {
    SERVICE_MADE, /* its server may exist, and no client reaches it */
    SERVICE_OPEN, /* clients reach it */
    SERVICE_TOLD, /* clients reach it, and the log has said so */
    SERVICE_ENDED /* no new client reaches it; the calls under way are answered */
} service_stage;

typedef enum source_stage {
    SOURCE_STARTING, /* its lists are read for the first time, or again after a failure */
    SOURCE_READY,    /* its lists were read and are not shown yet (succession.c) */
    SOURCE_OFFERED,  /* the server of its path has its items */
    SOURCE_FAILED,   /* it has never had a session, or cannot replace another source */
    SOURCE_RETIRED   /* it ends after its calls */
} source_stage;

struct proxy;
struct service;
struct source;

void proxy_enter(struct proxy *p, proxy_stage to);
void service_enter(struct service *v, service_stage to);
void source_enter(struct source *s, source_stage to);

#endif
