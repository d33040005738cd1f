/* What callers see, and how their calls end. */
#include "simulation/judge_state.h"

#include <stdlib.h>
#include <string.h>

static judge_caller *caller_of(judge *j, const judge_words *l)
{
    judge_caller *c = judge_find_caller(j, l->a);
    if (!c) {
        c = calloc(1, sizeof *c);
        judge_copy(c->name, sizeof c->name, l->a);
        c->next = j->callers;
        j->callers = c;
    }
    return c;
}

static const char *check_place(judge *j, const judge_caller *c, const judge_operation *op,
                               size_t n)
{
    if (n == 0 || n > op->count)
        return judge_wrong(
            j, "once, in order: %s is shown segment %zu of %s, which nobody gave",
            c->name, n, op->name);
    if (n <= c->now.last)
        return judge_wrong(j, "once, in order: %s is shown segment %zu of %s after %zu",
                           c->name, n, op->name, c->now.last);
    for (size_t i = c->now.last; i + 1 < n; i++)
        if (i + 1 != op->gap &&
            (!op->segments[i].voided_by || op->segments[i].voided_by > n))
            return judge_wrong(
                j, "once, in order: %s is not shown segment %zu of %s before %zu",
                c->name, i + 1, op->name, n);
    return NULL;
}

static const char *on_see(judge *j, judge_caller *c, judge_operation *op,
                          const judge_words *l)
{
    size_t n = judge_number(l, "n");
    uint64_t number = judge_number(l, "k");
    const char *why = check_place(j, c, op, n);
    if (c->ended)
        return judge_wrong(j, "end once: %s is shown a segment behind the end", c->name);
    if (why)
        return why;
    judge_segment *s = &op->segments[n - 1];
    if (s->digest != judge_number(l, "d"))
        return judge_wrong(j, "once, in order: segment %zu of %s has other bytes for %s",
                           n, op->name, c->name);
    if (op->numbered && number != n)
        return judge_wrong(j, "numbers: segment %zu of %s has number %d for %s", n,
                           op->name, (int)number, c->name);
    s->seen = true;
    if (n > op->most_seen)
        op->most_seen = n;
    if (c->now.drops || c->now.first == c->now.last)
        c->now.first = n - 1;
    c->now.drops = false;
    c->now.last = n;
    return NULL;
}

static const char *on_status(judge *j, judge_caller *c, const judge_words *l)
{
    static const char *const ends[] = {"completed", "failed", "cancelled", NULL};
    const char *status = judge_text(l, "s");
    for (int i = 0; ends[i]; i++)
        if (!strcmp(c->status, ends[i]) && strcmp(status, ends[i]) != 0)
            return judge_wrong(j, "end once: %s goes from %s to %s", c->name, c->status,
                               status);
    judge_copy(c->status, sizeof c->status, status);
    return NULL;
}

static bool has_ended(const judge_operation *op, const char *kind)
{
    for (int i = 0; i < op->run_count; i++)
        if (!strcmp(op->runs[i].end, kind))
            return true;
    return false;
}

static bool has_end(const judge_operation *op)
{
    for (int i = 0; i < op->run_count; i++)
        if (*op->runs[i].end)
            return true;
    return false;
}

static uint64_t fold_segments(const judge_operation *op, size_t from, size_t to)
{
    uint64_t digest = JUDGE_DIGEST;
    for (size_t i = from; i < to; i++)
        digest = judge_digest(digest, &op->segments[i].digest, sizeof(uint64_t));
    return digest;
}

static uint64_t fold_fields(const judge_operation *op)
{
    uint64_t digest = 0;
    for (int i = 0; i < op->field_count; i++)
        digest += judge_digest(op->fields[i].digest, op->fields[i].name,
                               strlen(op->fields[i].name));
    return digest;
}

/* A result of a handler: it equals what the handler gave and what the caller was shown.
 * What was shown may lack nothing but replaced segments. */
static const char *check_result(judge *j, const judge_caller *c,
                                const judge_operation *op, const judge_words *l)
{
    uint64_t content = judge_number(l, "content");
    bool shown = judge_number(l, "shown") != 0;
    if (!has_ended(op, judge_text(l, "kind")))
        return judge_wrong(j, "fold: %s ends with %s, its handler does not", c->name,
                           judge_text(l, "kind"));
    if (content && content != fold_segments(op, op->standing, op->count))
        return judge_wrong(j, "fold: the content for %s is not what its handler gave",
                           c->name);
    if (judge_number(l, "fields") != fold_fields(op))
        return judge_wrong(j, "fold: the fields for %s are not what its handler gave",
                           c->name);
    if (op->named)
        return judge_wrong(j, "task: %s has a result, and was never told its task",
                           c->name);
    bool nothing_left = op->standing == op->count;
    bool lacks_first = c->now.first == op->standing + 1 && op->gap == op->standing + 1;
    if (shown && !nothing_left &&
        (c->now.last != op->count || (c->now.first != op->standing && !lacks_first)))
        return judge_wrong(
            j, "fold: %s was shown segments %zu to %zu, the result has %zu to %zu",
            c->name, c->now.first + 1, c->now.last, op->standing + 1, op->count);
    return NULL;
}

/* A request may fail when its operation was cancelled or took too long, when the store
 * has lost data, when a server with its handler has ended and the handler cannot run
 * again, and, unless the call lasts, with every fault. */
static bool may_fail(const judge *j, const judge_operation *op)
{
    return op->cancelled || op->overdue || j->losses || (j->kills && !op->restarts) ||
           (j->faults && !op->lasts);
}

static const char *on_result(judge *j, judge_caller *c, judge_operation *op,
                             const judge_words *l)
{
    const char *kind = judge_text(l, "kind");
    bool failed = !strcmp(kind, "failed");
    if (c->ended)
        return judge_wrong(j, "end once: %s ends twice", c->name);
    c->ended = true;
    c->open = false;
    if (failed && !strncmp(judge_text(l, "code"), "SEGUE_E_TIMEOUT", 15)) {
        return judge_limits_on_timeout(j, c, op);
    }
    if (failed && !strncmp(judge_text(l, "code"), "SEGUE_E_PROTOCOL", 16))
        return judge_wrong(j, "blame: %s fails as if its server broke the protocol",
                           c->name);
    if (failed && (may_fail(j, op) || has_ended(op, "none")))
        return NULL;
    if (failed)
        return judge_wrong(j, "ends: %s fails with %s, and nothing allows that", c->name,
                           judge_text(l, "code"));
    if (!strcmp(kind, "fail"))
        return has_ended(op, kind)
                   ? NULL
                   : judge_wrong(j, "fold: %s fails as no handler did", c->name);
    return check_result(j, c, op, l);
}

const char *judge_on_caller(judge *j, const judge_words *l)
{
    judge_caller *c = caller_of(j, l);
    judge_operation *op = judge_find_operation(j, l->b);
    if (!op)
        return judge_wrong(j, "the history is broken: no operation %s", l->b);
    if (*judge_text(l, "at"))
        c->process = judge_pace_process(j, judge_text(l, "at"));
    if (strcmp(l->verb, "keep") != 0)
        judge_pace_news(j, c->process);
    if (!strcmp(l->verb, "anew")) {
        size_t from = judge_number(l, "from");
        c->op = op;
        c->now = c->kept = (judge_view){from, from, false};
        c->open = true;
        c->ended = false;
        *c->status = 0;
    } else if (!strcmp(l->verb, "back")) {
        c->now = c->kept;
        c->open = true;
        c->ended = false;
        *c->status = 0;
    } else if (!strcmp(l->verb, "keep")) {
        c->kept = c->now;
    } else if (!strcmp(l->verb, "drop")) {
        c->now.drops = true;
    } else if (!strcmp(l->verb, "see")) {
        return on_see(j, c, op, l);
    } else if (!strcmp(l->verb, "limit")) {
        judge_limits_begin(j, c, l);
    } else if (!strcmp(l->verb, "wants")) {
        judge_logs_want(c, l);
    } else if (!strcmp(l->verb, "heard")) {
        return judge_logs_on_heard(j, c, l);
    } else if (!strcmp(l->verb, "status")) {
        return on_status(j, c, l);
    } else if (!strcmp(l->verb, "cancel")) {
        op->cancelled = true;
    } else if (!strcmp(l->verb, "withdrawn")) {
        if (!op->cancelled && !op->overdue)
            return judge_wrong(j,
                               "cancel: %s is told that %s was cancelled, and it was not",
                               c->name, op->name);
    } else if (!strcmp(l->verb, "lasts")) {
        op->lasts = true;
    } else if (!strcmp(l->verb, "had")) {
        op->lasts = op->lasts && !has_end(op);
    } else if (!strcmp(l->verb, "task")) {
        op->named = op->may_orphan = false;
    } else if (!strcmp(l->verb, "asked")) {
        if (strcmp(op->person, judge_text(l, "by")) != 0)
            return judge_wrong(j, "answers: %s is asked what %s of %s asks",
                               judge_text(l, "by"), op->name, op->person);
    } else {
        return on_result(j, c, op, l);
    }
    return NULL;
}
