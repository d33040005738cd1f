/* The arguments of the program. */
#ifndef PROXY_OPTIONS_H
#define PROXY_OPTIONS_H

#include "config.h"

/* Reads the arguments. Returns -1 when the program should go on, otherwise its exit
 * status. */
int options_read(config *c, int argc, char **argv);

#endif
