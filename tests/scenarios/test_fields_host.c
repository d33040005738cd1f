/* Requests of a server to a client that hosts tasks of 2025-11-25, with every field wrong
 * in every way (bad_fields.h). */
#include "support/client_fields.h"
#include "support/host_stage.h"

#include <stdio.h>

#define SAY(method, members)                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"" method "\",\"params\":{" members   \
    "}}"
#define QUESTION                                                                         \
    SAY("sampling/createMessage",                                                        \
        SAMPLE ",\"task\":{\"ttl\":60000,\"responseModes\":[\"task\"]},\"_meta\":{"      \
               "\"progressToken\":\"p\"}")
#define PLAIN SAY("sampling/createMessage", SAMPLE)
#define ABOUT(method) SAY(method, "\"taskId\":\"TOKEN\"")
#define PULL SAY("tasks/result", "\"taskId\":\"TOKEN\",\"lastSeqNr\":1")
#define CANCELLED NOTE("notifications/cancelled", "\"requestId\":7")

static void begin(client_scene *s)
{
    segue_session_options options = kit_legacy_options();
    kit_prepare(&s->k, 0);
    model_begin(&s->m, s->k.runtime, NULL, NULL);
    options.host = s->m.host;
    s->m.at_once = 1;
    kit_connect(&s->k);
    kit_open(&s->k, &options);
    kit_handshake_2025(&s->k, SERVER_2025_STREAMS);
    s->answers = 1;
}

/* The model's answer is on its way. */
static void answering(client_scene *s)
{
    begin(s);
    s->m.at_once = 0;
    kit_say(&s->k, ASK("7", ""));
}

/* A task that is streamed has one segment. */
static void hosting(client_scene *s)
{
    begin(s);
    s->m.at_once = 0;
    kit_say(&s->k, ASK("7", STREAMED));
    const char *line = kit_heard(&s->k);
    const char *id = json_at(line, "result.task.taskId");
    snprintf(s->token, sizeof s->token, "%.*s", (int)strlen(id) - 2, id + 1);
    model_say(s->m.calls, "a");
    kit_heard(&s->k);
}

static const client_row rows[] = {
    {begin, PLAIN, "jsonrpc", "RRRRRRRRRRRRRR"},
    {begin, PLAIN, "id", "TWWrrWWWrrrrWW"},
    {begin, PLAIN, "method", "WRRRRRRRMMMMRR"},
    {begin, PLAIN, "params", "rRRRRRRRRRRRRr"},
    {begin, PLAIN, "params>messages", "rrrrrrrrrrrrrr"},
    {begin, PLAIN, "params>maxTokens", "rrrrrrrrrrrrrr"},
    {begin, QUESTION, "params>task", "rPPPPPPPPPPPPr"},
    {begin, QUESTION, "params>task>ttl", "rPPrPPPPPPPPPP"},
    {begin, QUESTION, "params>task>responseModes", "rPPPPPPPPPPPrP"},
    {begin, QUESTION, "params>task>responseModes>0", "rPPPPPPPrrrrPP"},
    {begin, QUESTION, "params>_meta", "rrrrrrrrrrrrrr"},
    {begin, QUESTION, "params>_meta>progressToken", "rrrrrrrrrrrrrr"},
    {hosting, ABOUT("tasks/get"), "params", "PRRRRRRRRRRRRP"},
    {hosting, ABOUT("tasks/get"), "params>taskId", "PPPPPPPPPPPPPP"},
    {hosting, ABOUT("tasks/result"), "params>taskId", "PPPPPPPPPPPPPP"},
    {hosting, ABOUT("tasks/cancel"), "params>taskId", "PPPPPPPPPPPPPP"},
    {hosting, ABOUT("tasks/list"), "params", "MRRRRRRRRRRRRM"},
    {hosting, PULL, "params>taskId", "PPPPPPPPPPPPPP"},
    {hosting, PULL, "params>lastSeqNr", ".PPrPPPPPPPPPP"},
    {answering, CANCELLED, "params", ".WWWWWWWWWWWW."},
    {answering, CANCELLED, "params>requestId", ".............."},
};

/* The scenes are those of kit_prepare: the tap records what the client sends in them. */
int main(void)
{
    return client_fields_run("AS-116 fields of requests to a client with a host", rows,
                             sizeof rows / sizeof *rows);
}
