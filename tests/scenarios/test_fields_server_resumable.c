/* Requests of SEP-975 (Z), with every field wrong in every way (bad_fields.h), sent to
 * the server. A wrong value is answered like an unknown token (R-975-11). */
#include "support/field_table.h"

#include "support/legacy_wire.h"

#define INITIALIZE                                                                       \
    "initialize",                                                                        \
        "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"resumableRequests\":{}}" \
        ",\"clientInfo\":{\"name\":\"n\",\"version\":\"1\"}"
#define RESUME "requests/resume", "\"resumeToken\":\"TASK\""
#define STATUS "requests/getStatus", "\"requestId\":123,\"resumeToken\":\"TASK\""

static const field_row rows[] = {
    {RESUME, "id", ".RRPPRRRPPPPRR"},
    {RESUME, "params", "PRRRRRRRRRRRRP"},
    {RESUME, "params>resumeToken", "PPPPPPPPPPPPPP"},
    {STATUS, "params", "PRRRRRRRRRRRRP"},
    {STATUS, "params>requestId", "PPPPPPPPPPPPPP"},
    {STATUS, "params>resumeToken", "PPPPPPPPPPPPPP"},
};

static const field_row first_rows[] = {
    {INITIALIZE, "params>capabilities>resumableRequests", "KKKKKKKKKKKKKK"},
};

static wire *begin(world *w)
{
    return legacy_connect(w, "who", "{\"resumableRequests\":{}}");
}

static wire *begin_bare(world *w)
{
    return world_connect(w, "who");
}

static void still_works(wire *c)
{
    assert_at(wire_do_plain(c, "\"alive\"", "ping", NULL), "result", "{}");
}

/* Makes the request 123, which hangs; returns its token. */
static char *make_request(wire *c)
{
    wire_ask_plain(c, "123", "tools/call", "\"name\":\"hang\",\"arguments\":{}");
    const char *policy = wire_notification(c, "notifications/requests/resumePolicy");
    const char *token = json_at(policy, "params.resumeToken");
    return strndup(token + 1, strlen(token) - 2);
}

int main(void)
{
    static const field_stage stage = {
        .begin = begin, .still_works = still_works, .make_task = make_request};
    static const field_stage bare = {.begin = begin_bare, .still_works = still_works};
    return fields_run("AS-116 fields of requests of SEP-975", &stage, rows,
                      sizeof rows / sizeof *rows) +
           fields_run("AS-116 fields of initialize with SEP-975", &bare, first_rows,
                      sizeof first_rows / sizeof *first_rows);
}
