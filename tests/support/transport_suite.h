/* Tests that every transport must pass. A kind has the functions that open one end of a
 * transport whose far end sends everything back. A new transport needs only a new
 * kind. */
#ifndef TRANSPORT_SUITE_H
#define TRANSPORT_SUITE_H

#include "fake_engine.h"
#include "test_mem.h"

typedef struct suite_rig suite_rig;

typedef struct suite_kind {
    const char *name;
    /* Makes rig->near and its far end; returns the status of the constructor under
     * test. */
    segue_status (*open)(suite_rig *rig);
    /* Ends the far end. */
    void (*end_far)(suite_rig *rig);
    /* Called after the runtime is gone. */
    void (*clean)(suite_rig *rig);
} suite_kind;

struct suite_rig {
    const suite_kind *kind;
    test_mem mem;
    segue_runtime *rt;
    segue_transport *near;
    sgi_conn *conn; /* the conversation at the near end */
    sgi_conn *far;  /* the far end, if it is a conversation too */
    void *state;    /* state of the kind */
    int fd;         /* file descriptor of the kind */
};

/* Runs the suite for one kind; returns the number of failed cases. */
int run_transport_suite(const suite_kind *kind);

/* Makes a runtime with a test allocator, and rig->near of the kind with a
 * conversation. */
void suite_set_up(suite_rig *rig, const suite_kind *kind);
void suite_tear_down(suite_rig *rig);

#endif
