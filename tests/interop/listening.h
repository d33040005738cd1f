/* The fixture server over HTTP, and the actions of its operator while it runs: SIGTERM
 * closes the server and lets calls end, SIGHUP reads the certificates again. */
#ifndef LISTENING_H
#define LISTENING_H

#include <segue/segue.h>
#include <segue/segue_auth.h>

typedef struct listening {
    segue_listen_options options;
    segue_bearer_options bearer; /* authorization_servers NULL = no tokens are required */
    segue_listener *listener;    /* NULL = the server uses standard input and output */
    segue_server *server;
    int is_wanted;
    int is_closing;
    int64_t deadline_ms; /* when the server ends at the latest, once it is closing */
} listening;

/* Takes an option of the command line; returns 0 when it is not one of these. */
int listening_take(listening *l, const char *name, const char *value);
/* Listens and prints the URL. */
segue_status listening_begin(listening *l, segue_server *server);
/* Carries out signals that have come; returns 1 once the time to end is over. */
int listening_tick(listening *l, int64_t now_ms);

#endif
