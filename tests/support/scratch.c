/* Process id and a call number make a name; old files with that name are removed. */
#include "support/scratch.h"

#include <stdio.h>
#include <unistd.h>

void scratch_clear(const char *path)
{
    static const char *const ends[] = {"",     "-journal", "-wal",
                                       "-shm", "-owners",  ".sock"};
    char name[200];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

void scratch_name(char *path, size_t size, const char *begin)
{
    static int number;
    snprintf(path, size, "%s-%d-%d.db", begin, (int)getpid(), ++number);
    scratch_clear(path);
}
