/* The log of operations under everything that can happen to it: appends of all kinds,
 * lists, ends, cancels and expiry; a store that commits late, fails or reports that a
 * task exists; readers, folds and waiters that come and go; and allocations that fail.
 * The input decides.
 *
 * The checks: visible entries never change (R-C-2). An end that was seen stays the end
 * (R-C-3). Readers get each visible entry once, in order, and with the bytes in the
 * store. A waiter fires once. A fold is done once. At the end the stored entries of each
 * operation are replayed into a new one, whose state must be the same (R-C-1). Its
 * counters have no gap, and at most one final entry comes behind all others.
 *
 * In the other mode the input is a log as a damaged store may return it. It is applied
 * entry by entry. An entry may be refused, but must not crash, and accepted entries must
 * replay to the same state. */
#include "engine/log/reader.h"
#include "engine/server/inputs.h"
#include "engine/server/task.h"
#include "support/fake_host.h"
#include "support/fuzz_input.h"
#include "support/test_mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OPS 4
#define READERS 6
#define WAITERS 6
#define MAX_STEPS 1500

typedef struct subject {
    sgi_op *op;      /* a counted reference, or NULL */
    sgi_state ended; /* the end when it was first seen */
    bool has_ended;
    uint64_t seen; /* the horizon so far, of a logged operation */
    int questions;
} subject;

typedef struct follower {
    sgi_reader reader;
    bool in_use;
    bool eager; /* reads when it is told that there is more */
    uint64_t last;
} follower;

typedef struct listener {
    sgi_waiter waiter;
    bool waiting;
    int ends; /* index of another waiter that it ends when it fires, or -1 */
} listener;

typedef struct fold_job {
    int started, done;
} fold_job;

static test_mem tm;
static fake_host host;
static segue_server *server;
static sgi_op_limits normal_limits;
static fuzz_input in;
static subject subjects[OPS];
static follower followers[READERS];
static listener listeners[WAITERS];
static fold_job folds;

/* ---- observers ---- */

static void check_subject(subject *s)
{
    sgi_op *op = s->op;
    if (!op)
        return;
    sgi_state state = sgi_op_state(op);
    if (s->has_ended)
        fuzz_check(state == s->ended);
    s->has_ended = state >= SGI_STATE_COMPLETED;
    s->ended = state;
    if (sgi_op_is_logged(op) && sgi_op_is_created(op)) {
        uint64_t horizon = sgi_op_horizon(op);
        fuzz_check(horizon >= s->seen || sgi_op_is_broken(op));
        s->seen = op->durable;
        fuzz_check(op->durable < op->head.next_log);
    }
    const sgi_entry *entry = TAILQ_FIRST(&op->tail);
    uint64_t seq = entry ? entry->seq : 0;
    size_t bytes = 0;
    for (; entry; entry = TAILQ_NEXT(entry, link)) {
        fuzz_check(entry->seq == seq++);
        fuzz_check(!sgi_entry_is_final(entry->kind) || entry->seq == op->head.final_seq);
        bytes += entry->len;
    }
    fuzz_check(bytes == op->tail_bytes);
    if (!TAILQ_EMPTY(&op->tail))
        fuzz_check(seq == op->head.next_log);
}

/* An entry that a reader is shown must equal the stored one, if it is stored. */
static void check_entry(const sgi_op *op, const sgi_entry *entry)
{
    const fake_row *row = fake_store_next(&host, op->id, entry->seq - 1);
    fuzz_check(entry->seq <= sgi_op_horizon(op) || row != NULL);
    if (!sgi_op_is_created(op) || !row)
        return;
    fuzz_check(row->entry.seq == entry->seq && row->entry.kind == entry->kind);
    fuzz_check(row->entry.segment == entry->segment && row->entry.event == entry->event);
    fuzz_check(row->entry.data_len == entry->len &&
               !memcmp(row->data, entry->data, entry->len));
}

static void read_on(follower *f, uint64_t most)
{
    const sgi_entry *entry;
    while (most-- && (entry = sgi_reader_next(&f->reader))) {
        fuzz_check(entry->seq == ++f->last);
        check_entry(f->reader.op, entry);
        sgi_reader_advance(&f->reader);
    }
}

static void more_to_read(sgi_reader *reader)
{
    follower *f = SGI_OWNER(reader, follower, reader);
    if (f->eager)
        read_on(f, UINT64_MAX);
}

static void fire(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    listener *l = SGI_OWNER(waiter, listener, waiter);
    fuzz_check(l->waiting && !waiter->op);
    if (status == SEGUE_OK && waiter->seq == SGI_WAIT_FINAL)
        fuzz_check(sgi_op_state(op) >= SGI_STATE_COMPLETED);
    else if (status == SEGUE_OK)
        fuzz_check(waiter->seq <= sgi_op_horizon(op));
    l->waiting = false;
    if (l->ends >= 0 && listeners[l->ends].waiting) {
        sgi_op_wait_cancel(&listeners[l->ends].waiter);
        listeners[l->ends].waiting = false;
    }
}

static void folded(void *user, sgi_op *op, const sgi_fold *fold, segue_status status)
{
    (void)status;
    fuzz_check(user == &folds);
    fuzz_check(!fold || sgi_op_state(op) >= SGI_STATE_COMPLETED);
    folds.done++;
}

/* ---- actions ---- */

static sgi_str payload(uint32_t len)
{
    static char text[102002] = "\"";
    if (len < 2)
        return SGI_STR("7");
    memset(text + 1, 'a' + (int)(len % 26), len - 2);
    text[len - 1] = '"';
    return (sgi_str){text, len};
}

static const char *const statuses[] = {
    "{\"status\":\"working\"}", "{\"statusMessage\":\"one\"}",
    "{\"status\":\"input_required\",\"statusMessage\":\"\\u0074wo\"}"};

static void append(subject *s)
{
    sgi_op *op = s->op;
    char text[120];
    switch (fuzz_below(&in, 8)) {
    case 0:
        sgi_op_append(op, SGI_ENTRY_SEGMENT, payload(fuzz_byte(&in)));
        break;
    case 1:
        sgi_op_append(op, SGI_ENTRY_SEGMENT, payload(fuzz_byte(&in) * 400u));
        break;
    case 2:
        sgi_op_append(op, SGI_ENTRY_FIELDS, SGI_STR("{\"a\":1,\"_meta\":{\"b\":2}}"));
        break;
    case 3:
        sgi_op_append(op, SGI_ENTRY_REPLACE, SGI_STR("{}"));
        break;
    case 4:
        sgi_op_append(op, SGI_ENTRY_STATUS, sgi_str_of(statuses[fuzz_below(&in, 3)]));
        break;
    case 5:
        snprintf(text, sizeof text,
                 "{\"key\":\"input-%d\",\"method\":\"elicitation/create\",\"params\":{}}",
                 s->questions++);
        sgi_op_append(op, SGI_ENTRY_INPUT_ASK, sgi_str_of(text));
        break;
    case 6:
        snprintf(text, sizeof text, "input-%d", (int)fuzz_below(&in, 6));
        sgi_task_take_answer(op, sgi_str_of(text),
                             fuzz_one_in(&in, 4) ? SGI_STR("7")
                                                 : SGI_STR("{\"action\":\"accept\"}"));
        break;
    default:
        sgi_op_append(op, SGI_ENTRY_CHECKPOINT, payload(fuzz_byte(&in)));
    }
}

static void append_list(sgi_op *op)
{
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    uint64_t before = op->head.next_log;
    uint64_t count = 0;
    for (uint32_t n = 1 + fuzz_below(&in, 5); n; n--) {
        sgi_str text = payload(fuzz_byte(&in));
        sgi_entry *entry = sgi_entry_new(&tm.mem, SGI_ENTRY_SEGMENT, text.p, text.n);
        if (!entry)
            break;
        TAILQ_INSERT_TAIL(&list, entry, link);
        count++;
    }
    segue_status status = sgi_op_append_list(op, &list);
    fuzz_check(TAILQ_EMPTY(&list));
    fuzz_check(op->head.next_log == before + (status == SEGUE_OK ? count : 0));
}

static void end(sgi_op *op)
{
    bool had = sgi_op_has_ended(op);
    sgi_final final = op->head.final;
    segue_status status = SEGUE_E_NOMEM;
    switch (fuzz_below(&in, 6)) {
    case 0:
        status = sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
        break;
    case 1:
        status = sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{\"isError\":true}"));
        break;
    case 2:
        status =
            sgi_op_fail(op, SGI_ENTRY_ERROR, -32000, SGI_STR("x\"y"), SGI_STR("[1]"));
        break;
    case 3:
        sgi_task_cancel(op);
        break;
    case 4:
        sgi_task_expire(op);
        break;
    default:
        sgi_op_end_internal_error(op, "gave up");
    }
    fuzz_check(!had || (op->head.final == final && status != SEGUE_OK));
    fuzz_check(status != SEGUE_OK || sgi_op_has_ended(op));
}

static void begin(subject *s)
{
    *s = (subject){.questions = 0};
    s->op = fuzz_one_in(&in, 2) ? fake_op_new(server) : fake_task_new(server);
    server->committer.limits =
        fuzz_one_in(&in, 3) ? (sgi_op_limits){300, 600, 9, 8} : normal_limits;
}

static void store_step(void)
{
    static const segue_status ends[] = {SEGUE_OK,           SEGUE_OK, SEGUE_OK,
                                        SEGUE_E_STORE_FULL, SEGUE_OK, SEGUE_E_EXISTS,
                                        SEGUE_E_IO,         SEGUE_OK};
    if (host.batch.op_count) {
        segue_status status = ends[fuzz_below(&in, 8)];
        fake_store_done(&host, status);
    } else if (fuzz_one_in(&in, 3)) {
        fake_store_answer(&host, fuzz_one_in(&in, 5) ? SEGUE_E_IO : SEGUE_OK);
    } else {
        fake_store_take(&host);
    }
}

static void reader_step(subject *s)
{
    follower *f = &followers[fuzz_below(&in, READERS)];
    if (!f->in_use) {
        *f = (follower){.in_use = true, .eager = fuzz_one_in(&in, 2)};
        f->last = fuzz_below(&in, 4) ? 0 : s->op->durable;
        sgi_reader_init(&f->reader, s->op, f->last, more_to_read);
    } else if (fuzz_one_in(&in, 4)) {
        sgi_reader_end(&f->reader);
        f->in_use = false;
    } else {
        read_on(f, fuzz_byte(&in));
    }
}

static void waiter_step(subject *s)
{
    uint32_t which = fuzz_below(&in, WAITERS);
    listener *l = &listeners[which];
    if (l->waiting) {
        sgi_op_wait_cancel(&l->waiter);
        l->waiting = false;
        return;
    }
    l->waiter = (sgi_waiter){.fire = fire};
    l->waiting = true;
    l->ends = fuzz_one_in(&in, 3) ? (int)((which + 1) % WAITERS) : -1;
    sgi_op_wait_until_visible(s->op, &l->waiter,
                              fuzz_one_in(&in, 2) ? SGI_WAIT_FINAL
                                                  : s->op->head.next_log - 1);
}

static void step(void)
{
    subject *s = &subjects[fuzz_below(&in, OPS)];
    if (!s->op) {
        begin(s);
        return;
    }
    switch (fuzz_below(&in, 16)) {
    case 0:
        end(s->op);
        break;
    case 1:
        append_list(s->op);
        break;
    case 2:
        fake_host_advance(&host, fuzz_byte(&in) * 10);
        break;
    case 3:
        waiter_step(s);
        break;
    case 4:
    case 5:
        reader_step(s);
        break;
    case 6:
        if (!sgi_op_is_logged(s->op) && !sgi_op_has_ended(s->op))
            sgi_op_turn_into_task(s->op, fuzz_one_in(&in, 2) ? fuzz_byte(&in) * 20 : 0);
        break;
    case 7:
        /* as code that shows a result does */
        if (sgi_op_state(s->op) == SGI_STATE_COMPLETED) {
            folds.started++;
            sgi_op_fold(s->op, folded, &folds);
        }
        break;
    case 8:
        sgi_op_unref(s->op);
        s->op = NULL;
        break;
    case 9:
        test_mem_rearm(&tm);
        tm.fail_at = fuzz_below(&in, 12);
        tm.fail_from = fuzz_one_in(&in, 4) ? fuzz_below(&in, 12) : 0;
        break;
    case 10:
    case 11:
    case 12:
        store_step();
        break;
    default:
        append(s);
    }
}

/* ---- the end ---- */

/* Its own number, or that of the last segment that it replaces. */
static bool has_number(int32_t kind)
{
    return kind == SGI_ENTRY_SEGMENT || kind == SGI_ENTRY_REPLACE;
}

/* Checks that there is one final entry at most, behind all others, and that counters have
 * no gaps. */
static void check_rows(const sgi_op *op)
{
    uint64_t seq = 0, segment = 0, event = 0;
    const fake_row *row = NULL;
    bool ended = false;
    while ((row = fake_store_next(&host, op->id, seq))) {
        fuzz_check(!ended && row->entry.seq == ++seq);
        segment += row->entry.kind == SGI_ENTRY_SEGMENT;
        fuzz_check(row->entry.segment == (has_number(row->entry.kind) ? segment : 0));
        if (row->entry.event)
            fuzz_check(row->entry.event == ++event);
        ended = sgi_entry_is_final(row->entry.kind);
    }
    fuzz_check(ended == (fake_store_find(&host, op->id)->record.ended != 0));
    fuzz_check(ended == sgi_op_has_ended(op) && seq + 1 == op->head.next_log);
}

static void settle(void)
{
    test_mem_rearm(&tm);
    if (host.batch.op_count)
        fake_store_done(&host, SEGUE_OK);
    for (int i = 0; i < 4; i++) { /* a failed commit is tried again after a while */
        fake_store_settle(&host);
        fake_host_advance(&host, 250);
    }
    fake_store_settle(&host);
    fake_host_deliver(&host);
    fuzz_check(folds.started == folds.done);
}

static void compare(void)
{
    for (int i = 0; i < OPS; i++) {
        sgi_op *op = subjects[i].op;
        check_subject(&subjects[i]);
        if (!op || !sgi_op_is_logged(op) || !fake_store_find(&host, op->id))
            continue;
        fuzz_check(op->durable + 1 == op->head.next_log && !op->pending);
        check_rows(op);
        sgi_op *copy = fake_op_replay(&host, op);
        fuzz_check(copy && !fake_op_difference(op, copy));
        sgi_op_unref(copy);
    }
}

static void clean_up(void)
{
    for (int i = 0; i < READERS; i++)
        if (followers[i].in_use)
            sgi_reader_end(&followers[i].reader);
    for (int i = 0; i < OPS; i++)
        if (subjects[i].op)
            sgi_op_unref(subjects[i].op);
    fake_server_end(server);
    for (int i = 0; i < WAITERS; i++)
        fuzz_check(!listeners[i].waiting);
}

static void live_log(void)
{
    for (int i = 0; in.left && i < MAX_STEPS; i++) {
        step();
        for (int k = 0; k < OPS; k++)
            check_subject(&subjects[k]);
    }
    settle();
    compare();
    clean_up();
}

/* ---- a damaged log ---- */

static sgi_entry *any_entry(const sgi_op *op)
{
    static const char *const texts[] = {
        "{\"key\":\"k\",\"method\":\"m\",\"params\":{}}",
        "{\"key\":\"k\",\"response\":{}}", "{\"statusMessage\":\"x\\u0000y\"}",
        "{\"isError\":true}",
        "{\"key\":\"a\\u0000b\",\"method\":\"\\u0000\",\"params\":{\"\":1}}"};
    uint32_t how = fuzz_byte(&in);
    int32_t kind = (int32_t)(how % 14) - 1;
    sgi_str data = {(const char *)in.p, how & 64 ? fuzz_byte(&in) : 0};
    if (how & 128)
        data = sgi_str_of(texts[fuzz_below(&in, 5)]);
    else if (data.n > in.left)
        data.n = in.left;
    if (!(how & 128)) {
        data.p = (const char *)in.p;
        in.p += data.n;
        in.left -= data.n;
    }
    sgi_entry *entry = sgi_entry_new(&tm.mem, kind, data.p, data.n);
    if (!entry)
        return NULL;
    entry->seq = op->head.next_log;
    entry->segment = kind == SGI_ENTRY_SEGMENT   ? op->head.next_seg
                     : kind == SGI_ENTRY_REPLACE ? op->head.next_seg - 1
                                                 : 0;
    entry->event = kind > 0 && kind <= SGI_ENTRY_STATUS ? op->head.next_evt : 0;
    entry->at_ms = FAKE_EPOCH + fuzz_byte(&in);
    if (fuzz_one_in(&in, 16))
        entry->seq += fuzz_byte(&in);
    if (fuzz_one_in(&in, 16))
        entry->segment -= fuzz_byte(&in);
    if (fuzz_one_in(&in, 16))
        entry->event ^= fuzz_byte(&in);
    return entry;
}

static void damaged_log(void)
{
    /* no number makes the library allocate what it names */
    size_t most = (1 << 20) + 64 * in.left;
    sgi_op *op = fake_op_new(server);
    sgi_op *copy = fake_op_new(server);
    /* sets the state that sgi_op_new_from_record leaves */
    sgi_op_set_stored(op, SGI_STORED_YES);
    sgi_op_set_stored(copy, SGI_STORED_YES);
    while (in.left) {
        tm.fail_at = fuzz_one_in(&in, 8) ? tm.calls + 2 : 0;
        sgi_entry *entry = any_entry(op);
        segue_status status =
            entry ? sgi_op_apply_stored_entry(op, entry) : SEGUE_E_NOMEM;
        tm.fail_at = 0;
        if (status == SEGUE_OK)
            fuzz_check(sgi_op_apply_stored_entry(copy, entry) == SEGUE_OK);
        else
            fuzz_check(status == SEGUE_E_STORE_CORRUPT || status == SEGUE_E_NOMEM);
        fuzz_check(!fake_op_difference(op, copy));
        if (entry)
            sgi_entry_free(&tm.mem, entry);
        sgi_op_state(op);
        fuzz_check(tm.peak < most);
    }
    sgi_op_unref(op);
    sgi_op_unref(copy);
    fake_server_end(server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    in = (fuzz_input){data, size};
    uint8_t how = fuzz_byte(&in);
    memset(subjects, 0, sizeof subjects);
    memset(followers, 0, sizeof followers);
    memset(listeners, 0, sizeof listeners);
    folds = (fold_job){0};
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, how);
    server = fake_server_new(&host);
    normal_limits = server->committer.limits;
    if (how & 1)
        damaged_log();
    else
        live_log();
    fake_host_free(&host);
    fuzz_check(tm.live == 0);
    return 0;
}
