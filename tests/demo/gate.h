/* How far the server may go with the text: a number in a file beside the store, which the
 * conductor writes and every server reads, also one that a client has started. */
#ifndef GATE_H
#define GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the file, with nothing let through. Returns its descriptor; -1 with errno. */
int gate_make(const char *store);

/* So many lines may be sent from now on. False with errno. */
bool gate_set(int gate, uint64_t lines);

/* For the server: a descriptor, or -1 where no conductor has made a gate. */
int gate_find(const char *store);

/* How many lines may be sent; without a gate there is no bound. */
uint64_t gate_get(int gate);

#endif
