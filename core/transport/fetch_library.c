#include "transport/fetch_library.h"

sgi_curl_functions sgi_curl = {SGI_CURL_FUNCTIONS(SGI_LATE_VALUE)};

bool sgi_curl_load(char *why, size_t why_size)
{
    static const char *const names[] = {SGI_CURL_FUNCTIONS(SGI_LATE_NAME)};
    static sgi_late_library library = {"libcurl.so.4", names,
                                       sizeof names / sizeof *names, &sgi_curl,
                                       SGI_LATE_IS_LOADED};
    return sgi_late_library_load(&library, why, why_size);
}
