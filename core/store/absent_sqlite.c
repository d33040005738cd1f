#include <stdio.h>

#include "base/absent.h"
#include "store/store.h"

segue_status sgi_store_sqlite_new(const char *path, const segue_store_options *options,
                                  segue_store **out, char *message, size_t room)
{
    (void)path;
    (void)options;
    (void)out;
    snprintf(message, room, "%s", SGI_ABSENT_TEXT("SQLite", "SEGUE_SQLITE"));
    return SEGUE_E_UNSUPPORTED;
}
