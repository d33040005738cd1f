/* Lets the addon be loaded under AddressSanitizer as it is always loaded: the sanitizer's
 * own dlopen refuses RTLD_DEEPBIND, for the sake of libraries that would then miss its
 * malloc. The addon does not: libasan is the first of its dependencies. Preloaded before
 * libasan by .ci/node sanitized. */
#define _GNU_SOURCE
#include <dlfcn.h>

void *dlopen(const char *file, int flags)
{
    return dlmopen(LM_ID_BASE, file, flags);
}
