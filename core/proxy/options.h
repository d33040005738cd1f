/* The arguments of the program. */
#ifndef PROXY_OPTIONS_H
#define PROXY_OPTIONS_H

#include "config.h"

/* Reads the arguments into the configuration. Returns -1 when the program continues,
 * otherwise its exit status. */
int options_read(config *c, int argc, char **argv);

#endif
