/* The rules, in the order in which they are checked:
 *
 *   once, in order    a caller is shown each segment once, in the order of the handler,
 *                     with its bytes; only replaced segments are left out, and a segment
 *                     that the server lacks
 *   numbers           a number that a caller has seen keeps its segment, for everybody
 *   no way back       a handler that runs again begins behind everything that was seen
 *   one run           a handler that cannot run again runs once
 *   fold              a result is what its caller was shown, and what the handler gave
 *   task              a call that was asked for as a task never ends without one
 *   end once          a request ends once; a task never goes back from an end
 *   blame             a fault never looks as if a server broke the protocol
 *   answers           an answer belongs to its question and its person
 *   tokens            a caller that comes back is shown nothing that it has handled
 *   cancel            without a fault, a cancel reaches the handler, unless the handler
 *                     waits for a person, who is asked in vain then
 *   ends              every request ends, within a bound after the last fault
 *   pace              a process does not hammer a server while its calls have no news
 *   pauses            a client that starts its server again and again makes pauses
 *   limits            a call times out when its time limit is over, not before
 *   logs              a log message is of a level that its caller wants, comes once, and
 *                     to the process whose call gave it
 *   sizes             memory and queues stay within their limits */
#include "simulation/judge_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        judge_operation *op = j->operations;
        j->operations = op->next;
        free(op->segments);
        free(op->logs);
        free(op);
    }
    while (j->callers) {
        judge_caller *c = j->callers;
        j->callers = c->next;
        free(c->heard);
        free(c);
    }
    judge_pace_free(j);
    judge_free_clients(j);
    free(j);
}

void judge_set_bound(judge *j, int64_t ms)
{
    j->bound_ms = ms;
}

/* ---- helpers ---- */

const char *judge_wrong(judge *j, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(j->why, sizeof j->why, format, args);
    va_end(args);
    return j->why;
}

const char *judge_text(const judge_words *l, const char *key)
{
    size_t n = strlen(key);
    for (int i = 0; i < l->count; i++)
        if (!strncmp(l->words[i], key, n) && l->words[i][n] == '=')
            return l->words[i] + n + 1;
    return "";
}

uint64_t judge_number(const judge_words *l, const char *key)
{
    return strtoull(judge_text(l, key), NULL, 10);
}

void judge_copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

judge_operation *judge_find_operation(const judge *j, const char *name)
{
    judge_operation *op = j->operations;
    while (op && strcmp(op->name, name) != 0)
        op = op->next;
    return op;
}

judge_caller *judge_find_caller(const judge *j, const char *name)
{
    judge_caller *c = j->callers;
    while (c && strcmp(c->name, name) != 0)
        c = c->next;
    return c;
}

static judge_run *find_run(judge_operation *op, const char *name)
{
    for (int i = 0; i < op->run_count; i++)
        if (!strcmp(op->runs[i].name, name))
            return &op->runs[i];
    return NULL;
}

/* ---- what handlers do ---- */

static const char *on_op(judge *j, const judge_words *l)
{
    judge_operation *op = calloc(1, sizeof *op);
    judge_copy(op->name, sizeof op->name, l->a);
    judge_copy(op->person, sizeof op->person, judge_text(l, "person"));
    op->lasts = judge_number(l, "lasts") != 0;
    op->restarts = judge_number(l, "restarts") != 0;
    op->numbered = judge_number(l, "numbered") != 0;
    op->named = judge_number(l, "named") != 0;
    op->may_orphan = judge_number(l, "orphan") != 0;
    op->faults_before = j->faults;
    op->gap = judge_number(l, "gap");
    op->next = j->operations;
    j->operations = op;
    return NULL;
}

static const char *on_run(judge *j, judge_operation *op, const judge_words *l)
{
    size_t from = judge_number(l, "from");
    if (op->run_count == JUDGE_RUNS)
        return judge_wrong(j, "%s runs %d times", op->name, JUDGE_RUNS);
    if (op->run_count && !op->restarts && !j->losses)
        return judge_wrong(j, "one run: %s cannot run again, and does", op->name);
    if (from < op->most_seen && !j->losses)
        return judge_wrong(j,
                           "no way back: %s runs again behind segment %zu, %zu were seen",
                           op->name, from, op->most_seen);
    if (from > op->count)
        return judge_wrong(j, "no way back: %s runs behind segment %zu of %zu", op->name,
                           from, op->count);
    judge_run *r = &op->runs[op->run_count++];
    judge_copy(r->name, sizeof r->name, l->b);
    return NULL;
}

static const char *on_emit(judge *j, judge_operation *op, const judge_words *l)
{
    size_t n = judge_number(l, "n");
    uint64_t digest = judge_number(l, "d");
    if (n == 0 || n > op->count + 1)
        return judge_wrong(j, "the history is broken: %s emits %zu of %zu", op->name, n,
                           op->count);
    if (n == op->count + 1) {
        if (op->count == op->cap) {
            op->cap = op->cap ? op->cap * 2 : 32;
            op->segments = realloc(op->segments, op->cap * sizeof *op->segments);
        }
        op->segments[op->count++] = (judge_segment){.digest = digest};
    }
    if (op->segments[n - 1].digest != digest && op->segments[n - 1].seen)
        return judge_wrong(j, "numbers: segment %zu of %s changes after it was seen", n,
                           op->name);
    op->segments[n - 1].digest = digest;
    return NULL;
}

static const char *on_void(judge *j, judge_operation *op, const judge_words *l)
{
    (void)j;
    size_t upto = judge_number(l, "n");
    for (size_t i = op->standing; i < upto && i < op->count; i++)
        op->segments[i].voided_by = upto + 1;
    if (upto > op->standing)
        op->standing = upto;
    op->field_count = 0;
    return NULL;
}

static const char *on_field(judge *j, judge_operation *op, const judge_words *l)
{
    const char *name = judge_text(l, "f");
    int i = 0;
    while (i < op->field_count && strcmp(op->fields[i].name, name) != 0)
        i++;
    if (i == JUDGE_FIELDS)
        return judge_wrong(j, "the history is broken: %s has too many fields", op->name);
    if (i == op->field_count)
        op->field_count++;
    judge_copy(op->fields[i].name, JUDGE_NAME, name);
    op->fields[i].digest = judge_number(l, "d");
    return NULL;
}

static const char *on_answered(judge *j, judge_operation *op, judge_run *r,
                               const judge_words *l)
{
    r->waits = false;
    if (strcmp(r->asks, judge_text(l, "q")) != 0)
        return judge_wrong(j, "answers: %s asked %s and got the answer to %s", op->name,
                           r->asks, judge_text(l, "q"));
    if (strcmp(op->person, judge_text(l, "by")) != 0)
        return judge_wrong(j, "answers: %s of %s was answered by %s", op->name,
                           op->person, judge_text(l, "by"));
    return NULL;
}

/* ---- the end ---- */

static const char *on_over(judge *j)
{
    for (const judge_caller *c = j->callers; c; c = c->next)
        if (c->open)
            return judge_wrong(j, "ends: %s does not end", c->name);
    if (j->is_calm && j->now_ms - j->calm_ms > j->bound_ms)
        return judge_wrong(j, "ends: %lld ms passed after the last fault",
                           (long long)(j->now_ms - j->calm_ms));
    for (judge_operation *op = j->operations; op; op = op->next)
        for (int i = 0; op->cancelled && !op->may_orphan &&
                        op->faults_before == j->faults && i < op->run_count;
             i++)
            if (!op->runs[i].told && !op->runs[i].waits && !*op->runs[i].end)
                return judge_wrong(j, "cancel: %s was cancelled, its handler runs on",
                                   op->name);
    return NULL;
}

static const char *on_handler(judge *j, const judge_words *l)
{
    judge_operation *op = judge_find_operation(j, l->a);
    if (!op)
        return judge_wrong(j, "the history is broken: no operation %s", l->a);
    if (!strcmp(l->verb, "run"))
        return on_run(j, op, l);
    judge_run *r = find_run(op, l->b);
    if (!r)
        return judge_wrong(j, "the history is broken: no run %s of %s", l->b, l->a);
    if (!strcmp(l->verb, "emit"))
        return on_emit(j, op, l);
    if (!strcmp(l->verb, "void"))
        return on_void(j, op, l);
    if (!strcmp(l->verb, "field"))
        return on_field(j, op, l);
    if (!strcmp(l->verb, "answered"))
        return on_answered(j, op, r, l);
    if (!strcmp(l->verb, "log"))
        return judge_logs_on_log(j, op, l);
    if (!strcmp(l->verb, "ask")) {
        judge_copy(r->asks, sizeof r->asks, judge_text(l, "q"));
        r->waits = true;
    } else if (!strcmp(l->verb, "end"))
        judge_copy(r->end, sizeof r->end, judge_text(l, "kind"));
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

static const char *take(judge *j, const judge_words *l)
{
    if (!strcmp(l->verb, "op"))
        return on_op(j, l);
    if (is_one_of(l->verb, "run emit void field end told left ask answered log"))
        return on_handler(j, l);
    if (is_one_of(l->verb,
                  "see drop keep back anew limit wants heard asked status cancel lasts "
                  "had task result withdrawn"))
        return judge_on_caller(j, l);
    if (!strcmp(l->verb, "gone")) {
        judge_caller *c = judge_find_caller(j, l->a);
        if (c)
            c->open = false;
    } else if (!strcmp(l->verb, "fault")) {
        j->faults++;
        j->kills += is_one_of(l->a, "kill stop pause");
        j->losses += is_one_of(l->a, "loss full");
        j->is_calm = false;
        judge_logs_on_fault(j);
    } else if (!strcmp(l->verb, "knows") || !strcmp(l->verb, "change")) {
        return NULL; /* the run itself waits for it */
    } else if (!strcmp(l->verb, "start")) {
        return judge_on_client(j, l);
    } else if (!strcmp(l->verb, "calm")) {
        j->is_calm = true;
        j->calm_ms = j->now_ms;
    } else if (!strcmp(l->verb, "pace")) {
        j->pace_ms = (int64_t)judge_number(l, "ms");
        j->pace_limit = judge_number(l, "limit");
    } else if (!strcmp(l->verb, "hush")) {
        return judge_logs_on_hush(j, l);
    } else if (!strcmp(l->verb, "sent")) {
        return judge_pace_on_sent(j, l);
    } else if (!strcmp(l->verb, "size")) {
        if (judge_number(l, "bytes") > judge_number(l, "limit"))
            return judge_wrong(j, "sizes: %s has %s bytes, its limit is %s", l->a,
                               judge_text(l, "bytes"), judge_text(l, "limit"));
    } else if (!strcmp(l->verb, "over")) {
        return on_over(j);
    } else {
        return judge_wrong(j, "the history is broken: what is '%s'?", l->verb);
    }
    return NULL;
}

const char *judge_line(judge *j, const char *text)
{
    char words[400], *rest = words;
    judge_words l = {0};
    judge_copy(words, sizeof words, text);
    for (char *word; l.count < 16 && (word = strsep(&rest, " "));)
        if (*word)
            l.words[l.count++] = word;
    if (l.count < 2)
        return l.count ? judge_wrong(j, "the history is broken: '%s'", text) : NULL;
    j->now_ms = strtoll(l.words[0], NULL, 10);
    l.verb = l.words[1];
    l.a = l.count > 2 ? l.words[2] : "";
    l.b = l.count > 3 ? l.words[3] : "";
    j->line++;
    const char *why = take(j, &l);
    return why ? why : judge_limits_on_line(j);
}
