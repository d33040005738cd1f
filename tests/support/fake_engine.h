/* Conversations and keepers without a protocol behind them, for tests of the runtime and
 * of transports. A test program includes fake_engine_body.h in one file: its definitions
 * of sgi_conn_... and sgi_keeper_... take the place of those in the library.
 *
 * A fake conversation sends back what it receives, or keeps it; it speaks no protocol. */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include "runtime/runtime.h"
#include "transport/transport.h"

struct sgi_conn {
    sgi_engine *engine;
    segue_runtime *rt;
    void *transport;
    bool echo;    /* send back what comes in */
    bool wants;   /* input is wanted */
    bool stalled; /* it was asked for and not wanted */
    bool up;
    bool told;
    bool detached;
    bool retry;   /* ask for a reopen when lost */
    bool reopens; /* what host.reopen said */
    bool sole;    /* its transport said so */
    int32_t starts;
    int32_t losses;
    int32_t detaches;
    int32_t feeds;
    size_t most_fed; /* largest single feed */
    char why[200];   /* of the last loss */
    sgi_buf in;      /* what came in, unless echoed */
    size_t in_len;   /* how much came in */
    sgi_buf out;
    size_t chunk;      /* most that one sgi_conn_output gives; 0 = all */
    const char *hello; /* sent at each start */
    void (*on_feed)(struct sgi_conn *conn);   /* after each feed, lock held */
    void (*on_output)(struct sgi_conn *conn); /* when output is taken, lock held */
};

/* Made with the allocator of the C library, so that the runtime's own accounts stay
 * clean. */
sgi_conn *fake_conn_new(segue_runtime *rt, segue_transport *transport);
void fake_conn_free(sgi_conn *conn);
/* These take the lock. */
void fake_conn_attach(sgi_conn *conn);
void fake_conn_send(sgi_conn *conn, const char *bytes, size_t len);
/* The same with the lock held. */
void fake_conn_put(sgi_conn *conn, const char *bytes, size_t len);
void fake_conn_want(sgi_conn *conn, bool wants);
void fake_conn_close(sgi_conn *conn);
bool fake_conn_reopen(sgi_conn *conn);
bool fake_conn_is_detached(sgi_conn *conn);

typedef struct fake_keeper {
    sgi_keeper base;
    segue_store_write writes[64];
    size_t dirty; /* writes that are due */
    size_t committing;
    size_t committed;
    size_t largest; /* most writes in one commit */
    int32_t commits;
    int32_t failures;
    segue_status last;
    int32_t jobs_done;
    void (*on_done)(struct fake_keeper *keeper); /* after each commit, lock held */
} fake_keeper;

void fake_keeper_init(fake_keeper *keeper, segue_runtime *rt);
/* Takes the lock. */
void fake_keeper_dirty(fake_keeper *keeper, size_t writes);
/* The same with the lock held. */
void fake_keeper_put(fake_keeper *keeper, size_t writes);
void fake_keeper_ask(fake_keeper *keeper, sgi_job *job, sgi_job_kind kind,
                     void (*done)(sgi_job *job));

/* Dispatches, in steps of a few milliseconds, until the condition holds; fails the test
 * when it takes two minutes. */
#define RUN_UNTIL(rt, condition)                                                         \
    do {                                                                                 \
        int steps_ = 0;                                                                  \
        while (!(condition)) {                                                           \
            assert_in_range(sgi_runtime_dispatch((rt), 10, 0, NULL), 0, 0);              \
            assert_true(++steps_ < 12000);                                               \
        }                                                                                \
    } while (0)

#endif
