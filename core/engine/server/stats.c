/* Every count is updated when its value changes, so reading the counts takes constant
 * time. Only the operations that wait for the store are counted while the statistics are
 * written. */
#include "engine/server/stats.h"

#include <string.h>

/* What waits for the store. */
typedef struct waiting {
    int64_t dirty, broken, jobs, bytes;
} waiting;

static waiting count_waiting(const sgi_committer *committer)
{
    waiting found = {0};
    const sgi_op *op;
    const sgi_store_job *job;
    TAILQ_FOREACH(op, &committer->dirty, dirty_link) {
        found.dirty++;
        found.bytes += (int64_t)op->pending_bytes;
    }
    TAILQ_FOREACH(op, &committer->broken, dirty_link)
        found.broken++;
    TAILQ_FOREACH(job, &committer->jobs, link)
        found.jobs++;
    return found;
}

void sgi_stats_read(const segue_server *server, sgi_stat stats[SGI_STATS])
{
    const sgi_committer_counts *store = &server->committer.counts;
    const waiting queues = count_waiting(&server->committer);
    const sgi_stat now[SGI_STATS] = {
#define STAT(group, name, kind, help, value)                                             \
    {#group, #name, SGI_STAT_##kind, help, (int64_t)(value)},
#include "engine/server/stats.def"
#undef STAT
    };
    memcpy(stats, now, sizeof now);
}

static void write_commit_times(const sgi_duration_tally *took, sgi_jw *w)
{
    const struct {
        const char *name;
        uint64_t us;
    } times[] = {{"mean", took->count ? took->sum_us / took->count : 0},
                 {"p50", sgi_duration_tally_percentile(took, 50)},
                 {"p99", sgi_duration_tally_percentile(took, 99)},
                 {"max", took->max_us}};
    sgi_jw_key(w, "commitUs");
    sgi_jw_open(w, '{');
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        sgi_jw_member_int(w, times[i].name, (int64_t)times[i].us);
    sgi_jw_close(w, '}');
}

typedef struct json_writer {
    sgi_jw w;
    const segue_server *server;
    const char *group; /* the object that is open; NULL = none */
} json_writer;

static void begin_group(json_writer *to, const char *group)
{
    if (to->group)
        sgi_jw_close(&to->w, '}');
    to->group = group;
    sgi_jw_key(&to->w, group);
    sgi_jw_open(&to->w, '{');
    if (strcmp(group, "store") == 0)
        write_commit_times(&to->server->committer.counts.took, &to->w);
}

static void write_member(json_writer *to, const sgi_stat *stat)
{
    if (!to->group || strcmp(to->group, stat->group) != 0)
        begin_group(to, stat->group);
    if (stat->value >= 0)
        sgi_jw_member_int(&to->w, stat->name, stat->value);
}

void sgi_stats_write(const segue_server *server, sgi_buf *out)
{
    json_writer to = {.w = sgi_jw_to(out), .server = server};
    sgi_stat stats[SGI_STATS];
    sgi_stats_read(server, stats);
    sgi_jw_open(&to.w, '{');
    for (size_t i = 0; i < SGI_STATS; i++)
        write_member(&to, &stats[i]);
    sgi_jw_close(&to.w, '}');
    sgi_jw_close(&to.w, '}');
}
