/* The text format of Prometheus, version 0.0.4. */
#include "engine/server/metrics.h"

#include <stdio.h>

static void add(sgi_buf *out, const char *text)
{
    sgi_buf_add_str(out, sgi_str_of(text));
}

void sgi_metrics_write_head(sgi_buf *out, const char *name, const char *type,
                            const char *help)
{
    const char *const parts[] = {"# HELP ", name, " ",  help, "\n# TYPE ",
                                 name,      " ",  type, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        add(out, parts[i]);
}

void sgi_metrics_add_label(sgi_buf *labels, const char *name, const char *value)
{
    if (labels->len)
        sgi_buf_add_char(labels, ',');
    add(labels, name);
    add(labels, "=\"");
    for (; *value; value++) {
        if (*value == '\n') {
            add(labels, "\\n");
            continue;
        }
        if (*value == '"' || *value == '\\')
            sgi_buf_add_char(labels, '\\');
        sgi_buf_add_char(labels, *value);
    }
    sgi_buf_add_char(labels, '"');
}

/* Writes the name and the labels. `more`: a further label as text; NULL = none. */
static void begin_line(sgi_buf *out, sgi_metrics_sample sample, const char *suffix,
                       const char *more)
{
    add(out, sample.name);
    add(out, suffix);
    if (sample.labels.n || more) {
        sgi_buf_add_char(out, '{');
        sgi_buf_add_str(out, sample.labels);
        if (sample.labels.n && more)
            sgi_buf_add_char(out, ',');
        add(out, more ? more : "");
        sgi_buf_add_char(out, '}');
    }
    sgi_buf_add_char(out, ' ');
}

static void end_line(sgi_buf *out, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)value);
    add(out, text);
}

void sgi_metrics_write_value(sgi_buf *out, sgi_metrics_sample sample, uint64_t value)
{
    begin_line(out, sample, "", NULL);
    end_line(out, value);
}

/* Writes a number of parts as a decimal number, exactly and without trailing zeros. */
static void format_parts(char text[40], uint64_t parts, uint32_t per_unit)
{
    int at = snprintf(text, 24, "%llu", (unsigned long long)(parts / per_unit));
    uint64_t rest = parts % per_unit;
    if (rest)
        text[at++] = '.';
    for (uint32_t unit = per_unit / 10; rest; rest %= unit, unit /= 10)
        text[at++] = (char)('0' + rest / unit);
    text[at] = 0;
}

void sgi_metrics_write_histogram(sgi_buf *out, sgi_metrics_sample sample,
                                 const sgi_histogram *histogram,
                                 const sgi_histogram_scale *scale, uint32_t per_unit)
{
    uint64_t count = 0;
    char bound[40], label[56];
    for (size_t i = 0; i < SGI_HISTOGRAM_BOUNDS; i++) {
        count += histogram->counts[i];
        format_parts(bound, scale->bounds[i], per_unit);
        snprintf(label, sizeof label, "le=\"%s\"", bound);
        begin_line(out, sample, "_bucket", label);
        end_line(out, count);
    }
    count += histogram->counts[SGI_HISTOGRAM_BOUNDS];
    begin_line(out, sample, "_bucket", "le=\"+Inf\"");
    end_line(out, count);
    format_parts(bound, histogram->sum, per_unit);
    begin_line(out, sample, "_sum", NULL);
    add(out, bound);
    sgi_buf_add_char(out, '\n');
    begin_line(out, sample, "_count", NULL);
    end_line(out, count);
}
