/* Database files that belong to this process alone. Process ids are reused, and a killed
 * test leaves its files behind. With the same random seed, the ids of its tasks would
 * already exist in such a file. So the functions give a name only after they removed old
 * files. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stddef.h>

/* Writes a path with this beginning; no other call and no other process has the same
 * path. */
void scratch_name(char *path, size_t size, const char *begin);
/* Removes the file and what SQLite, a store and a listener have put beside it. */
void scratch_clear(const char *path);

#endif
