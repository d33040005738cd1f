/* Segue's client asks for a task by itself, because the tool may be one. */
#include "client_tasks.h"

#include <stdio.h>
#include <string.h>

#define ABSENT "missing: it has no tasks of 2025-11-25"

/* Starts a call that must become a task, and waits until it is one. */
static const char *begin(peer *p, exchange *x, const char *params)
{
    if (start(p, x, "tools/call", params, NULL) != SEGUE_OK)
        return "not taken";
    for (int i = 0; i < 100 && !x->tasks && !x->done; i++)
        run_for(p, 50);
    if (x->tasks)
        return NULL;
    return x->done && (x->status == SEGUE_E_REMOTE || strstr(x->json, "\"isError\":true"))
               ? ABSENT
               : because("no task but %s", segue_status_name(x->status));
}

static const char *finish(peer *p, exchange *x, const char *text)
{
    if (!wait_for(p, &x->done, 1) || x->status != SEGUE_OK)
        return because("it ended with %s", segue_status_name(x->status));
    if (!x->text || strcmp(x->text, text) != 0)
        return because("it answered %.200s", x->json);
    return NULL;
}

const char *check_task_result(peer *p)
{
    exchange x;
    const char *reason =
        begin(p, &x, "{\"name\":\"work\",\"arguments\":{\"label\":\"a\",\"ms\":300}}");
    if (!reason)
        reason = finish(p, &x, "worked: a");
    clear(&x);
    return reason;
}

const char *check_task_failure(peer *p)
{
    exchange x;
    const char *reason = begin(p, &x, "{\"name\":\"fail_at_work\",\"arguments\":{}}");
    if (!reason)
        reason = finish(p, &x, "failed on purpose");
    if (!reason && !strstr(x.json, "\"isError\":true"))
        reason = because("it answered %.200s", x.json);
    clear(&x);
    return reason;
}

/* Checks the state of a task by a separate request. */
static const char *expect_state(peer *p, const char *id, const char *state)
{
    exchange x;
    char params[200], part[60];
    snprintf(params, sizeof params, "{\"taskId\":\"%s\"}", id);
    snprintf(part, sizeof part, "\"status\":\"%s\"", state);
    const char *reason = ask(p, &x, "tasks/get", params);
    if (!reason && !strstr(x.json, part))
        reason = because("%s is not in %.200s", part, x.json);
    clear(&x);
    return reason;
}

const char *check_task_cancel(peer *p)
{
    exchange x;
    const char *reason =
        begin(p, &x, "{\"name\":\"work\",\"arguments\":{\"label\":\"b\",\"ms\":60000}}");
    if (!reason) {
        segue_request_cancel(x.request);
        if (!wait_for(p, &x.done, 1) || x.status != SEGUE_E_CANCELLED)
            reason = because("it ended with %s", segue_status_name(x.status));
        else /* the cancel may still be on its way */
            for (int i = 0; i < 20 && (reason = expect_state(p, x.task_id, "cancelled"));
                 i++)
                run_for(p, 50);
    }
    clear(&x);
    return reason;
}

const char *check_task_found_again(peer *p)
{
    exchange x, again;
    segue_task *task = NULL;
    const char *reason =
        begin(p, &x, "{\"name\":\"work\",\"arguments\":{\"label\":\"c\",\"ms\":500}}");
    if (reason) {
        clear(&x);
        return reason;
    }
    segue_request_detach(x.request);
    if (!wait_for(p, &x.done, 1) || x.status != SEGUE_E_CLOSED)
        reason = because("it ended with %s", segue_status_name(x.status));
    else if (segue_task_attach(p->session, x.task_id, &task, NULL) != SEGUE_OK)
        reason = "not attached";
    else if (watch(p, &again, task) != SEGUE_OK)
        reason = "not watched";
    else {
        reason = finish(p, &again, "worked: c");
        clear(&again);
    }
    segue_task_free(task);
    clear(&x);
    return reason;
}

const char *check_task_list(peer *p)
{
    exchange x;
    const char *reason = ask(p, &x, "tasks/list", "{}");
    if (reason && x.status == SEGUE_E_REMOTE && x.code == -32601)
        reason = ABSENT;
    else if (reason && x.status == SEGUE_E_REFUSED)
        reason = ABSENT;
    else if (!reason && !strstr(x.json, "\"taskId\""))
        reason = because("it answered %.200s", x.json);
    clear(&x);
    return reason;
}

const char *check_task_unknown(peer *p)
{
    exchange x;
    const char *reason = ask(p, &x, "tasks/get", "{\"taskId\":\"no-such-task\"}");
    if (!reason)
        reason = because("it answered %.200s", x.json);
    else if (x.status == SEGUE_E_REFUSED || x.code == -32601)
        reason = ABSENT;
    else if (x.status == SEGUE_E_REMOTE && x.code == -32602)
        reason = NULL;
    clear(&x);
    return reason;
}
