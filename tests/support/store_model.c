/* A model of a store. Random batches go to the store and to a few arrays. Both must agree
 * on the status and, after each batch, on everything that can be read. Most batches are
 * valid, because a refused batch tests less. A refused batch must have changed
 * nothing. */
#include "support/store_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* There are few names, so that names collide. Two neighbouring operations have the same
 * idempotency key. */
#define MODEL_OPS 12
#define MODEL_BATCH 12

typedef struct model_op {
    bool exists;
    bool ended;
    bool loose;
    uint64_t last;
    int64_t purge_ms;
} model_op;

typedef struct model {
    model_op ops[MODEL_OPS];
} model;

typedef struct model_batch {
    test_record records[MODEL_BATCH];
    char data[MODEL_BATCH][TEST_ENTRY_MAX];
    segue_store_write writes[MODEL_BATCH];
    size_t count;
    segue_status status; /* the status that the store must return */
} model_batch;

typedef struct dice {
    uint64_t state;
} dice;

static uint32_t roll(dice *d, uint32_t sides)
{
    return (uint32_t)(test_mix(d->state++) % sides);
}

static segue_status model_create(model *m, uint32_t n, int64_t purge_ms)
{
    if (m->ops[n].exists || m->ops[n ^ 1].exists)
        return SEGUE_E_EXISTS;
    m->ops[n] = (model_op){.exists = true, .purge_ms = purge_ms};
    return SEGUE_OK;
}

/* Adds one random write, mostly a valid one, and plays it in the model. */
static segue_status add_write(model *m, model_batch *b, dice *d)
{
    size_t i = b->count++;
    uint32_t n = roll(d, MODEL_OPS);
    model_op *op = &m->ops[n];
    uint32_t what = roll(d, 100);
    if (!op->exists && what < 80) {
        test_record_init(&b->records[i], n);
        test_record_set_key(&b->records[i], n / 2);
        if (roll(d, 4) == 0)
            b->records[i].record.purge_ms = roll(d, 1000);
        b->writes[i] = test_write_create(&b->records[i]);
        return model_create(m, n, b->records[i].record.purge_ms);
    }
    if (what < 65) {
        uint64_t seq = op->last + 1 + (roll(d, 40) == 0);
        size_t len = test_entry_fill(b->data[i], n, seq);
        b->writes[i] = test_write_append(n, seq, b->data[i], len);
        if (!op->exists)
            return SEGUE_E_NOT_FOUND;
        if (seq != op->last + 1)
            return SEGUE_E_STATE;
        op->last = seq;
        return SEGUE_OK;
    }
    if (what < 77) {
        int64_t purge_ms = roll(d, 2) ? INT64_MAX : roll(d, 1000);
        b->writes[i] = test_write_end(n, purge_ms);
        if (!op->exists)
            return SEGUE_E_NOT_FOUND;
        op->ended = true;
        op->purge_ms = purge_ms;
        return SEGUE_OK;
    }
    if (what < 88) {
        b->writes[i] = test_write_simple(SEGUE_STORE_DELETE, n);
        op->exists = false;
        return SEGUE_OK;
    }
    if (what < 98) {
        b->writes[i] = test_write_simple(SEGUE_STORE_RELEASE, n);
        op->loose = op->loose || !op->ended;
        return SEGUE_OK;
    }
    b->writes[i] = test_write_simple(42, n);
    return SEGUE_E_INVALID;
}

/* Makes a batch and plays it in the model m. If the store must refuse the batch, m stays
 * unchanged. */
static void make_batch(model *m, model_batch *b, dice *d)
{
    model after = *m;
    size_t count = 1 + roll(d, MODEL_BATCH);
    b->count = 0;
    b->status = SEGUE_OK;
    while (b->count < count && !b->status)
        b->status = add_write(&after, b, d);
    if (!b->status)
        *m = after;
}

typedef struct listed {
    uint32_t n;
    int count;
} listed;

static int32_t check_listed(void *user, const segue_store_record *record)
{
    listed *l = user;
    l->count++;
    return test_check_record(&l->n, record);
}

static void compare_list(segue_store *store, const model *m, uint32_t n)
{
    test_record r;
    listed l = {n, 0};
    test_record_init(&r, n);
    assert_int_equal(sgi_store_list(store, r.record.principal, 0, NULL, check_listed, &l),
                     SEGUE_OK);
    assert_int_equal(l.count, m->ops[n].exists);
}

static void compare(segue_store *store, const model *m)
{
    for (uint32_t n = 0; n < MODEL_OPS; n++) {
        const model_op *op = &m->ops[n];
        compare_list(store, m, n);
        assert_int_equal(test_find(store, n), op->exists ? SEGUE_OK : SEGUE_E_NOT_FOUND);
        if (!op->exists) {
            assert_int_equal(test_read_status(store, n), SEGUE_E_NOT_FOUND);
            continue;
        }
        test_seen seen = test_must_find(store, n);
        assert_int_equal(seen.ended, op->ended);
        assert_int_equal(seen.purge_ms, op->purge_ms);
        test_assert_log(store, n, op->last);
        test_seen by_key;
        assert_int_equal(sgi_store_find(store, NULL, seen.key, test_keep_record, &by_key),
                         SEGUE_OK);
        assert_memory_equal(by_key.id, seen.id, sizeof seen.id);
    }
}

typedef struct claim_check {
    model *m;
    dice *d;
} claim_check;

static int32_t model_claim(void *user, const segue_store_record *record)
{
    claim_check *check = user;
    unsigned n = MODEL_OPS;
    assert_int_equal(sscanf(record->task_id, "task-%u", &n), 1);
    model_op *op = &check->m->ops[n];
    assert_true(op->exists && op->loose && !op->ended);
    op->loose = false;
    return roll(check->d, 4) == 0;
}

static bool has_loose(const model *m)
{
    for (uint32_t n = 0; n < MODEL_OPS; n++)
        if (m->ops[n].exists && m->ops[n].loose && !m->ops[n].ended)
            return true;
    return false;
}

static void model_purge(model *m, int64_t now_ms)
{
    for (uint32_t n = 0; n < MODEL_OPS; n++)
        if (m->ops[n].exists && m->ops[n].purge_ms <= now_ms)
            m->ops[n].exists = false;
}

/* Claims until no operation is left. With an allocator that fails, a claim may need a
 * second try. */
static void claim_all(segue_store *store, model *m, dice *d, test_mem *tm)
{
    claim_check check = {m, d};
    while (has_loose(m)) {
        model before = *m;
        segue_status status = sgi_store_claim(store, model_claim, &check);
        if (status) {
            assert_true(tm && status == SEGUE_E_NOMEM);
            assert_memory_equal(m, &before, sizeof before);
            test_mem_rearm(tm);
        } else {
            assert_memory_not_equal(m, &before, sizeof before);
        }
    }
    assert_int_equal(test_claim_count(store), 0);
}

bool test_model_play(segue_store *store, uint64_t seed, int rounds, test_mem *tm)
{
    static model_batch batch;
    model m = {0};
    dice d = {seed};
    bool failed = false;
    for (int round = 0; round < rounds; round++) {
        model before = m;
        make_batch(&m, &batch, &d);
        segue_status status = sgi_store_commit(store, batch.writes, batch.count);
        if (status == SEGUE_E_NOMEM) {
            assert_non_null(tm);
            test_mem_rearm(tm);
            failed = true;
            compare(store, &before);
            status = sgi_store_commit(store, batch.writes, batch.count);
        }
        assert_int_equal(status, batch.status);
        compare(store, &m);
        if (roll(&d, 8) == 0)
            claim_all(store, &m, &d, tm);
        if (roll(&d, 12) == 0) {
            int64_t next, now_ms = roll(&d, 600);
            do
                assert_int_equal(sgi_store_purge(store, now_ms, &next), SEGUE_OK);
            while (next == now_ms);
            model_purge(&m, now_ms);
        }
    }
    return failed;
}
