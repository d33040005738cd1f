/* A child process: starting, signalling and reaping it. This code knows nothing of
 * conversations. */
#ifndef SGI_CHILD_H
#define SGI_CHILD_H

#include <sys/types.h>

#include "base/base.h"

/* The command to start, in one block of memory with all its texts. */
typedef struct sgi_child_command {
    size_t size;
    char **argv;
    char **env; /* environment of the child; NULL = inherited */
    char *dir;  /* working directory of the child; NULL = inherited */
} sgi_child_command;

/* Copies the command in the options. Returns NULL when out of memory. */
sgi_child_command *sgi_child_command_copy(const sgi_mem *mem,
                                          const segue_spawn_options *options);
void sgi_child_command_free(const sgi_mem *mem, sgi_child_command *command);

typedef struct sgi_child {
    pid_t pid; /* the process id; 0 = no child */
    int pidfd; /* the pidfd, which is readable after the child has ended */
    /* the ends of the child's standard streams that this process uses; -1 = closed */
    int in;
    int out;
    int err;
} sgi_child;

/* Starts the child. Returns 0, or the errno of the step that failed, including exec.
 * Standard error is inherited unless with_err is set. */
int sgi_child_start(sgi_child *child, const sgi_child_command *command, bool with_err);
void sgi_child_signal(const sgi_child *child, int signal);

typedef struct sgi_child_exit {
    /* false = other code of this process has reaped the child, so its exit status is
     * unknown */
    bool known;
    /* true = a signal ended the child, and `value` is its number; false = `value` is
     * the exit status */
    bool killed;
    int value;
} sgi_child_exit;

/* Reaps the child. With `wait`, waits until the child has ended. Returns false when
 * the child still runs. */
bool sgi_child_reap(sgi_child *child, bool wait, sgi_child_exit *how);
/* Closes the open descriptors. The child must have been reaped. */
void sgi_child_close(sgi_child *child);

#endif
