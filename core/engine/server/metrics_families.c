/* Writes all metrics. A metric is written for all servers before the next one, because
 * the text format has each metric once. */
#include "engine/server/metrics.h"

#include <stdio.h>

#include "engine/server/stats.h"

/* the number of items of a kind that have rows of their own, and the length of their
 * names in bytes */
#define NAMED_MAX SGI_THRESHOLD(metric_items)
#define NAME_MAX_BYTES SGI_THRESHOLD(metric_name_bytes)

static const char *const era_names[SGI_ERAS] = {"legacy", "modern"};

/* The value of error_type for each end; NULL = the call succeeded. */
static const char *const error_types[SGI_METRICS_ENDS] = {
    [SGI_FINAL_NONE] = "lost",       [SGI_FINAL_RESULT_IS_ERROR] = "tool_error",
    [SGI_FINAL_ERROR] = "error",     [SGI_FINAL_CANCELLED] = "cancelled",
    [SGI_FINAL_EXPIRED] = "expired", [SGI_METRICS_UNKNOWN_NAME] = "unknown_name",
};

typedef struct writer {
    sgi_buf *out;
    const sgi_metrics_source *sources;
    size_t count;     /* number of sources */
    int64_t resident; /* number of bytes of the process in memory; negative = not known */
    const char *name; /* of the metric that is written */
    sgi_buf labels;   /* of the sample that is written */
} writer;

/* Begins the labels of a sample of a server. */
static void begin_labels(writer *to, const sgi_metrics_source *source)
{
    sgi_buf_shorten(&to->labels, 0);
    if (source->endpoint)
        sgi_metrics_add_label(&to->labels, "endpoint", source->endpoint);
}

static sgi_metrics_sample sample_of(const writer *to)
{
    return (sgi_metrics_sample){to->name, sgi_buf_str(&to->labels)};
}

/* Writes the value of a metric that is one number of the runtime. */
static void write_one(const writer *to, uint64_t value)
{
    sgi_metrics_write_value(to->out, (sgi_metrics_sample){.name = to->name}, value);
}

static const sgi_engine *engine_of(const writer *to)
{
    return to->sources[0].server->engine;
}

/* ---- items ---- */

typedef void (*write_tally_fn)(writer *to, const sgi_item_tally *tally);

static bool has_own_row(const sgi_item *item, size_t named)
{
    return named < NAMED_MAX && strlen(item->key) <= NAME_MAX_BYTES &&
           strcmp(item->key, SGI_METRICS_OTHER) != 0;
}

static void add_to_others(sgi_item_tally *others, const sgi_item_tally *more)
{
    for (size_t i = 0; i < (size_t)SGI_ERAS * SGI_METRICS_ENDS; i++)
        others->ends[i / SGI_METRICS_ENDS][i % SGI_METRICS_ENDS] +=
            more->ends[i / SGI_METRICS_ENDS][i % SGI_METRICS_ENDS];
    sgi_histogram_merge(&others->took, &more->took);
}

static void write_named(writer *to, const sgi_metrics_source *source,
                        const sgi_metrics_kind *kind, const char *name,
                        const sgi_item_tally *tally, write_tally_fn write)
{
    begin_labels(to, source);
    sgi_metrics_add_label(&to->labels, "mcp_method_name", kind->kind->method);
    sgi_metrics_add_label(&to->labels, kind->label, name);
    write(to, tally);
}

static void write_kind(writer *to, const sgi_metrics_source *source, size_t at,
                       write_tally_fn write)
{
    const segue_server *server = source->server;
    const sgi_metrics_kind *kind = &sgi_metrics_kinds[at];
    const sgi_item *item;
    sgi_item_tally others = {0};
    size_t named = 0;
    TAILQ_FOREACH(item, &server->shelves[kind->type - 1].items, link) {
        if (!item->tally)
            continue;
        if (has_own_row(item, named)) {
            named++;
            write_named(to, source, kind, item->key, item->tally, write);
        } else {
            add_to_others(&others, item->tally);
        }
    }
    for (size_t era = 0; era < SGI_ERAS; era++)
        others.ends[era][SGI_METRICS_UNKNOWN_NAME] +=
            server->counts.asked.unknown[at][era];
    write_named(to, source, kind, SGI_METRICS_OTHER, &others, write);
}

static void write_each_item(writer *to, write_tally_fn write)
{
    for (size_t i = 0; i < to->count; i++)
        for (size_t kind = 0; kind < SGI_METRICS_KINDS; kind++)
            write_kind(to, &to->sources[i], kind, write);
}

static void write_ends(writer *to, const sgi_item_tally *tally)
{
    size_t len = to->labels.len;
    for (size_t at = 0; at < (size_t)SGI_ERAS * SGI_METRICS_ENDS; at++) {
        uint64_t count = tally->ends[at / SGI_METRICS_ENDS][at % SGI_METRICS_ENDS];
        const char *error = error_types[at % SGI_METRICS_ENDS];
        if (!count)
            continue;
        sgi_buf_shorten(&to->labels, len);
        sgi_metrics_add_label(&to->labels, "era", era_names[at / SGI_METRICS_ENDS]);
        if (error)
            sgi_metrics_add_label(&to->labels, "error_type", error);
        sgi_metrics_write_value(to->out, sample_of(to), count);
    }
}

static void write_took(writer *to, const sgi_item_tally *tally)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= SGI_HISTOGRAM_BOUNDS; i++)
        count += tally->took.counts[i];
    if (count)
        sgi_metrics_write_histogram(to->out, sample_of(to), &tally->took,
                                    &sgi_scale_of_calls, 1000);
}

static void write_calls(writer *to)
{
    write_each_item(to, write_ends);
}

static void write_durations(writer *to)
{
    write_each_item(to, write_took);
}

/* ---- requests ---- */

static void write_method(writer *to, const sgi_metrics_source *source, const char *name,
                         const uint64_t count[SGI_ERAS])
{
    for (size_t era = 0; era < SGI_ERAS; era++) {
        if (!count[era])
            continue;
        begin_labels(to, source);
        sgi_metrics_add_label(&to->labels, "mcp_method_name", name);
        sgi_metrics_add_label(&to->labels, "era", era_names[era]);
        sgi_metrics_write_value(to->out, sample_of(to), count[era]);
    }
}

/* Sums the rows of a method, which several tables can have. Returns false when a row
 * before this one has the same name. */
static bool sum_method(const sgi_asked *asked, size_t at, uint64_t sums[SGI_ERAS])
{
    const sgi_method *method = asked->methods[at].method;
    for (size_t i = 0; method && i < SGI_ASKED_METHODS; i++) {
        const sgi_asked_method *row = &asked->methods[i];
        if (!row->method || strcmp(row->method->name, method->name) != 0)
            continue;
        if (i < at)
            return false;
        for (size_t era = 0; era < SGI_ERAS; era++)
            sums[era] += row->count[era];
    }
    return method != NULL;
}

static void write_requests(writer *to)
{
    for (size_t i = 0; i < to->count; i++) {
        const sgi_asked *asked = &to->sources[i].server->counts.asked;
        for (size_t at = 0; at < SGI_ASKED_METHODS; at++) {
            uint64_t sums[SGI_ERAS] = {0};
            if (sum_method(asked, at, sums))
                write_method(to, &to->sources[i], asked->methods[at].method->name, sums);
        }
        write_method(to, &to->sources[i], SGI_METRICS_OTHER, asked->others.count);
    }
}

/* ---- the store ---- */

static void write_commits(writer *to)
{
    for (size_t i = 0; i < to->count; i++) {
        const sgi_committer_counts *counts = &to->sources[i].server->committer.counts;
        begin_labels(to, &to->sources[i]);
        sgi_metrics_write_histogram(to->out, sample_of(to), &counts->durations,
                                    &sgi_scale_of_commits, 1000000);
    }
}

static void write_batches(writer *to)
{
    for (size_t i = 0; i < to->count; i++) {
        const sgi_committer_counts *counts = &to->sources[i].server->committer.counts;
        begin_labels(to, &to->sources[i]);
        sgi_metrics_write_histogram(to->out, sample_of(to), &counts->batches,
                                    &sgi_scale_of_batches, 1);
    }
}

/* ---- the runtime ---- */

static void write_limits(writer *to)
{
    for (int id = SGI_LIMIT_NONE + 1; id < SGI_LIMIT_COUNT; id++) {
        sgi_buf_shorten(&to->labels, 0);
        sgi_metrics_add_label(&to->labels, "limit", sgi_limit_name((sgi_limit_id)id));
        sgi_metrics_write_value(to->out, sample_of(to), engine_of(to)->limit_hits[id]);
    }
}

static void write_warnings(writer *to)
{
    write_one(to, engine_of(to)->warnings);
}

static void write_resident(writer *to)
{
    if (to->resident >= 0)
        write_one(to, (uint64_t)to->resident);
}

static void write_build(writer *to)
{
    sgi_buf_shorten(&to->labels, 0);
    sgi_metrics_add_label(&to->labels, "version", SGI_VERSION);
    sgi_metrics_write_value(to->out, sample_of(to), 1);
}

/* ---- the statistics ---- */

/* Writes segue_GROUP_NAME in lower case, with underscores where a word begins. */
static void name_stat(const sgi_stat *stat, char name[96])
{
    size_t n = (size_t)snprintf(name, 64, "segue_%s_", stat->group);
    for (const char *c = stat->name; *c && n < 80; c++) {
        if (*c >= 'A' && *c <= 'Z')
            name[n++] = '_';
        name[n++] = (char)(*c >= 'A' && *c <= 'Z' ? *c + 'a' - 'A' : *c);
    }
    snprintf(name + n, 96 - n, "%s", stat->kind == SGI_STAT_TOTAL ? "_total" : "");
}

/* Writes one number of all servers. stat: the number of the first server; SGI_STATS rows
 * behind it is that of the next server. */
static void write_stat(writer *to, const sgi_stat *stat)
{
    char name[96];
    name_stat(stat, name);
    to->name = name;
    sgi_metrics_write_head(
        to->out, name, stat->kind == SGI_STAT_TOTAL ? "counter" : "gauge", stat->help);
    for (size_t i = 0; i < to->count; i++, stat += SGI_STATS) {
        if (stat->value < 0)
            continue;
        begin_labels(to, &to->sources[i]);
        sgi_metrics_write_value(to->out, sample_of(to), (uint64_t)stat->value);
    }
}

static void write_stats(writer *to)
{
    const sgi_mem *mem = to->labels.mem;
    size_t size = to->count * SGI_STATS * sizeof(sgi_stat);
    sgi_stat *stats = sgi_alloc(mem, size);
    if (!stats) {
        to->out->failed = true;
        return;
    }
    for (size_t i = 0; i < to->count; i++)
        sgi_stats_read(to->sources[i].server, stats + i * SGI_STATS);
    for (size_t i = 0; i < SGI_STATS; i++)
        write_stat(to, stats + i);
    sgi_free(mem, stats, size);
}

/* ---- all ---- */

static const struct {
    const char *name, *type, *help;
    void (*write)(writer *to);
} metrics[] = {
#define METRIC(id, name, type, help) {name, #type, help, write_##id},
#include "engine/server/metrics.def"
#undef METRIC
};

bool sgi_serve_has_metrics(void)
{
    return true;
}

void sgi_serve_write_metrics(const sgi_metrics_source *sources, size_t count,
                             int64_t resident, sgi_buf *out)
{
    writer to = {.out = out, .sources = sources, .count = count, .resident = resident};
    sgi_buf_init(&to.labels, out->mem);
    write_stats(&to);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        to.name = metrics[i].name;
        sgi_metrics_write_head(out, metrics[i].name, metrics[i].type, metrics[i].help);
        metrics[i].write(&to);
    }
    out->failed |= to.labels.failed;
    sgi_buf_free(&to.labels);
}
