/* The definitions for fake_engine.h. */
#include "fake_engine.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- conversations ---- */

sgi_conn *fake_conn_new(segue_runtime *rt, segue_transport *transport)
{
    sgi_conn *conn = sgi_zalloc(&sgi_mem_libc, sizeof *conn);
    conn->rt = rt;
    conn->engine = sgi_runtime_engine(rt);
    conn->transport = transport;
    conn->wants = true;
    sgi_buf_init(&conn->in, &sgi_mem_libc);
    sgi_buf_init(&conn->out, conn->engine->env.mem);
    return conn;
}

void fake_conn_free(sgi_conn *conn)
{
    sgi_buf_free(&conn->in);
    sgi_free(&sgi_mem_libc, conn, sizeof *conn);
}

void fake_conn_attach(sgi_conn *conn)
{
    sgi_runtime_lock(conn->rt);
    segue_status status = sgi_transport_attach(conn->transport, conn);
    sgi_runtime_unlock(conn->rt);
    if (status != SEGUE_OK) {
        fprintf(stderr, "attach: %d\n", (int)status);
        abort();
    }
}

static void tell_output(sgi_conn *conn)
{
    if (conn->told || !conn->up || !conn->out.len)
        return;
    conn->told = true;
    conn->engine->host.output(conn->engine->host.user, conn);
}

void fake_conn_put(sgi_conn *conn, const char *bytes, size_t len)
{
    sgi_buf_add(&conn->out, bytes, len);
    if (conn->out
            .failed) /* the engine does the same: it ends a conversation rather than lose
                      * bytes */
        conn->engine->host.close(conn->engine->host.user, conn);
    else
        tell_output(conn);
}

void fake_conn_send(sgi_conn *conn, const char *bytes, size_t len)
{
    sgi_runtime_lock(conn->rt);
    fake_conn_put(conn, bytes, len);
    sgi_runtime_unlock(conn->rt);
}

void fake_conn_want(sgi_conn *conn, bool wants)
{
    sgi_runtime_lock(conn->rt);
    conn->wants = wants;
    if (wants && conn->up)
        conn->engine->host.input(conn->engine->host.user, conn);
    sgi_runtime_unlock(conn->rt);
}

void fake_conn_close(sgi_conn *conn)
{
    sgi_runtime_lock(conn->rt);
    if (!conn->detached)
        conn->engine->host.close(conn->engine->host.user, conn);
    sgi_runtime_unlock(conn->rt);
}

bool fake_conn_reopen(sgi_conn *conn)
{
    sgi_runtime_lock(conn->rt);
    bool can = conn->engine->host.reopen(conn->engine->host.user, conn);
    sgi_runtime_unlock(conn->rt);
    return can;
}

bool fake_conn_is_detached(sgi_conn *conn)
{
    sgi_runtime_lock(conn->rt);
    bool detached = conn->detached;
    sgi_runtime_unlock(conn->rt);
    return detached;
}

void sgi_conn_set_uses_stdio(sgi_conn *conn)
{
    conn->sole = true;
}

void sgi_conn_start(sgi_conn *conn)
{
    conn->starts++;
    conn->up = true;
    conn->told = false;
    if (conn->hello)
        fake_conn_put(conn, conn->hello, strlen(conn->hello));
    tell_output(conn);
}

void sgi_conn_add_input(sgi_conn *conn, const char *bytes, size_t len)
{
    if (!conn->up)
        return;
    conn->feeds++;
    conn->in_len += len;
    if (len > conn->most_fed)
        conn->most_fed = len;
    if (conn->echo)
        fake_conn_put(conn, bytes, len);
    else
        sgi_buf_add(&conn->in, bytes, len);
    if (conn->on_feed)
        conn->on_feed(conn);
}

bool sgi_conn_wants_input(sgi_conn *conn)
{
    bool wants = conn->wants && conn->out.len < conn->engine->max_queue;
    conn->stalled = !wants;
    return wants;
}

void sgi_conn_drop_output(sgi_conn *conn)
{
    sgi_buf_reset(&conn->out, SIZE_MAX);
}

void sgi_conn_take_output(sgi_conn *conn, sgi_buf *into)
{
    if (!conn->up)
        return;
    if (into->len) {
        fprintf(stderr, "output is taken into a buffer that is not empty\n");
        abort();
    }
    conn->told = false;
    if (conn->on_output)
        conn->on_output(conn);
    if (conn->chunk && conn->out.len > conn->chunk) {
        sgi_buf_add(into, conn->out.p, conn->chunk);
        sgi_buf_drop_front(&conn->out, into->len);
        into->failed = false;
    } else {
        sgi_buf filled = conn->out;
        conn->out = *into;
        *into = filled;
        sgi_buf_reset(&conn->out, SIZE_MAX);
    }
    tell_output(conn);
    if (conn->stalled && sgi_conn_wants_input(conn))
        conn->engine->host.input(conn->engine->host.user, conn);
}

void sgi_conn_on_lost(sgi_conn *conn, const char *why)
{
    if (!conn->up)
        return;
    conn->up = false;
    conn->losses++;
    sgi_buf_reset(&conn->out, 0);
    snprintf(conn->why, sizeof conn->why, "%s", why);
    if (conn->retry)
        conn->reopens = conn->engine->host.reopen(conn->engine->host.user, conn);
}

void sgi_conn_detach(sgi_conn *conn)
{
    sgi_conn_on_lost(conn, "detached");
    conn->detached = true;
    conn->detaches++;
    conn->transport = NULL;
    sgi_buf_free(&conn->out); /* the runtime may be freed before this conversation */
}

void *sgi_conn_transport(const sgi_conn *conn)
{
    return conn->transport;
}

/* ---- committers ---- */

void fake_committer_init(fake_committer *committer, segue_runtime *rt)
{
    memset(committer, 0, sizeof *committer);
    committer->base.engine = sgi_runtime_engine(rt);
    TAILQ_INIT(&committer->base.jobs);
    for (size_t i = 0; i < 64; i++)
        committer->writes[i].kind = SEGUE_STORE_DELETE;
}

static void call_host(sgi_committer *committer)
{
    committer->engine->host.store(committer->engine->host.user, committer);
}

void fake_committer_put(fake_committer *committer, size_t writes)
{
    committer->dirty += writes;
    call_host(&committer->base);
}

void fake_committer_dirty(fake_committer *committer, size_t writes)
{
    sgi_runtime_lock(committer->base.engine->host.user);
    fake_committer_put(committer, writes);
    sgi_runtime_unlock(committer->base.engine->host.user);
}

void fake_committer_ask(fake_committer *committer, sgi_store_job *job,
                        sgi_store_job_kind kind, void (*done)(sgi_store_job *job))
{
    memset(job, 0, sizeof *job);
    job->kind = kind;
    job->committer = &committer->base;
    job->done = done;
    sgi_runtime_lock(committer->base.engine->host.user);
    TAILQ_INSERT_TAIL(&committer->base.jobs, job, link);
    call_host(&committer->base);
    sgi_runtime_unlock(committer->base.engine->host.user);
}

void sgi_commit_free(const sgi_mem *mem, sgi_commit *batch)
{
    (void)mem;
    *batch = (sgi_commit){0};
}

void sgi_change_feed_reset(sgi_change_feed *feed, const sgi_committer *committer)
{
    (void)committer;
    memset(feed, 0, sizeof *feed);
}

int32_t sgi_change_feed_add(void *user, const segue_store_news *news)
{
    (void)user;
    (void)news;
    return 0;
}

void sgi_change_feed_apply(sgi_committer *committer, sgi_change_feed *feed)
{
    (void)committer;
    (void)feed;
}

void sgi_feed_change_list_free(struct sgi_feed_change_list *list)
{
    (void)list;
}

bool sgi_committer_fill_commit(sgi_committer *committer, sgi_commit *batch)
{
    fake_committer *fake = SGI_OWNER(committer, fake_committer, base);
    if (!fake->dirty)
        return false;
    fake->committing = fake->dirty;
    fake->dirty = 0;
    batch->writes = fake->writes;
    batch->count = fake->committing;
    return true;
}

void sgi_committer_on_commit_done(sgi_committer *committer, sgi_commit *batch,
                                  segue_status status)
{
    fake_committer *fake = SGI_OWNER(committer, fake_committer, base);
    fake->commits++;
    fake->last = status;
    if (status == SEGUE_OK)
        fake->committed += fake->committing;
    else
        fake->failures++;
    if (fake->committing > fake->largest)
        fake->largest = fake->committing;
    fake->committing = 0;
    batch->count = 0;
    if (fake->on_done)
        fake->on_done(fake);
}

sgi_store_job *sgi_committer_take_job(sgi_committer *committer)
{
    sgi_store_job *job = TAILQ_FIRST(&committer->jobs);
    if (job)
        TAILQ_REMOVE(&committer->jobs, job, link);
    return job;
}

int32_t sgi_store_job_add_record(void *user, const segue_store_record *record)
{
    sgi_store_job *job = user;
    (void)record;
    job->bytes++;
    return 0;
}

int32_t sgi_store_job_add_entry(void *user, const segue_store_entry *entry)
{
    sgi_store_job *job = user;
    (void)entry;
    job->bytes++;
    return 0;
}
