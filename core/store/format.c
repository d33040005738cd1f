#include "store/format.h"

#include "base/thresholds.h"

#define WAIT_MS SGI_THRESHOLD(format_wait_ms)

bool sgi_store_format_is_due(sgi_store_format *format, bool older, int64_t now_ms)
{
    if (!format->alone)
        format->alone_since_ms = now_ms;
    format->alone = !older;
    return !older && now_ms - format->alone_since_ms >= WAIT_MS;
}

void sgi_store_format_wait_again(sgi_store_format *format)
{
    format->alone = false;
}

int32_t sgi_store_format_records(const sgi_store_format *format, int of_records_2)
{
    return atomic_load(&format->number) < of_records_2 ? 1 : 2;
}
