/* What counts and writes metrics, in a library that was built without metrics: nothing is
 * counted. */
#include "engine/server/metrics.h"

void sgi_metrics_count_end(const sgi_op *op, int64_t took_ms)
{
    (void)op;
    (void)took_ms;
}

void sgi_metrics_count_unknown(const sgi_inbound *in, int32_t type)
{
    (void)in;
    (void)type;
}

void sgi_metrics_count_request(const sgi_inbound *in, const sgi_method *method)
{
    (void)in;
    (void)method;
}

void sgi_metrics_free_item(sgi_item *item)
{
    (void)item;
}

bool sgi_serve_has_metrics(void)
{
    return false;
}

void sgi_serve_write_metrics(const sgi_metrics_source *sources, size_t count,
                             int64_t resident, sgi_buf *out)
{
    (void)sources;
    (void)count;
    (void)resident;
    (void)out;
}
