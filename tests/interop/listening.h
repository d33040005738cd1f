/* How the fixture server is reached over HTTP, and what its operator may do while it
 * runs: SIGTERM closes the server and lets calls end, SIGHUP reads the certificates
 * again. */
#ifndef LISTENING_H
#define LISTENING_H

#include <segue/segue.h>

typedef struct listening {
    segue_listen_options options;
    segue_bearer_options bearer; /* authorization_servers: NULL = everybody may come */
    segue_listener *listener;    /* NULL = standard input and output are served */
    segue_server *server;
    int is_wanted;
    int is_closing;
    int64_t deadline_ms; /* of the end, once it is closing */
} listening;

/* Takes an option of the command line; 0 when it is not one of these. */
int listening_take(listening *l, const char *name, const char *value);
/* Listens and prints the URL. */
segue_status listening_begin(listening *l, segue_server *server);
/* Does what the signals ask for; 1 once the time to end is over. */
int listening_tick(listening *l, int64_t now_ms);

#endif
