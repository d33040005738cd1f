/* Conversations and committers without a protocol behind them, for tests of the runtime
 * and of transports. A test program includes fake_engine_body.h in one file. The
 * definitions of sgi_conn_... and sgi_committer_... in that file replace the functions of
 * the library.
 *
 * A fake conversation sends back what it receives, or keeps it; it speaks no protocol. */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include "engine/cluster/change_feed.h"
#include "runtime/runtime.h"
#include "transport/transport.h"

struct sgi_conn {
    sgi_engine *engine;
    segue_runtime *rt;
    void *transport;
    bool echo;    /* the conversation sends back what it receives */
    bool wants;   /* the conversation wants input */
    bool stalled; /* the runtime offered input while none was wanted */
    bool up;
    bool told;
    bool detached;
    bool retry;   /* the conversation asks for a reopen when the transport is lost */
    bool reopens; /* what host.reopen returned */
    bool sole;    /* the transport said that it is the only transport of its runtime */
    int32_t starts;
    int32_t losses;
    int32_t detaches;
    int32_t feeds;
    size_t most_fed; /* largest single feed, in bytes */
    char why[200];   /* reason of the last loss */
    sgi_buf in;      /* received bytes, unless they are sent back */
    size_t in_len;   /* number of received bytes */
    sgi_buf out;
    size_t chunk;      /* maximum bytes that one sgi_conn_take_output gives; 0 = all */
    const char *hello; /* the text that is sent at each start of a transport */
    void (*on_feed)(struct sgi_conn *conn);   /* called after each feed, lock held */
    void (*on_output)(struct sgi_conn *conn); /* called when output is taken, lock held */
};

/* Makes a conversation with the allocator of the C library, so the accounts of the
 * runtime do not count it. */
sgi_conn *fake_conn_new(segue_runtime *rt, segue_transport *transport);
void fake_conn_free(sgi_conn *conn);
/* These functions take the lock. */
void fake_conn_attach(sgi_conn *conn);
void fake_conn_send(sgi_conn *conn, const char *bytes, size_t len);
/* These functions do the same for a caller that holds the lock. */
void fake_conn_put(sgi_conn *conn, const char *bytes, size_t len);
void fake_conn_want(sgi_conn *conn, bool wants);
void fake_conn_close(sgi_conn *conn);
bool fake_conn_reopen(sgi_conn *conn);
bool fake_conn_is_detached(sgi_conn *conn);

typedef struct fake_committer {
    sgi_committer base;
    segue_store_write writes[64];
    size_t dirty; /* number of writes that are not in a commit yet */
    size_t committing;
    size_t committed;
    size_t largest; /* most writes in one commit */
    int32_t commits;
    int32_t failures;
    segue_status last;
    int32_t jobs_done;
    void (*on_done)(struct fake_committer *committer); /* called after each commit,
                                                          lock held */
} fake_committer;

void fake_committer_init(fake_committer *committer, segue_runtime *rt);
/* Takes the lock. */
void fake_committer_dirty(fake_committer *committer, size_t writes);
/* Does what fake_committer_dirty does, for a caller that holds the lock. */
void fake_committer_put(fake_committer *committer, size_t writes);
void fake_committer_ask(fake_committer *committer, sgi_store_job *job,
                        sgi_store_job_kind kind, void (*done)(sgi_store_job *job));

/* Dispatches in steps of a few milliseconds until the condition holds; fails the test
 * after two minutes. */
#define RUN_UNTIL(rt, condition)                                                         \
    do {                                                                                 \
        int steps_ = 0;                                                                  \
        while (!(condition)) {                                                           \
            assert_in_range(sgi_runtime_dispatch((rt), 10, 0, NULL), 0, 0);              \
            assert_true(++steps_ < 12000);                                               \
        }                                                                                \
    } while (0)

#endif
