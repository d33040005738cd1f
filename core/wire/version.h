/* The versions of the protocol, the oldest first, and what each version allows. */
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

/* The version of the modern era, in which each request contains everything that the
 * server needs. */
#define SGI_VERSION_MODERN SGI_VERSION_2026_07_28
/* The newest version of the protocol in which a session begins with initialize. */
#define SGI_VERSION_HANDSHAKE SGI_VERSION_2025_11_25

/* The version of an HTTP request without a session and without MCP-Protocol-Version
 * (2025-11-25 basic/transports, "Protocol Version Header"). */
#define SGI_VERSION_OF_NO_HEADER SGI_VERSION_2025_03_26

/* The versions of the protocol, the newest first, as the JSON array that a client
 * receives. */
#define SGI_VERSIONS_JSON                                                                \
    "[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"]"

/* Which members of a message the HTTP headers repeat. */
typedef enum sgi_header_repeats {
    SGI_REPEATS_NOTHING = 0,
    SGI_REPEATS_TASK_IDS, /* headers repeat the method, and the id of a task */
    /* headers repeat the method, the name, and the marked arguments of a tool */
    SGI_REPEATS_ALL
} sgi_header_repeats;

/* The facts of one version of the protocol. Code that serves several versions tests these
 * facts and never the version itself. An unknown version has the facts of a session that
 * has not begun. */
typedef struct sgi_version_facts {
    sgi_str name;
    /* the JSON-RPC error code of "Resource not found" */
    int32_t not_found_code;
    sgi_header_repeats header_repeats;
    /* true = a released version in which a session begins with initialize; false for a
     * draft, whose sessions begin so only if its dialect is switched on */
    bool has_handshake;
    /* true = each request contains everything that the server needs: there are no
     * sessions, the server sends no requests, and a GET opens no stream */
    bool is_stateless;
    /* true = a message may be a JSON array of messages */
    bool has_batches;
    /* true = a call with arguments that do not fit the tool's schema fails with an error;
     * false = the result of the tool reports the mismatch */
    bool refuses_arguments;
    /* true = an event stream begins with an event that has an id and no data */
    bool primes_streams;
    /* true = a server, too, can ask its client for a task */
    bool has_tasks_both_ways;
    /* true = the server asks its client in rounds (SEP-2322): it answers a call with
     * questions, and the client repeats the call with the answers; false = the server
     * sends its questions as requests */
    bool has_rounds;
    /* true = results have resultType, and serverInfo in _meta */
    bool has_result_types;
    /* true = results that may be cached have ttlMs and cacheScope */
    bool has_cache_hints;
    /* true = structured output may be any JSON value; false = it must be an object */
    bool has_any_output;
    /* true = a client subscribes to one resource by resources/subscribe */
    bool has_subscribe;
    /* true = capabilities.extensions names the dialects; false =
     * capabilities.experimental names them */
    bool has_extensions;
    /* true = a request gives its log level in _meta; false = logging/setLevel sets the
     * level */
    bool has_log_level_in_meta;
    /* true = the end of an HTTP exchange cancels its request */
    bool cancels_by_closing;
} sgi_version_facts;

/* The facts of each version. Use sgi_facts() to read them. */
extern const sgi_version_facts sgi_versions[];

sgi_version sgi_version_parse(sgi_str text);
/* True when the version with this name, or a later version, has the error code for header
 * mismatches. Names of versions are dates, so they sort by age. */
bool sgi_version_name_has_mismatch_code(sgi_str name);

/* Returns the version with this number, which was read from a peer or a store. Returns
 * SGI_VERSION_UNKNOWN for a number that only a newer library knows. */
static inline sgi_version sgi_version_from_number(int number)
{
    bool is_known = number > SGI_VERSION_UNKNOWN && number <= SGI_VERSION_MODERN;
    return is_known ? (sgi_version)number : SGI_VERSION_UNKNOWN;
}

static inline const sgi_version_facts *sgi_facts(sgi_version version)
{
    return &sgi_versions[version];
}

static inline const char *sgi_version_name(sgi_version version)
{
    return sgi_facts(version)->name.p;
}

#endif
