/* The gate limits how far the server may go with the text: a number in a file beside the
 * store, which the conductor writes and every server reads, also one that a client has
 * started. */
#ifndef GATE_H
#define GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the file, with a limit of 0 lines. Returns its descriptor; -1 with errno. */
int gate_make(const char *store);

/* Sets how many lines may be sent. Returns false with errno. */
bool gate_set(int gate, uint64_t lines);

/* For the server: returns a descriptor, or -1 when no conductor has made a gate. */
int gate_find(const char *store);

/* Returns how many lines may be sent; without a gate there is no limit. */
uint64_t gate_get(int gate);

#endif
