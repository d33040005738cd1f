#include "store/postgres_library.h"

sgi_pq_functions sgi_pq = {SGI_PQ_FUNCTIONS(SGI_LATE_VALUE)};

bool sgi_pq_load(char *why, size_t why_size)
{
    static const char *const names[] = {SGI_PQ_FUNCTIONS(SGI_LATE_NAME)};
    static sgi_late_library library = {"libpq.so.5", names, sizeof names / sizeof *names,
                                       &sgi_pq, SGI_LATE_IS_LOADED};
    return sgi_late_library_load(&library, why, why_size);
}
