/* What every transport must do, written once. A kind says how to open one end of a
 * transport whose far end sends everything back; adding a transport is adding a kind. */
#ifndef TRANSPORT_SUITE_H
#define TRANSPORT_SUITE_H

#include "fake_engine.h"
#include "test_mem.h"

typedef struct suite_rig suite_rig;

typedef struct suite_kind {
    const char *name;
    /* Makes rig->near and its far end; the status of the constructor under test. */
    segue_status (*open)(suite_rig *rig);
    /* The far end goes away. */
    void (*end_far)(suite_rig *rig);
    /* After the runtime is gone. */
    void (*clean)(suite_rig *rig);
} suite_kind;

struct suite_rig {
    const suite_kind *kind;
    test_mem mem;
    segue_runtime *rt;
    segue_transport *near;
    sgi_conn *conn; /* at the near end */
    sgi_conn *far;  /* where the far end is a conversation too */
    void *state;    /* the kind's */
    int fd;         /* the kind's */
};

/* Runs the suite for one kind; the number of failed cases. */
int run_transport_suite(const suite_kind *kind);

/* A runtime with a test allocator, and rig->near of the kind with a conversation. */
void suite_set_up(suite_rig *rig, const suite_kind *kind);
void suite_tear_down(suite_rig *rig);

#endif
