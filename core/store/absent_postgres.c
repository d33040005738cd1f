#include <stdio.h>

#include "base/absent.h"
#include "store/store.h"

segue_status sgi_store_postgres_new(const char *url, const segue_store_options *options,
                                    segue_store **out, char *message, size_t room)
{
    (void)url;
    (void)options;
    (void)out;
    snprintf(message, room, "%s", SGI_ABSENT_TEXT("PostgreSQL", "SEGUE_POSTGRES"));
    return SEGUE_E_UNSUPPORTED;
}
