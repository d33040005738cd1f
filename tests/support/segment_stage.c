#include "support/segment_stage.h"

#include <stdarg.h>
#include <string.h>

#include "engine/client/session.h"
#include "support/world.h"

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

record *segments_call(kit *k, const segue_request_options *options, const char **call)
{
    record *r = kit_start(k, "tools/call", "{\"name\":\"t\"}", options);
    *call = kit_expect(k, "tools/call");
    return r;
}

record *segments_begin(kit *k, const segue_request_options *options, const char **call)
{
    kit_begin_2025(k, NULL, SERVER_2025_STREAMS);
    kit_start(k, "tools/list", NULL, NULL);
    kit_list_tools(k);
    return segments_call(k, options, call);
}

record *segments_begin_task(kit *k, const segue_request_options *options,
                            const char **call)
{
    record *r = segments_begin(k, options, call);
    kit_result(k, *call, CREATED_2025("T"));
    return r;
}

const char *segments_expect_pull(kit *k, const char *after)
{
    const char *pull = kit_expect(k, "tasks/result");
    assert_at(pull, "params.taskId", "\"T\"");
    assert_at(pull, "params.lastSeqNr", after);
    return pull;
}

void segments_answer_looks(kit *k)
{
    const char *line;
    while ((line = kit_heard(k))) {
        assert_at(line, "method", "\"tasks/get\"");
        kit_result(k, line, TASK_2025("T", "working"));
    }
}

uint64_t segments_warnings(const kit *k)
{
    return k->session->engine->warnings;
}

void segments_assert_abc(record *r)
{
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_int_equal(r->segments, 3);
    assert_int_equal(r->last_segment, 3);
    assert_at(r->result, "partial-content", "");
    assert_at(r->result, "isComplete", "");
    assert_null(strstr(r->result, "seqNr"));
}
