/* The program segue-proxy, without its main function, so that a test can run the program
 * with a clock of its own. */
#ifndef PROXY_PROGRAM_H
#define PROXY_PROGRAM_H

#include <segue/segue_ext.h>

typedef struct program_hooks {
    const segue_hooks *clock;
    void *user;
    /* Called when the runtime exists, before it runs. */
    void (*begun)(void *user, segue_runtime *runtime);
    /* Called when the program ends, before the runtime is freed; also when `begun` was
     * not called. */
    void (*ending)(void *user);
} program_hooks;

/* Runs the program, and returns its exit status. hooks: for a test; NULL = the clock of
 * the system. */
int program_run(int argc, char **argv, const program_hooks *hooks);

#endif
