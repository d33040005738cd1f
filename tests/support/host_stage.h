/* A client with a host (segue_session_options). The test plays the server, which asks the
 * client. */
#ifndef HOST_STAGE_H
#define HOST_STAGE_H

#include "support/client_kit.h"
#include "support/model_fixtures.h"
#include "support/world.h"

#define SAMPLE                                                                           \
    "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"?\"}}]," \
    "\"maxTokens\":9"
#define ASK(id, more)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"sampling/createMessage\","          \
    "\"params\":{" SAMPLE more "}}"
#define ALL_MODES "\"responseModes\":[\"task\",\"immediate\",\"streaming\"]"
#define STREAMED ",\"task\":{\"responseModes\":[\"streaming\"]}"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define NUMBERED(n, text) "{\"seqNr\":" #n ",\"type\":\"text\",\"text\":\"" text "\"}"

typedef struct host_stage {
    kit k;
    model m;
    char task[64];
} host_stage;

segue_server_options hosting_host_options(void);
segue_item_options hosting_item_options(int32_t task);
/* Makes the runtime, the host and the session; the test plays the handshake. NULL = the
 * defaults. */
void hosting_prepare(host_stage *s, const segue_session_options *session,
                     const segue_server_options *host, const segue_item_options *item);
void hosting_begin_with(host_stage *s, const segue_session_options *session,
                        const segue_server_options *host, const segue_item_options *item);
void hosting_begin(host_stage *s);
void hosting_end(host_stage *s);
/* Checks that the next line answers this id with this value at the path; returns the
 * line. */
const char *hosting_assert_answer(host_stage *s, const char *id, const char *path,
                                  const char *value);
void hosting_assert_refused(host_stage *s, const char *id, const char *code);
/* Sends the question; the host gets a call and answers with its task. */
model_call *hosting_make_task(host_stage *s, const char *ask);
void hosting_ask_about(host_stage *s, const char *id, const char *method,
                       const char *more);
void hosting_assert_status(host_stage *s, const char *status);
void hosting_assert_told(host_stage *s, const char *status);
void hosting_assert_related(const host_stage *s, const char *line);
void hosting_assert_message(const char *line, const char *content);

#endif
