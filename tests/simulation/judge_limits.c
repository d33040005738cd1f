/* The rule `limits`: a call ends with SEGUE_E_TIMEOUT only when one of its time limits is
 * over, and it ends soon after the limit of the whole call. */
#include "simulation/judge_state.h"

static bool is_over(const judge_limits *limits, int64_t limit, int64_t now_ms)
{
    return limit && now_ms - limits->since_ms >= limit;
}

void judge_limits_begin(judge *j, judge_caller *c, const judge_words *l)
{
    /* The process may have died while it cancelled a call that took too long. */
    if (c->op && is_over(&c->limits, c->limits.ms, j->now_ms))
        c->op->overdue = true;
    c->limits = (judge_limits){.since_ms = j->now_ms,
                               .ms = (int64_t)judge_number(l, "ms"),
                               .wire_ms = (int64_t)judge_number(l, "wire"),
                               .grace_ms = (int64_t)judge_number(l, "grace")};
}

const char *judge_limits_on_timeout(judge *j, const judge_caller *c, judge_operation *op)
{
    const judge_limits *limits = &c->limits;
    op->overdue |= is_over(limits, limits->ms, j->now_ms);
    if (op->overdue || is_over(limits, limits->wire_ms, j->now_ms))
        return NULL;
    return judge_wrong(j, "limits: %s times out after %d ms, its limit is %d ms", c->name,
                       (int)(j->now_ms - limits->since_ms),
                       (int)(limits->ms ? limits->ms : limits->wire_ms));
}

const char *judge_limits_on_line(judge *j)
{
    for (const judge_caller *c = j->callers; c; c = c->next)
        if (c->open && c->limits.ms &&
            is_over(&c->limits, c->limits.ms + c->limits.grace_ms, j->now_ms))
            return judge_wrong(j, "limits: %s has a limit of %d ms, and runs for %d ms",
                               c->name, (int)c->limits.ms,
                               (int)(j->now_ms - c->limits.since_ms));
    return NULL;
}
