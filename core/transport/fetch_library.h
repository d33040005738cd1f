/* libcurl, which is loaded when the first fetcher is made (late_library.h). The functions
 * of libcurl are members of sgi_curl, by their names. */
#ifndef SGI_FETCH_LIBRARY_H
#define SGI_FETCH_LIBRARY_H

#include <curl/curl.h>

#include "base/late_library.h"

/* Macros of curl.h with these names check the types of arguments. They would replace
 * members with the same names. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

// clang-format off
#define SGI_CURL_FUNCTIONS(ONE)                                                          \
    ONE(curl_easy_cleanup) ONE(curl_easy_getinfo) ONE(curl_easy_init)                    \
    ONE(curl_easy_pause) ONE(curl_easy_setopt) ONE(curl_easy_strerror) ONE(curl_free)    \
    ONE(curl_getdate) ONE(curl_global_init) ONE(curl_multi_add_handle)                   \
    ONE(curl_multi_assign) ONE(curl_multi_cleanup) ONE(curl_multi_info_read)             \
    ONE(curl_multi_init) ONE(curl_multi_remove_handle) ONE(curl_multi_setopt)            \
    ONE(curl_multi_socket_action) ONE(curl_multi_strerror) ONE(curl_url)                 \
    ONE(curl_url_cleanup) ONE(curl_url_get) ONE(curl_url_set) ONE(curl_version_info)
// clang-format on

typedef struct sgi_curl_functions {
    SGI_CURL_FUNCTIONS(SGI_LATE_MEMBER)
} sgi_curl_functions;

extern sgi_curl_functions sgi_curl;

/* Makes sgi_curl ready. After a failure, returns false and writes a sentence to `why`. */
bool sgi_curl_load(char *why, size_t why_size);

#endif
