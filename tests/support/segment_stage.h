/* A call whose result a server of 2025-11-25 streams (SEP-1905); the test plays the
 * server, and its task is T. */
#ifndef SEGMENT_STAGE_H
#define SEGMENT_STAGE_H

#include "support/client_kit.h"

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define SEG(n, text) "{\"seqNr\":" #n ",\"type\":\"text\",\"text\":\"" text "\"}"
#define LIST(segments) "\"partial-content\":[" segments "],\"isError\":false,"
#define PART(segments) LIST(segments) "\"isComplete\":false," RELATED("T")
#define LAST(segments) LIST(segments) "\"isComplete\":true," RELATED("T")

/* A call whose answer is still to come. */
record *segments_begin(kit *k, const segue_request_options *options, const char **call);
/* The same in a session that is there. */
record *segments_call(kit *k, const segue_request_options *options, const char **call);
/* The same, answered with task T, which the server streams. */
record *segments_begin_task(kit *k, const segue_request_options *options,
                            const char **call);
/* The next line pulls what comes after this number. */
const char *segments_expect_pull(kit *k, const char *after);
/* What else was said are looks at the task, which goes on. */
void segments_answer_looks(kit *k);
uint64_t segments_warnings(const kit *k);
/* The result is "a", "b", "c", each told once. */
void segments_assert_abc(record *r);

#endif
