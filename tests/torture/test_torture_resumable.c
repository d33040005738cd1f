/* Requests that can be resumed (SEP-975), on both sides, while memory fails: the client
 * ends with a token, and another client resumes its request. */
#include "support/torture.h"

#include <string.h>

/* Ends the session and opens another one; returns NULL when the request did not get that
 * far. */
static segue_session *let_go(torture *t, const char *tool, const char *arguments)
{
    size_t len = sizeof t->asked[0].token;
    t->no_tasks = t->resumable = 1;
    segue_session *session = torture_serve(t) ? torture_open(t) : NULL;
    asked *a = session ? torture_call(t, session, tool, arguments) : NULL;
    if (!a)
        return NULL;
    for (int i = 0; i < 3; i++) {
        torture_pump(t);
        t->clock_ms += 10;
    }
    if (a->completed || segue_request_token(a->request, a->token, &len) != SEGUE_OK)
        return NULL;
    segue_session_close(session);
    torture_settle(t, a);
    t->clock_ms += 2000;
    return torture_open(t);
}

static int resumed(torture *t, const char *tool, const char *arguments,
                   const char *in_result)
{
    segue_session *session = let_go(t, tool, arguments);
    asked *b = session ? torture_resume(t, session, t->asked[0].token) : NULL;
    if (!b)
        return 0;
    torture_settle(t, b);
    return (b->status == SEGUE_OK || b->status == SEGUE_E_INCOMPLETE) &&
           strstr(b->result, in_result);
}

static int with_progress(torture *t)
{
    return resumed(t, "reporter", "{\"n\":5,\"delayMs\":20}", "reported");
}

static int in_pieces(torture *t)
{
    return resumed(t, "story", "{\"n\":6,\"delayMs\":15}", "segment 6");
}

/* By a task handle: polls the status, then gets the rest. */
static int looked_at(torture *t)
{
    segue_session *session = let_go(t, "reporter", "{\"n\":5,\"delayMs\":20}");
    const char *token = t->asked[0].token;
    asked *look = session ? torture_look(t, session, token, 0) : NULL;
    if (!look)
        return 0;
    torture_settle(t, look);
    asked *rest = torture_look(t, session, token, 1);
    if (!rest)
        return 0;
    torture_settle(t, rest);
    return look->status == SEGUE_OK && strstr(look->result, "hasPendingMessage") &&
           rest->status == SEGUE_OK && strstr(rest->result, "reported");
}

/* Asks on the channel, under an id of its own. */
static int with_a_question(torture *t)
{
    t->no_tasks = t->resumable = 1;
    segue_session *session = torture_serve(t) ? torture_open(t) : NULL;
    asked *a =
        session ? torture_call(t, session, "ask_once", "{\"filename\":\"f\"}") : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_OK;
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"resumed with progress", with_progress, 0, SEGUE_ERA_LEGACY, 0},
        {"resumed in pieces", in_pieces, 0, SEGUE_ERA_LEGACY, 0},
        {"looked at by its token", looked_at, 0, SEGUE_ERA_LEGACY, 0},
        {"a question on the channel", with_a_question, 0, SEGUE_ERA_LEGACY, 0},
    };
    return torture_run("resumable", scenarios, sizeof scenarios / sizeof *scenarios);
}
