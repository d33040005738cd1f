/* Tools of the peers ask Segue's client, and report its answers (probe.c). */
#include "client_asks.h"

#include <stdio.h>
#include <string.h>

/* Calls a tool that asks this many times; everything that it reports must contain the
 * text. */
static const char *expect_asked(peer *p, const char *tool, int times, const char *part)
{
    exchange x;
    char params[100];
    snprintf(params, sizeof params, "{\"name\":\"%s\",\"arguments\":{}}", tool);
    const char *reason = ask(p, &x, "tools/call", params);
    if (!reason && (!x.text || !strstr(x.text, part)))
        reason = because("it tells %.200s", x.text ? x.text : x.json);
    if (!reason && x.asked != times)
        reason = because("it asked %d times", x.asked);
    clear(&x);
    return reason;
}

const char *check_form(peer *p)
{
    return expect_asked(p, "ask_name", 1, "accept Ada");
}

const char *check_decline(peer *p)
{
    p->declines = 1;
    const char *reason = expect_asked(p, "ask_name", 1, "decline");
    p->declines = 0;
    return reason;
}

const char *check_rounds(peer *p)
{
    return expect_asked(p, "ask_twice", 2, "Ada and Ada");
}

const char *check_sampling(peer *p)
{
    return expect_asked(p, "ask_model", 1, "judge: Something.");
}

const char *check_roots(peer *p)
{
    return expect_asked(p, "ask_roots", 1, "file:///judged");
}
