/* Every count is updated when its value changes, so reading the counts takes constant
 * time. Only the operations that wait for the store are counted while the statistics are
 * written. */
#include "engine/server/stats.h"

static void open_part(sgi_jw *w, const char *name)
{
    sgi_jw_key(w, name);
    sgi_jw_open(w, '{');
}

static void put(sgi_jw *w, const char *name, uint64_t value)
{
    sgi_jw_member_int(w, name, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void write_operations(const segue_server *server, sgi_jw *w)
{
    const sgi_server_counts *counts = &server->counts;
    open_part(w, "operations");
    put(w, "known", server->cluster.by_task.count);
    put(w, "running", server->calls.count);
    put(w, "followed", server->cluster.followed);
    put(w, "lingering", (uint64_t)server->lingering.count);
    put(w, "recovering", (uint64_t)server->cluster.recovering);
    put(w, "calls", counts->calls);
    put(w, "tasks", counts->tasks);
    put(w, "takenOver", counts->taken_over);
    put(w, "fenced", server->cluster.counts.fenced);
    put(w, "letters", server->cluster.counts.commands);
    sgi_jw_close(w, '}');
}

static void write_use(const segue_server *server, sgi_jw *w)
{
    open_part(w, "use");
    put(w, "requests", (uint64_t)server->use.requests);
    put(w, "logBytes", server->use.account.bytes);
    put(w, "replayBytes", server->sessions.parked_bytes);
    put(w, "principals", server->principals.count);
    put(w, "sessions", server->sessions.by_id.count);
    put(w, "refused", server->counts.refused + server->cluster.counts.refused);
    put(w, "thinned", server->counts.thinned);
    sgi_jw_close(w, '}');
}

static void write_queues(const sgi_committer *committer, sgi_jw *w)
{
    uint64_t dirty = 0, broken = 0, jobs = 0, bytes = 0;
    const sgi_op *op;
    const sgi_store_job *job;
    TAILQ_FOREACH(op, &committer->dirty, dirty_link) {
        dirty++;
        bytes += op->pending_bytes;
    }
    TAILQ_FOREACH(op, &committer->broken, dirty_link)
        broken++;
    TAILQ_FOREACH(job, &committer->jobs, link)
        jobs++;
    open_part(w, "queues");
    put(w, "commit", dirty);
    put(w, "commitBytes", bytes);
    put(w, "retry", broken);
    put(w, "questions", jobs);
    sgi_jw_close(w, '}');
}

static void put_known(sgi_jw *w, const char *name, int64_t value)
{
    if (value >= 0)
        sgi_jw_member_int(w, name, value);
}

static void write_store(const sgi_committer *committer, sgi_jw *w)
{
    const sgi_committer_counts *counts = &committer->counts;
    const sgi_duration_tally *took = &counts->took;
    open_part(w, "store");
    put(w, "commits", counts->commits);
    put(w, "writes", counts->writes);
    put(w, "failures", counts->failures);
    open_part(w, "commitUs");
    put(w, "mean", took->count ? took->sum_us / took->count : 0);
    put(w, "p50", sgi_duration_tally_percentile(took, 50));
    put(w, "p99", sgi_duration_tally_percentile(took, 99));
    put(w, "max", took->max_us);
    sgi_jw_close(w, '}');
    put_known(w, "operations", counts->store.operations);
    put_known(w, "bytes", counts->store.bytes);
    put_known(w, "evicted", counts->store.evicted);
    put_known(w, "purged", counts->store.purged);
    sgi_jw_close(w, '}');
}

static void write_resumes(const sgi_server_counts *counts, sgi_jw *w)
{
    open_part(w, "resumes");
    put(w, "streams", counts->resumes);
    put(w, "bytes", counts->sent_again);
    put(w, "repaired", counts->repaired);
    sgi_jw_close(w, '}');
}

void sgi_stats_write(const segue_server *server, sgi_buf *out)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    write_operations(server, &w);
    write_use(server, &w);
    write_queues(&server->committer, &w);
    write_store(&server->committer, &w);
    write_resumes(&server->counts, &w);
    sgi_jw_close(&w, '}');
}
