/* A raw client of 2025-11-25. The server asks the client questions, and the client
 * answers them with tasks of its own. */
#ifndef ASKED_WIRE_H
#define ASKED_WIRE_H

#include "support/legacy_wire.h"

#define TAKES                                                                            \
    "\"requests\":{\"sampling\":{\"createMessage\":{}},\"elicitation\":{\"create\":{}}}"
#define CAPS_L "{\"sampling\":{},\"elicitation\":{},\"tasks\":{\"cancel\":{}," TAKES "}}"
#define CAPS_S                                                                           \
    "{\"sampling\":{},\"tasks\":{\"cancel\":{}," TAKES                                   \
    ",\"responses\":{\"modes\":[\"task\",\"immediate\",\"streaming\"]}}}"
#define SAMPLE "sampling/createMessage"
#define GET "tasks/get"
#define RESULT "tasks/result"

#define FACTS(status)                                                                    \
    "\"taskId\":\"H\",\"status\":\"" status "\",\"createdAt\":\"2026-01-01T00:00:00Z\"," \
    "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"ttl\":60000,\"pollInterval\":100"
#define TASK(status) "{" FACTS(status) "}"
#define CREATED "\"task\":" TASK("working")
#define META "\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"H\"}}"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define NUMBERED(n, text) "{\"seqNr\":" #n ",\"type\":\"text\",\"text\":\"" text "\"}"
#define ENDS "\"role\":\"assistant\",\"model\":\"m\",\"stopReason\":\"endTurn\""
#define MESSAGE(blocks) "{\"content\":[" blocks "]," ENDS "}"
#define PART(blocks)                                                                     \
    "\"partial-content\":[" blocks "],\"isError\":false,\"isComplete\":false," META
#define LAST(blocks)                                                                     \
    "\"partial-content\":[" blocks "],\"isError\":false,\"isComplete\":true," ENDS       \
    "," META

void asker_call(wire *c, const char *id, const char *tool);
/* Returns the next request of this method, and stores its id as JSON. */
const char *asker_asked(wire *c, const char *method, char id[WIRE_ID]);
const char *asker_polled(world *w, wire *c, const char *method, char id[WIRE_ID]);
void asker_reply(wire *c, const char *id, const char *result);
void asker_refuse(wire *c, const char *id, int code);
/* Checks that the response's text is the result that the tool received. */
void asker_got(const char *response, const char *what);
void asker_got_error(const char *response, const char *code);
/* Calls a tool that asks a question. The client turns the question into its task H. */
wire *asker_begin_task(world *w, const char *caps, const char *tool);
/* Tunes the server's options: questions are asked as tasks that live for one minute. */
void asker_tune(segue_server_options *options);

#endif
