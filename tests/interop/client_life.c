/* Sessions and calls of Segue's client when connections break and servers die. */
#include "client_life.h"

#include <stdio.h>
#include <string.h>

/* Tries of a call while the server restarts. A server in Python may take many seconds on
 * a busy machine. */
#define TRIES 150

/* Calls the tool that ends the server's process. */
static const char *kill_server(peer *p)
{
    exchange x;
    const char *reason = ask(p, &x, "tools/call", "{\"name\":\"die\",\"arguments\":{}}");
    if (!reason)
        reason = because("it answered %.200s", x.json);
    else if (x.done && x.status == SEGUE_E_DISCONNECTED)
        reason = NULL;
    clear(&x);
    return reason;
}

const char *check_death(peer *p)
{
    peer other = {.runtime = p->runtime, .argv = p->argv, .era = p->era};
    exchange x;
    if (open_session(&other, SEGUE_ERA_AUTO, 0, 0) != SEGUE_OK)
        return "not opened";
    const char *reason = kill_server(&other);
    if (!reason && !wait_for(&other, &other.closes, 1))
        reason = "no on_closed";
    if (!reason && start(&other, &x, "tools/list", NULL, NULL) != SEGUE_E_CLOSED)
        reason = "a request was taken after the end";
    segue_session_free(other.session);
    return reason;
}

/* Calls `greet` until it succeeds: a call may be lost with its connection. */
static const char *greet_again(peer *p)
{
    const char *reason = NULL;
    for (int i = 0; i < TRIES; i++) {
        reason = greet(p);
        if (!reason)
            return p->closes ? "the session was closed" : NULL;
        run_for(p, 100);
    }
    return reason;
}

/* In a handshake era the stream of the answer is resumed; in 2026-07-28 the call is lost
 * with it. In both cases the session goes on. */
const char *check_cut(peer *p)
{
    exchange x;
    segue_status expected = p->era == ERA_MODERN ? SEGUE_E_DISCONNECTED : SEGUE_OK;
    const char *reason = NULL;
    if (start(p, &x, "tools/call",
              "{\"name\":\"steps\",\"arguments\":{\"n\":20,\"delayMs\":100}}",
              NULL) != SEGUE_OK)
        return "not taken";
    if (!wait_for(p, &x.progress_count, 1))
        reason = "no first step";
    else if (!cut_connections(p))
        reason = "nobody cuts";
    else if (!wait_for(p, &x.done, 1) || x.status != expected)
        reason = because("it ended with %s", segue_status_name(x.status));
    else if (x.status == SEGUE_OK && (!x.text || strcmp(x.text, "arrived") != 0))
        reason = because("it answered %.200s", x.json);
    clear(&x);
    return reason ? reason : greet_again(p);
}

/* Over HTTP a session outlives its server: requests fail until a server answers again. */
const char *check_return(peer *p)
{
    const char *reason = kill_server(p);
    return reason ? reason : greet_again(p);
}

const char *check_restart(peer *p)
{
    peer other = {.runtime = p->runtime, .argv = p->argv, .era = p->era};
    if (open_session(&other, SEGUE_ERA_AUTO, 1, 0) != SEGUE_OK)
        return "not opened";
    const char *reason = kill_server(&other);
    if (!reason)
        reason = greet(&other);
    if (!reason && other.opens != 2)
        reason = because("opened %d times", other.opens);
    if (!close_session(&other) && !reason)
        reason = "no on_closed";
    return reason;
}
