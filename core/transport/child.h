/* A child process: how it is started, signalled and reaped. Knows nothing of
 * conversations. */
#ifndef SGI_CHILD_H
#define SGI_CHILD_H

#include <sys/types.h>

#include "base/base.h"

/* What to start: one block of memory with all texts in it. */
typedef struct sgi_command {
    size_t size;
    char **argv;
    char **env; /* NULL = inherit */
    char *dir;  /* NULL = inherit */
} sgi_command;

/* NULL when out of memory. */
sgi_command *sgi_command_copy(const sgi_mem *mem, const segue_spawn_options *options);
void sgi_command_free(const sgi_mem *mem, sgi_command *command);

typedef struct sgi_child {
    pid_t pid; /* 0 = there is none */
    int pidfd; /* readable once it has ended */
    int in;    /* our end of its standard input, and so on; -1 = closed */
    int out;
    int err;
} sgi_child;

/* 0, or the errno of what failed; exec included. Standard error is inherited unless
 * wanted. */
int sgi_child_start(sgi_child *child, const sgi_command *command, bool with_err);
void sgi_child_signal(const sgi_child *child, int signal);

typedef struct sgi_exit {
    bool known;  /* false: somebody else in this process has reaped it */
    bool killed; /* value is a signal, else a status */
    int value;
} sgi_exit;

/* Reaps it; false when it has not ended yet (only without wait). */
bool sgi_child_reap(sgi_child *child, bool wait, sgi_exit *how);
/* Closes what is open. The child must have been reaped. */
void sgi_child_close(sgi_child *child);

#endif
