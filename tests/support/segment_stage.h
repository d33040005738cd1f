/* A call whose result a server of 2025-11-25 streams (SEP-1905). The test plays the
 * server; the task of the call is T. */
#ifndef SEGMENT_STAGE_H
#define SEGMENT_STAGE_H

#include "support/client_kit.h"

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define SEG(n, text) "{\"seqNr\":" #n ",\"type\":\"text\",\"text\":\"" text "\"}"
#define LIST(segments) "\"partial-content\":[" segments "],\"isError\":false,"
#define PART(segments) LIST(segments) "\"isComplete\":false," RELATED("T")
#define LAST(segments) LIST(segments) "\"isComplete\":true," RELATED("T")

/* Starts a session and a call. The test sends the answer to the call. */
record *segments_begin(kit *k, const segue_request_options *options, const char **call);
/* Starts a call in an existing session. */
record *segments_call(kit *k, const segue_request_options *options, const char **call);
/* Starts a session and a call, and answers with task T, which the server streams. */
record *segments_begin_task(kit *k, const segue_request_options *options,
                            const char **call);
/* Checks that the next line pulls the segments after this number. */
const char *segments_expect_pull(kit *k, const char *after);
/* Checks that all other lines are tasks/get, and answers each with the status
 * "working". */
void segments_answer_looks(kit *k);
uint64_t segments_warnings(const kit *k);
/* Checks that the result is "a", "b", "c", and that the application saw each once. */
void segments_assert_abc(record *r);

#endif
