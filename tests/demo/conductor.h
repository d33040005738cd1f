/* Runs the demo: starts client and server, kills them and cuts their connections at
 * random moments, starts them again, and checks what arrived. */
#ifndef CONDUCTOR_H
#define CONDUCTOR_H

#include <stdbool.h>
#include <stdint.h>

/* Returns an exit status. program: the path of this program, which is also the client.
 * http: true = the two use HTTP, false = stdio. */
int conductor_run(const char *program, const char *text_path, bool http, uint64_t seed,
                  int duration_ms);

#endif
