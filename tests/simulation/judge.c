/* The rules, in the order in which they are checked:
 *
 *   once, in order    a caller is shown each segment once, in the order of the handler,
 *                     with its bytes; only replaced segments are left out
 *   numbers           a number that a caller has seen keeps its segment, for everybody
 *   no way back       a handler that runs again begins behind everything that was seen
 *   one run           a handler that cannot run again runs once
 *   fold              a result is what its caller was shown, and what the handler gave
 *   end once          a request ends once; a task never goes back from an end
 *   answers           an answer belongs to its question and its person
 *   tokens            a caller that comes back is shown nothing that it has handled
 *   cancel            without a fault, a cancel reaches the handler, unless the handler
 *                     waits for a person, who is asked in vain then
 *   ends              every request ends, within a bound after the last fault
 *   sizes             memory and queues stay within their limits */
#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME 32
#define FIELDS 16
#define RUNS 64

typedef struct segment {
    uint64_t digest;
    uint64_t number;    /* the number that callers saw; 0 = none */
    uint64_t voided_by; /* 1 + the segment before which it was replaced; 0 = it stands */
    bool seen;
} segment;

typedef struct field {
    char name[NAME];
    uint64_t digest;
} field;

typedef struct run {
    char name[NAME];
    char asks[80];
    char end[8];
    bool told, waits; /* it waits for the answer to `asks` */
} run;

typedef struct operation {
    struct operation *next;
    char name[NAME], person[NAME];
    bool lasts, restarts, numbered;
    segment *segments;
    size_t count, cap;
    size_t standing; /* the first segment that was not replaced */
    size_t most_seen;
    field fields[FIELDS];
    int field_count;
    run runs[RUNS];
    int run_count;
    bool cancelled;
} operation;

/* What a caller was shown of an operation. */
typedef struct view {
    size_t first, last; /* the segments [first, last) stand */
    bool drops;         /* the next segment replaces those before it */
} view;

typedef struct caller {
    struct caller *next;
    char name[NAME];
    operation *op;
    view now, kept;
    bool open, ended;
    char status[16];
} caller;

struct judge {
    operation *operations;
    caller *callers;
    int64_t now_ms, calm_ms, bound_ms;
    int faults, kills, losses;
    bool is_calm;
    char why[400];
};

typedef struct line {
    const char *verb, *a, *b;
    char *words[16];
    int count;
} line;

uint64_t judge_digest(uint64_t so_far, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++)
        so_far = (so_far ^ p[i]) * 1099511628211u;
    return so_far;
}

judge *judge_new(void)
{
    judge *j = calloc(1, sizeof *j);
    j->bound_ms = INT64_C(30) * 60 * 1000;
    return j;
}

void judge_free(judge *j)
{
    while (j->operations) {
        operation *op = j->operations;
        j->operations = op->next;
        free(op->segments);
        free(op);
    }
    while (j->callers) {
        caller *c = j->callers;
        j->callers = c->next;
        free(c);
    }
    free(j);
}

void judge_set_bound(judge *j, int64_t ms)
{
    j->bound_ms = ms;
}

/* ---- helpers ---- */

static const char *wrong(judge *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static const char *wrong(judge *j, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(j->why, sizeof j->why, format, args);
    va_end(args);
    return j->why;
}

static const char *text_of(const line *l, const char *key)
{
    size_t n = strlen(key);
    for (int i = 0; i < l->count; i++)
        if (!strncmp(l->words[i], key, n) && l->words[i][n] == '=')
            return l->words[i] + n + 1;
    return "";
}

static uint64_t number_of(const line *l, const char *key)
{
    return strtoull(text_of(l, key), NULL, 10);
}

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

static operation *find_operation(const judge *j, const char *name)
{
    operation *op = j->operations;
    while (op && strcmp(op->name, name) != 0)
        op = op->next;
    return op;
}

static caller *find_caller(const judge *j, const char *name)
{
    caller *c = j->callers;
    while (c && strcmp(c->name, name) != 0)
        c = c->next;
    return c;
}

static run *find_run(operation *op, const char *name)
{
    for (int i = 0; i < op->run_count; i++)
        if (!strcmp(op->runs[i].name, name))
            return &op->runs[i];
    return NULL;
}

/* ---- what handlers do ---- */

static const char *on_op(judge *j, const line *l)
{
    operation *op = calloc(1, sizeof *op);
    copy(op->name, sizeof op->name, l->a);
    copy(op->person, sizeof op->person, text_of(l, "person"));
    op->lasts = number_of(l, "lasts") != 0;
    op->restarts = number_of(l, "restarts") != 0;
    op->numbered = number_of(l, "numbered") != 0;
    op->next = j->operations;
    j->operations = op;
    return NULL;
}

static const char *on_run(judge *j, operation *op, const line *l)
{
    size_t from = number_of(l, "from");
    if (op->run_count == RUNS)
        return wrong(j, "%s runs %d times", op->name, RUNS);
    if (op->run_count && !op->restarts && !j->losses)
        return wrong(j, "one run: %s cannot run again, and does", op->name);
    if (from < op->most_seen && !j->losses)
        return wrong(j, "no way back: %s runs again behind segment %zu, %zu were seen",
                     op->name, from, op->most_seen);
    if (from > op->count)
        return wrong(j, "no way back: %s runs behind segment %zu of %zu", op->name, from,
                     op->count);
    run *r = &op->runs[op->run_count++];
    copy(r->name, sizeof r->name, l->b);
    return NULL;
}

static const char *on_emit(judge *j, operation *op, const line *l)
{
    size_t n = number_of(l, "n");
    uint64_t digest = number_of(l, "d");
    if (n == 0 || n > op->count + 1)
        return wrong(j, "the history is broken: %s emits %zu of %zu", op->name, n,
                     op->count);
    if (n == op->count + 1) {
        if (op->count == op->cap) {
            op->cap = op->cap ? op->cap * 2 : 32;
            op->segments = realloc(op->segments, op->cap * sizeof *op->segments);
        }
        op->segments[op->count++] = (segment){.digest = digest};
    }
    if (op->segments[n - 1].digest != digest && op->segments[n - 1].seen)
        return wrong(j, "numbers: segment %zu of %s changes after it was seen", n,
                     op->name);
    op->segments[n - 1].digest = digest;
    return NULL;
}

static const char *on_void(judge *j, operation *op, const line *l)
{
    (void)j;
    size_t upto = number_of(l, "n");
    for (size_t i = op->standing; i < upto && i < op->count; i++)
        op->segments[i].voided_by = upto + 1;
    if (upto > op->standing)
        op->standing = upto;
    op->field_count = 0;
    return NULL;
}

static const char *on_field(judge *j, operation *op, const line *l)
{
    const char *name = text_of(l, "f");
    int i = 0;
    while (i < op->field_count && strcmp(op->fields[i].name, name) != 0)
        i++;
    if (i == FIELDS)
        return wrong(j, "the history is broken: %s has too many fields", op->name);
    if (i == op->field_count)
        op->field_count++;
    copy(op->fields[i].name, NAME, name);
    op->fields[i].digest = number_of(l, "d");
    return NULL;
}

static const char *on_answered(judge *j, operation *op, run *r, const line *l)
{
    r->waits = false;
    if (strcmp(r->asks, text_of(l, "q")) != 0)
        return wrong(j, "answers: %s asked %s and got the answer to %s", op->name,
                     r->asks, text_of(l, "q"));
    if (strcmp(op->person, text_of(l, "by")) != 0)
        return wrong(j, "answers: %s of %s was answered by %s", op->name, op->person,
                     text_of(l, "by"));
    return NULL;
}

/* ---- what callers see ---- */

static caller *caller_of(judge *j, const line *l)
{
    caller *c = find_caller(j, l->a);
    if (!c) {
        c = calloc(1, sizeof *c);
        copy(c->name, sizeof c->name, l->a);
        c->next = j->callers;
        j->callers = c;
    }
    return c;
}

static const char *check_place(judge *j, const caller *c, const operation *op, size_t n)
{
    if (n == 0 || n > op->count)
        return wrong(j,
                     "once, in order: %s is shown segment %zu of %s, which nobody gave",
                     c->name, n, op->name);
    if (n <= c->now.last)
        return wrong(j, "once, in order: %s is shown segment %zu of %s after %zu",
                     c->name, n, op->name, c->now.last);
    for (size_t i = c->now.last; i + 1 < n; i++)
        if (!op->segments[i].voided_by || op->segments[i].voided_by > n)
            return wrong(j,
                         "once, in order: %s is not shown segment %zu of %s before %zu",
                         c->name, i + 1, op->name, n);
    return NULL;
}

static const char *on_see(judge *j, caller *c, operation *op, const line *l)
{
    size_t n = number_of(l, "n");
    uint64_t number = number_of(l, "k");
    const char *why = check_place(j, c, op, n);
    if (c->ended)
        return wrong(j, "end once: %s is shown a segment behind the end", c->name);
    if (why)
        return why;
    segment *s = &op->segments[n - 1];
    if (s->digest != number_of(l, "d"))
        return wrong(j, "once, in order: segment %zu of %s has other bytes for %s", n,
                     op->name, c->name);
    if (op->numbered && number != n)
        return wrong(j, "numbers: segment %zu of %s has number %d for %s", n, op->name,
                     (int)number, c->name);
    s->seen = true;
    if (n > op->most_seen)
        op->most_seen = n;
    if (c->now.drops || c->now.first == c->now.last)
        c->now.first = n - 1;
    c->now.drops = false;
    c->now.last = n;
    return NULL;
}

static const char *on_status(judge *j, caller *c, const line *l)
{
    static const char *const ends[] = {"completed", "failed", "cancelled", NULL};
    const char *status = text_of(l, "s");
    for (int i = 0; ends[i]; i++)
        if (!strcmp(c->status, ends[i]) && strcmp(status, ends[i]) != 0)
            return wrong(j, "end once: %s goes from %s to %s", c->name, c->status,
                         status);
    copy(c->status, sizeof c->status, status);
    return NULL;
}

static bool has_ended(const operation *op, const char *kind)
{
    for (int i = 0; i < op->run_count; i++)
        if (!strcmp(op->runs[i].end, kind))
            return true;
    return false;
}

static uint64_t fold_segments(const operation *op, size_t from, size_t to)
{
    uint64_t digest = JUDGE_DIGEST;
    for (size_t i = from; i < to; i++)
        digest = judge_digest(digest, &op->segments[i].digest, sizeof(uint64_t));
    return digest;
}

static uint64_t fold_fields(const operation *op)
{
    uint64_t digest = 0;
    for (int i = 0; i < op->field_count; i++)
        digest += judge_digest(op->fields[i].digest, op->fields[i].name,
                               strlen(op->fields[i].name));
    return digest;
}

/* A result of a handler: it equals what the handler gave and what the caller was shown.
 * What was shown may lack nothing but replaced segments. */
static const char *check_result(judge *j, const caller *c, const operation *op,
                                const line *l)
{
    uint64_t content = number_of(l, "content");
    bool shown = number_of(l, "shown") != 0;
    if (!has_ended(op, text_of(l, "kind")))
        return wrong(j, "fold: %s ends with %s, its handler does not", c->name,
                     text_of(l, "kind"));
    if (content && content != fold_segments(op, op->standing, op->count))
        return wrong(j, "fold: the content for %s is not what its handler gave", c->name);
    if (number_of(l, "fields") != fold_fields(op))
        return wrong(j, "fold: the fields for %s are not what its handler gave", c->name);
    bool nothing_left = op->standing == op->count;
    if (shown && !nothing_left &&
        (c->now.last != op->count || c->now.first != op->standing))
        return wrong(j,
                     "fold: %s was shown segments %zu to %zu, the result has %zu to %zu",
                     c->name, c->now.first + 1, c->now.last, op->standing + 1, op->count);
    return NULL;
}

/* A request may fail when its operation was cancelled, when the store has lost data, when
 * a server with its handler has ended and the handler cannot run again, and, unless the
 * call lasts, with every fault. */
static bool may_fail(const judge *j, const operation *op)
{
    return op->cancelled || j->losses || (j->kills && !op->restarts) ||
           (j->faults && !op->lasts);
}

static const char *on_result(judge *j, caller *c, operation *op, const line *l)
{
    const char *kind = text_of(l, "kind");
    bool failed = !strcmp(kind, "failed");
    if (c->ended)
        return wrong(j, "end once: %s ends twice", c->name);
    c->ended = true;
    c->open = false;
    if (failed && (may_fail(j, op) || has_ended(op, "none")))
        return NULL;
    if (failed)
        return wrong(j, "ends: %s fails with %s, and nothing allows that", c->name,
                     text_of(l, "code"));
    if (!strcmp(kind, "fail"))
        return has_ended(op, kind)
                   ? NULL
                   : wrong(j, "fold: %s fails as no handler did", c->name);
    return check_result(j, c, op, l);
}

static const char *on_caller(judge *j, const line *l)
{
    caller *c = caller_of(j, l);
    operation *op = find_operation(j, l->b);
    if (!op)
        return wrong(j, "the history is broken: no operation %s", l->b);
    if (!strcmp(l->verb, "anew")) {
        size_t from = number_of(l, "from");
        c->op = op;
        c->now = c->kept = (view){from, from, false};
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
    } else if (!strcmp(l->verb, "status")) {
        return on_status(j, c, l);
    } else if (!strcmp(l->verb, "cancel")) {
        op->cancelled = true;
    } else if (!strcmp(l->verb, "lasts")) {
        op->lasts = true;
    } else if (!strcmp(l->verb, "asked")) {
        if (strcmp(op->person, text_of(l, "by")) != 0)
            return wrong(j, "answers: %s is asked what %s of %s asks", text_of(l, "by"),
                         op->name, op->person);
    } else {
        return on_result(j, c, op, l);
    }
    return NULL;
}

/* ---- the end ---- */

static const char *on_over(judge *j)
{
    for (const caller *c = j->callers; c; c = c->next)
        if (c->open)
            return wrong(j, "ends: %s does not end", c->name);
    if (j->is_calm && j->now_ms - j->calm_ms > j->bound_ms)
        return wrong(j, "ends: %lld ms passed after the last fault",
                     (long long)(j->now_ms - j->calm_ms));
    for (operation *op = j->operations; op && !j->faults; op = op->next)
        for (int i = 0; op->cancelled && i < op->run_count; i++)
            if (!op->runs[i].told && !op->runs[i].waits && !*op->runs[i].end)
                return wrong(j, "cancel: %s was cancelled, its handler runs on",
                             op->name);
    return NULL;
}

static const char *on_handler(judge *j, const line *l)
{
    operation *op = find_operation(j, l->a);
    if (!op)
        return wrong(j, "the history is broken: no operation %s", l->a);
    if (!strcmp(l->verb, "run"))
        return on_run(j, op, l);
    run *r = find_run(op, l->b);
    if (!r)
        return wrong(j, "the history is broken: no run %s of %s", l->b, l->a);
    if (!strcmp(l->verb, "emit"))
        return on_emit(j, op, l);
    if (!strcmp(l->verb, "void"))
        return on_void(j, op, l);
    if (!strcmp(l->verb, "field"))
        return on_field(j, op, l);
    if (!strcmp(l->verb, "answered"))
        return on_answered(j, op, r, l);
    if (!strcmp(l->verb, "ask")) {
        copy(r->asks, sizeof r->asks, text_of(l, "q"));
        r->waits = true;
    } else if (!strcmp(l->verb, "end"))
        copy(r->end, sizeof r->end, text_of(l, "kind"));
    else if (!strcmp(l->verb, "told"))
        r->told = true;
    return NULL;
}

static bool is_one_of(const char *verb, const char *list)
{
    size_t n = strlen(verb);
    for (const char *at = list; (at = strstr(at, verb)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static const char *take(judge *j, const line *l)
{
    if (!strcmp(l->verb, "op"))
        return on_op(j, l);
    if (is_one_of(l->verb, "run emit void field end told ask answered"))
        return on_handler(j, l);
    if (is_one_of(l->verb, "see drop keep back anew asked status cancel lasts result"))
        return on_caller(j, l);
    if (!strcmp(l->verb, "gone")) {
        caller *c = find_caller(j, l->a);
        if (c)
            c->open = false;
    } else if (!strcmp(l->verb, "fault")) {
        j->faults++;
        j->kills += is_one_of(l->a, "kill stop pause");
        j->losses += is_one_of(l->a, "loss full");
        j->is_calm = false;
    } else if (!strcmp(l->verb, "calm")) {
        j->is_calm = true;
        j->calm_ms = j->now_ms;
    } else if (!strcmp(l->verb, "size")) {
        if (number_of(l, "bytes") > number_of(l, "limit"))
            return wrong(j, "sizes: %s has %s bytes, its limit is %s", l->a,
                         text_of(l, "bytes"), text_of(l, "limit"));
    } else if (!strcmp(l->verb, "over")) {
        return on_over(j);
    } else {
        return wrong(j, "the history is broken: what is '%s'?", l->verb);
    }
    return NULL;
}

const char *judge_line(judge *j, const char *text)
{
    char words[400], *rest = words;
    line l = {0};
    copy(words, sizeof words, text);
    for (char *word; l.count < 16 && (word = strsep(&rest, " "));)
        if (*word)
            l.words[l.count++] = word;
    if (l.count < 2)
        return l.count ? wrong(j, "the history is broken: '%s'", text) : NULL;
    j->now_ms = strtoll(l.words[0], NULL, 10);
    l.verb = l.words[1];
    l.a = l.count > 2 ? l.words[2] : "";
    l.b = l.count > 3 ? l.words[3] : "";
    return take(j, &l);
}
