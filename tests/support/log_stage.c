#include "support/log_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

test_mem log_mem;

fake_host log_host;

segue_server *log_server;

sgi_op *log_op; /* the operation of the test; freed after it */

int log_set_up(void **state)
{
    (void)state;
    test_mem_init(&log_mem);
    fake_host_init(&log_host, &log_mem.mem, 31);
    log_server = fake_server_new(&log_host);
    log_op = NULL;
    return 0;
}

int log_tear_down(void **state)
{
    (void)state;
    test_mem_rearm(&log_mem);
    if (log_op)
        sgi_op_unref(log_op);
    fake_server_end(log_server);
    fake_host_free(&log_host);
    assert_int_equal(log_mem.live, 0);
    return 0;
}

void log_append(sgi_entry_kind kind, const char *payload)
{
    assert_int_equal(sgi_op_append(log_op, kind, sgi_str_of(payload)), SEGUE_OK);
}

void log_say(sgi_op *op, const char *json)
{
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, sgi_str_of(json)), SEGUE_OK);
}

size_t log_rows_of(const sgi_op *op)
{
    size_t count = 0;
    const fake_row *row = NULL;
    while ((row = fake_store_next(&log_host, op->id, row ? row->entry.seq : 0)))
        count++;
    return count;
}

void log_commit_unless(const sgi_op *bad)
{
    bool holds = false;
    for (size_t i = 0; i < log_host.batch.count; i++)
        holds |= !memcmp(log_host.batch.writes[i].id, bad->id, sizeof bad->id);
    fake_store_done(&log_host, holds ? SEGUE_E_STORE_FULL : SEGUE_OK);
}

void log_fire(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    log_listener *l = SGI_OWNER(waiter, log_listener, waiter);
    (void)op;
    l->fired++;
    l->status = status;
}
