/* The rule `logs`: a caller gets a log message once, of a level that it wants, and of its
 * own operation, or of one of its process if they share a stream. A server obeys the
 * level that a process has asked for. */
#include "simulation/judge_state.h"

#include <stdlib.h>
#include <string.h>

const char *judge_logs_on_log(judge *j, judge_operation *op, const judge_words *l)
{
    op->logs = realloc(op->logs, (op->log_count + 1) * sizeof *op->logs);
    judge_log *log = &op->logs[op->log_count++];
    judge_copy(log->run, sizeof log->run, l->b);
    log->number = judge_number(l, "n");
    log->level = judge_number(l, "level");
    log->line = j->line;
    return NULL;
}

void judge_logs_want(judge_caller *c, const judge_words *l)
{
    c->level = judge_number(l, "level");
    c->shares = judge_number(l, "shared") != 0;
    c->repeats = judge_number(l, "repeats") != 0;
    c->heard_count = 0;
    if (judge_number(l, "asks") && c->level < c->process->least_level)
        c->process->least_level = c->level;
}

const char *judge_logs_on_hush(judge *j, const judge_words *l)
{
    judge_process *p = judge_pace_process(j, l->a);
    p->least_level = judge_number(l, "level");
    p->keeps_level = judge_number(l, "kept") != 0;
    p->hushed_line = j->line;
    return NULL;
}

/* Over HTTP a client learns only later that another server has taken over its session,
 * and sets the level there. Over a pipe it sets the level before anything else. */
void judge_logs_on_fault(judge *j)
{
    for (judge_process *p = j->processes; p; p = p->next)
        if (!p->keeps_level)
            p->least_level = 0;
}

/* Returns the index of the message; log_count = no handler gave it. */
static size_t find_log(const judge_operation *op, const judge_words *l)
{
    size_t i = 0;
    while (i < op->log_count && (op->logs[i].number != judge_number(l, "n") ||
                                 strcmp(op->logs[i].run, judge_text(l, "r")) != 0))
        i++;
    return i;
}

static bool is_of_process(const judge *j, const judge_caller *c,
                          const judge_operation *op)
{
    for (const judge_caller *other = j->callers; other; other = other->next)
        if (other->op == op && other->process == c->process)
            return true;
    return false;
}

static bool has_heard(const judge_caller *c, const judge_operation *op, size_t index)
{
    for (size_t i = 0; i < c->heard_count; i++)
        if (c->heard[i].op == op && c->heard[i].index == index)
            return true;
    return false;
}

const char *judge_logs_on_heard(judge *j, judge_caller *c, const judge_words *l)
{
    judge_operation *op = judge_find_operation(j, judge_text(l, "of"));
    size_t index = op ? find_log(op, l) : 0;
    if (!op || index == op->log_count)
        return judge_wrong(j, "logs: %s gets a message that nobody gave", c->name);
    const judge_log *log = &op->logs[index];
    if (log->level != judge_number(l, "level"))
        return judge_wrong(j, "logs: a message has another level for %s", c->name);
    if (op != c->op && (!c->shares || !is_of_process(j, c, op)))
        return judge_wrong(j, "logs: %s gets a message of %s", c->name, op->name);
    if (log->level < c->level)
        return judge_wrong(j, "logs: %s gets a message of level %d, it wants %d", c->name,
                           (int)log->level, (int)c->level);
    if (log->level < c->process->least_level && log->line > c->process->hushed_line)
        return judge_wrong(j, "logs: %s gets a message of level %d, %s has asked for %d",
                           c->name, (int)log->level, c->process->name,
                           (int)c->process->least_level);
    if (has_heard(c, op, index) && !(c->repeats && j->faults))
        return judge_wrong(j, "logs: %s gets a message twice", c->name);
    c->heard = realloc(c->heard, (c->heard_count + 1) * sizeof *c->heard);
    c->heard[c->heard_count++] = (judge_heard){op, index};
    return NULL;
}
