/* A child process: starting, signalling and reaping it. The code of this file knows
 * nothing about conversations. */
#ifndef SGI_CHILD_H
#define SGI_CHILD_H

#include <sys/types.h>

#include "base/base.h"

/* The command of a child process. The struct and all its texts are one block of
 * memory. */
typedef struct sgi_child_command {
    size_t size;
    char **argv;
    char **env; /* environment of the child; NULL = the environment of this process */
    char *dir;  /* working directory of the child; NULL = the directory of this process */
} sgi_child_command;

/* Copies the command of the options. Returns NULL when out of memory. */
sgi_child_command *sgi_child_command_copy(const sgi_mem *mem,
                                          const segue_spawn_options *options);
void sgi_child_command_free(const sgi_mem *mem, sgi_child_command *command);

typedef struct sgi_child {
    pid_t pid; /* the process id of the child; 0 = no child */
    int pidfd; /* the pidfd of the child; becomes readable when the child ends */
    /* this process's ends of the pipes to the child's standard streams; -1 = closed */
    int in;
    int out;
    int err;
} sgi_child;

/* Starts the child. Returns 0, or the errno of the step that failed (exec is one of the
 * steps). with_err: true = the child's standard error is read through a pipe; false = the
 * child inherits standard error. */
int sgi_child_start(sgi_child *child, const sgi_child_command *command, bool with_err);
void sgi_child_signal(const sgi_child *child, int signal);

typedef struct sgi_child_exit {
    /* false = other code of this process has reaped the child, so the child's exit status
     * is unknown */
    bool known;
    /* true = a signal ended the child, and `value` is the signal's number; false =
     * `value` is the exit status */
    bool killed;
    int value;
} sgi_child_exit;

/* Reaps the child. wait: true = wait until the child has ended. Returns false when the
 * child still runs. */
bool sgi_child_reap(sgi_child *child, bool wait, sgi_child_exit *how);
/* Closes the open descriptors of a child that was already reaped. */
void sgi_child_close(sgi_child *child);

#endif
