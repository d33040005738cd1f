/* The versions of the protocol, oldest first, and what each of them allows. */
#ifndef SGI_VERSION_H
#define SGI_VERSION_H

#include "base/base.h"

typedef enum sgi_version {
    SGI_VERSION_UNKNOWN = 0,
    SGI_VERSION_2024_11_05,
    SGI_VERSION_2025_03_26,
    SGI_VERSION_2025_06_18,
    SGI_VERSION_2025_11_25,
    SGI_VERSION_DRAFT_2026_V1,
    SGI_VERSION_2026_07_28
} sgi_version;

/* The version of the modern era, in which each request says all that the server needs. */
#define SGI_VERSION_MODERN SGI_VERSION_2026_07_28
/* The newest version of the protocol in which a session begins with initialize. */
#define SGI_VERSION_HANDSHAKE SGI_VERSION_2025_11_25

/* The versions of the protocol, newest first, as the JSON that names them to a client. */
#define SGI_VERSIONS_JSON                                                                \
    "[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"]"

/* Which members of a message the HTTP headers repeat. */
typedef enum sgi_header_repeats {
    SGI_REPEATS_NOTHING = 0,
    SGI_REPEATS_TASK_IDS, /* the method, and the id of a task */
    SGI_REPEATS_ALL       /* the method, the name, and the marked arguments of a tool */
} sgi_header_repeats;

/* What a version of the protocol has. Code that serves several versions asks for one of
 * these facts and never for the version. An unknown version has the facts of a session
 * that has not begun. */
typedef struct sgi_version_facts {
    sgi_str name;
    /* the error code of "Resource not found" */
    int32_t not_found_code;
    sgi_header_repeats header_repeats;
    /* a released version in which a session begins with initialize; false for a draft: it
     * may begin so too, but only if its dialect is switched on */
    bool has_handshake;
    /* each request says all that the server needs: there are no sessions, the server
     * sends no requests, and a GET opens no stream */
    bool is_stateless;
    /* a message may be an array of messages */
    bool has_batches;
    /* arguments that do not fit a tool's schema make the request fail with an error;
     * false = the result of the tool reports the mismatch */
    bool refuses_arguments;
    /* an event stream begins with an event that has an id and no data */
    bool primes_streams;
    /* a client can be asked for a task like a server */
    bool has_tasks_both_ways;
    /* the server asks its client in rounds (SEP-2322): it answers a call with questions,
     * and the client repeats the call with the answers; false = the server sends its
     * questions as requests */
    bool has_rounds;
    /* results have resultType, and _meta with serverInfo */
    bool has_result_types;
    /* results that may be cached have ttlMs and cacheScope */
    bool has_cache_hints;
    /* structured output may be any JSON; false = it is an object */
    bool has_any_output;
    /* a client subscribes to one resource by resources/subscribe */
    bool has_subscribe;
    /* capabilities.extensions names the dialects; false = capabilities.experimental */
    bool has_extensions;
    /* a request gives its log level in _meta; false = logging/setLevel sets it */
    bool has_log_level_in_meta;
    /* the end of an HTTP exchange cancels its request */
    bool cancels_by_closing;
} sgi_version_facts;

/* the facts of each version; use sgi_facts() */
extern const sgi_version_facts sgi_versions[];

sgi_version sgi_version_parse(sgi_str text);
/* True when the version of this name has the error code for header mismatches. A later
 * version has it, too. Versions are dates. */
bool sgi_version_name_has_mismatch_code(sgi_str name);

static inline const sgi_version_facts *sgi_facts(sgi_version version)
{
    return &sgi_versions[version];
}

static inline const char *sgi_version_name(sgi_version version)
{
    return sgi_facts(version)->name.p;
}

#endif
