/* Limits of the size of a log, and of the number, size and age of retained events. */
#ifndef SGI_LOG_LIMITS_H
#define SGI_LOG_LIMITS_H

#include "base/base.h"

/* The limits of each operation. */
typedef struct sgi_op_limits {
    size_t max_result_bytes;
    size_t max_log_bytes;
    uint64_t max_segments;
    int32_t max_inputs;
} sgi_op_limits;

/* The limits of a task's retained events; see retention.h. */
typedef struct sgi_retention_limits {
    int64_t max_events; /* 0 = no limit, in each of the three members */
    int64_t max_bytes;
    int64_t ttl_ms;
} sgi_retention_limits;

#endif
