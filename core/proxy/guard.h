/* The guard of a child process. */
#ifndef PROXY_GUARD_H
#define PROXY_GUARD_H

/* Runs argv as a child process. When the process `parent` ends, ends the child and all of
 * its descendants. Returns the exit status. */
int guard_run(long parent, char **argv);
/* Does the same with the arguments PARENT PROGRAM ARGUMENT..., of which the array has
 * `count`. Returns the exit status. */
int guard_run_arguments(int count, char **arguments);

#endif
