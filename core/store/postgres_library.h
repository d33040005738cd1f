/* libpq, which is loaded when the first PostgreSQL store is opened (late_library.h). The
 * functions of libpq are members of sgi_pq, by their names. */
#ifndef SGI_POSTGRES_LIBRARY_H
#define SGI_POSTGRES_LIBRARY_H

#include <libpq-fe.h>

#include "base/late_library.h"

// clang-format off
#define SGI_PQ_FUNCTIONS(ONE)                                                            \
    ONE(PQclear) ONE(PQconnectPoll) ONE(PQconnectStartParams) ONE(PQconsumeInput)        \
    ONE(PQdb) ONE(PQerrorMessage) ONE(PQfinish) ONE(PQflush) ONE(PQfreemem)              \
    ONE(PQgetResult) ONE(PQgetisnull) ONE(PQgetlength) ONE(PQgetvalue) ONE(PQhost)       \
    ONE(PQisBusy) ONE(PQnotifies) ONE(PQntuples) ONE(PQresultErrorField)                 \
    ONE(PQresultStatus) ONE(PQsendQuery) ONE(PQsendQueryParams) ONE(PQserverVersion)     \
    ONE(PQsetNoticeReceiver) ONE(PQsetnonblocking) ONE(PQsocket) ONE(PQstatus)
// clang-format on

typedef struct sgi_pq_functions {
    SGI_PQ_FUNCTIONS(SGI_LATE_MEMBER)
} sgi_pq_functions;

extern sgi_pq_functions sgi_pq;

/* Makes sgi_pq ready. After a failure, returns false and writes a sentence to `why`. */
bool sgi_pq_load(char *why, size_t why_size);

#endif
