/* A late library: a shared library that is loaded when a function of it is first needed.
 * A library that loads many others costs every program milliseconds at its start and
 * megabytes of memory, although few programs call it. A build that contains its libraries
 * (SEGUE_BUNDLED) links them, and loads nothing.
 *
 * The functions of a late library are the members of a table, which have their names:
 *
 *     #define SGI_PQ_FUNCTIONS(ONE) ONE(PQclear) ONE(PQfinish)
 *     typedef struct sgi_pq_functions {
 *         SGI_PQ_FUNCTIONS(SGI_LATE_MEMBER)
 *     } sgi_pq_functions;
 *     sgi_pq_functions sgi_pq = {SGI_PQ_FUNCTIONS(SGI_LATE_VALUE)};
 *
 * The table is complete when the library is loaded, and does not change after that. */
#ifndef SGI_LATE_LIBRARY_H
#define SGI_LATE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define SGI_LATE_MEMBER(name) __typeof__(name) *name;
#define SGI_LATE_NAME(name) #name,
#ifdef SGI_LINKS_ALL /* a bundled build */
#define SGI_LATE_VALUE(name) name,
#define SGI_LATE_IS_LOADED true
#else
#define SGI_LATE_VALUE(name) NULL,
#define SGI_LATE_IS_LOADED false
#endif

typedef struct sgi_late_library {
    const char *file;         /* such as "libpq.so.5" */
    const char *const *names; /* the names of the functions, in the order of the table */
    size_t count;
    void *table; /* pointers to functions and nothing else */
    bool loaded; /* SGI_LATE_IS_LOADED in the beginning */
} sgi_late_library;

/* Loads the library and completes its table, unless that was done before. After a
 * failure, returns false and writes a sentence to `why`; a later call tries again. The
 * library stays loaded until the process ends. Thread-safe. */
bool sgi_late_library_load(sgi_late_library *library, char *why, size_t why_size);

#endif
