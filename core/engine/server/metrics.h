/* The metrics of a server: what it counts for them (metrics_count.c), and the text format
 * of Prometheus (metrics_text.c, metrics_families.c). The numbers of stats.def are
 * metrics, too. Names follow the OpenTelemetry semantic conventions for MCP where these
 * have one. In a build without metrics, absent_metrics.c has these functions. */
#ifndef SGI_METRICS_H
#define SGI_METRICS_H

#include "base/histogram.h"
#include "engine/server/peer.h"

/* the value of a label for what has no row of its own */
#define SGI_METRICS_OTHER "_other"

typedef enum sgi_metrics_era {
    SGI_ERA_LEGACY, /* the versions that begin with `initialize` */
    SGI_ERA_MODERN,
    SGI_ERAS
} sgi_metrics_era;

/* How a call ended: by its final entry (sgi_final), or before it began. */
enum {
    SGI_METRICS_UNKNOWN_NAME = SGI_FINAL_EXPIRED + 1, /* no item has the name */
    SGI_METRICS_ENDS
};

/* What the calls of an item, or of several items, did. */
typedef struct sgi_item_tally {
    uint64_t ends[SGI_ERAS][SGI_METRICS_ENDS];
    sgi_histogram took; /* ms from the start of the handler to the end of the call */
} sgi_item_tally;

/* The items whose calls are counted, by the label that has the name of the item. */
typedef struct sgi_metrics_kind {
    const sgi_call_kind *kind;
    int32_t type; /* a segue_item */
    const char *label;
} sgi_metrics_kind;

extern const sgi_metrics_kind sgi_metrics_kinds[SGI_METRICS_KINDS];

/* ---- counting (metrics_count.c) ---- */

/* Counts the end of a call whose handler was started this time ago, in ms. Does nothing
 * when memory has run out. */
void sgi_metrics_count_end(const sgi_op *op, int64_t took_ms);
/* Counts a call of an item that does not exist, or that the caller must not see. type: a
 * segue_item. */
void sgi_metrics_count_unknown(const sgi_inbound *in, int32_t type);
/* Counts a request. method: NULL = the server has no such method. */
void sgi_metrics_count_request(const sgi_inbound *in, const sgi_method *method);
void sgi_metrics_free_item(sgi_item *item);

/* ---- the text (metrics_text.c) ---- */

/* One sample, or one series of a histogram. */
typedef struct sgi_metrics_sample {
    const char *name;
    sgi_str labels; /* the labels without braces, as sgi_metrics_add_label writes them */
} sgi_metrics_sample;

/* Writes the lines HELP and TYPE. type: "counter", "gauge" or "histogram". */
void sgi_metrics_write_head(sgi_buf *out, const char *name, const char *type,
                            const char *help);
void sgi_metrics_write_value(sgi_buf *out, sgi_metrics_sample sample, uint64_t value);
/* Writes the buckets, the sum and the count. per_unit: how many units of the values make
 * one unit of the text: 1, 1000 or 1000000. */
void sgi_metrics_write_histogram(sgi_buf *out, sgi_metrics_sample sample,
                                 const sgi_histogram *histogram,
                                 const sgi_histogram_scale *scale, uint32_t per_unit);
/* Adds a label to a list of labels. Its value can be any text. */
void sgi_metrics_add_label(sgi_buf *labels, const char *name, const char *value);

#endif
