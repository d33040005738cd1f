/* `segue-proxy doctor`: says what a store or a server is, what is wrong with it, and how
 * to mend it. */
#ifndef PROXY_DOCTOR_H
#define PROXY_DOCTOR_H

#include <stdbool.h>

/* True when the first argument behind "doctor" is a store or --help. Otherwise a server
 * is to be examined: an HTTP URL, or options and a command. */
bool doctor_takes(int argc, char **argv);
/* Makes the arguments by which the program examines a server, from those of the command.
 * The caller frees the array. Returns NULL when out of memory. */
char **doctor_server_arguments(int *argc, char **argv);
/* Examines the store argv[1]; argv[0] is "doctor". Returns the exit status. */
int doctor_run(int argc, char **argv);

#endif
