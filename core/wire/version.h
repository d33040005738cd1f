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

/* The only version in which a message may be an array of messages. */
#define SGI_VERSION_BATCHES SGI_VERSION_2025_03_26
/* The versions of the protocol, newest first, as the JSON that names them to a client. */
#define SGI_VERSIONS_JSON                                                                \
    "[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"]"

sgi_version sgi_version_parse(sgi_str text);
const char *sgi_version_name(sgi_version version);
/* True for the name of the modern version, and for one with a later date. Versions are
 * dates. */
bool sgi_version_name_is_modern(sgi_str name);

static inline bool sgi_version_is_modern(sgi_version version)
{
    return version == SGI_VERSION_MODERN;
}

/* True for the released versions in which a session begins with initialize. Returns
 * false for a draft version: it may begin so too, but only if its dialect is switched
 * on. */
static inline bool sgi_version_has_handshake(sgi_version version)
{
    return version != SGI_VERSION_UNKNOWN && version <= SGI_VERSION_HANDSHAKE;
}

/* True when a message may be an array of messages. */
static inline bool sgi_version_has_batches(sgi_version version)
{
    return version == SGI_VERSION_BATCHES;
}

/* True when arguments that do not fit a tool's schema make the request fail with an
 * error. Returns false when the result of the tool reports the mismatch. */
static inline bool sgi_version_refuses_arguments(sgi_version version)
{
    return version < SGI_VERSION_2025_11_25;
}

/* True when an event stream begins with an event that has an id and no data. */
static inline bool sgi_version_primes_streams(sgi_version version)
{
    return version >= SGI_VERSION_2025_11_25;
}

/* True when both sides may ask for tasks, so a client can be asked for a task like a
 * server. */
static inline bool sgi_version_has_tasks_both_ways(sgi_version version)
{
    return version == SGI_VERSION_2025_11_25;
}

/* True when HTTP headers repeat members of the message. The draft version repeats only
 * one member of params: the id of a task. */
static inline bool sgi_version_repeats_in_headers(sgi_version version)
{
    return version >= SGI_VERSION_DRAFT_2026_V1;
}
static inline bool sgi_version_repeats_task_ids_only(sgi_version version)
{
    return version == SGI_VERSION_DRAFT_2026_V1;
}

/* True when a server of this version asks its client in rounds (SEP-2322): it answers a
 * call with questions, and the client repeats the call with the answers. In older
 * versions the server sends its questions as requests. */
static inline bool sgi_version_has_rounds(sgi_version version)
{
    return version >= SGI_VERSION_DRAFT_2026_V1;
}

#endif
