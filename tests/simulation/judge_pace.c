/* The rule `pace`: a process that sends and sends, although none of its calls has news,
 * hammers a server. */
#include "simulation/judge_state.h"

#include <stdlib.h>
#include <string.h>

judge_process *judge_pace_process(judge *j, const char *name)
{
    judge_process *p = j->processes;
    while (p && strcmp(p->name, name) != 0)
        p = p->next;
    if (!p) {
        p = calloc(1, sizeof *p);
        judge_copy(p->name, sizeof p->name, name);
        p->next = j->processes;
        j->processes = p;
    }
    return p;
}

void judge_pace_free(judge *j)
{
    while (j->processes) {
        judge_process *p = j->processes;
        j->processes = p->next;
        free(p);
    }
}

void judge_pace_news(const judge *j, judge_process *process)
{
    if (!process)
        return;
    process->since_ms = j->now_ms;
    process->sent = 0;
}

static uint64_t open_calls(const judge *j, const judge_process *process)
{
    uint64_t count = 0;
    for (const judge_caller *c = j->callers; c; c = c->next)
        count += c->open && c->process == process;
    return count;
}

const char *judge_pace_on_sent(judge *j, const judge_words *l)
{
    judge_process *p = judge_pace_process(j, l->a);
    uint64_t calls = open_calls(j, p);
    if (!j->pace_ms || !calls)
        return NULL;
    if (j->now_ms - p->since_ms > j->pace_ms)
        judge_pace_news(j, p);
    p->sent += judge_number(l, "n");
    if (p->sent > j->pace_limit * calls)
        return judge_wrong(
            j, "pace: %s sends %d messages in %d ms, without news for %d calls", p->name,
            (int)p->sent, (int)(j->now_ms - p->since_ms), (int)calls);
    return NULL;
}
