/* Lets the addon be loaded under AddressSanitizer with the usual flags. The sanitizer's
 * own dlopen refuses RTLD_DEEPBIND, because libraries could then miss its malloc. The
 * addon does not, because libasan is the first of its dependencies. Preloaded before
 * libasan by .ci/node sanitized. */
#define _GNU_SOURCE
#include <dlfcn.h>

void *dlopen(const char *file, int flags)
{
    return dlmopen(LM_ID_BASE, file, flags);
}
