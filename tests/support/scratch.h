/* Database files that belong to this process alone. Numbers of processes come again, and
 * a test that was killed has left its files: with the same chance, the ids of its tasks
 * would be there already. So whoever takes a name finds nothing there. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stddef.h>

/* Writes a path that begins so; no other call and no other process has it. */
void scratch_name(char *path, size_t size, const char *begin);
/* The file goes, with what SQLite, a store and a listener have put beside it. */
void scratch_clear(const char *path);

#endif
