#include "engine/dialect/tasks_2025/response_2025.h"

#include "engine/client/void_members.h"
#include "wire/json_copy.h"

#define META "io.modelcontextprotocol/"
#define NUMBER_MAX ((INT64_C(1) << 53) - 1)

/* True when both JSON strings name the same task. JSON can spell one id in several
 * ways. */
static bool is_same_task(sgi_json a, sgi_json b)
{
    sgi_str plain;
    sgi_json one = sgi_json_get(a, "taskId");
    sgi_json other = sgi_json_get(b, "taskId");
    if (sgi_json_plain_string(one, &plain))
        return sgi_json_string_is(other, plain);
    if (sgi_json_plain_string(other, &plain))
        return sgi_json_string_is(one, plain);
    return sgi_str_eq(one, other);
}

static bool has_task_id(sgi_json object)
{
    return sgi_json_kind_of(object) == SGI_JSON_OBJECT &&
           sgi_json_kind_of(sgi_json_get(object, "taskId")) == SGI_JSON_STRING;
}

static sgi_2025_response_kind kind_of(sgi_2025_response *reply, sgi_json content,
                                      sgi_json related)
{
    bool has_list = reply->segments.n > 0;
    bool has_task = sgi_json_kind_of(reply->task) == SGI_JSON_OBJECT;
    if (has_list && (content.n || sgi_json_kind_of(reply->segments) != SGI_JSON_ARRAY))
        return SGI_2025_RESPONSE_MALFORMED;
    if (!has_list && reply->task.n && !has_task && !content.n)
        return SGI_2025_RESPONSE_MALFORMED;
    if (!has_list && (!has_task || content.n)) {
        /* the end of a stream without segments (R-1905-45) */
        if (reply->complete && has_task_id(related))
            reply->named = related;
        return SGI_2025_RESPONSE_PLAIN;
    }
    if ((has_task && !has_task_id(reply->task)) ||
        (has_task && has_task_id(related) && !is_same_task(reply->task, related)))
        return SGI_2025_RESPONSE_MALFORMED;
    if (has_task)
        reply->named = reply->task;
    else if (has_task_id(related))
        reply->named = related;
    return has_list ? SGI_2025_RESPONSE_SEGMENTS : SGI_2025_RESPONSE_TASK;
}

void sgi_2025_response_read(sgi_json result, sgi_2025_response *reply)
{
    static const sgi_str names[] = {
        SGI_STR_INIT("content"), SGI_STR_INIT("partial-content"),
        SGI_STR_INIT("task"),    SGI_STR_INIT("isComplete"),
        SGI_STR_INIT("isError"), SGI_STR_INIT("_meta")};
    sgi_json found[6];
    int64_t voided = 0;
    sgi_json_pick(result, names, 6, found);
    *reply = (sgi_2025_response){
        .result = result,
        .segments = found[1],
        .task = found[2],
        .complete = sgi_json_kind_of(found[3]) == SGI_JSON_TRUE,
        .is_error = sgi_json_kind_of(found[4]) == SGI_JSON_TRUE,
        .error = sgi_json_get(found[5], "dev.segue/error"),
        .fell_back = sgi_json_get(found[5], META "fallback-mode").n > 0,
    };
    if (sgi_json_read_int(sgi_json_get(found[5], "dev.segue/replace"), &voided) &&
        voided > 0 && voided <= NUMBER_MAX)
        reply->voided = (uint64_t)voided;
    reply->kind = kind_of(reply, found[0], sgi_json_get(found[5], META "related-task"));
}

uint64_t sgi_2025_segment_number(sgi_json segment)
{
    int64_t number = 0;
    if (sgi_json_kind_of(segment) != SGI_JSON_OBJECT ||
        !sgi_json_read_int(sgi_json_get(segment, "seqNr"), &number) || number < 1 ||
        number > NUMBER_MAX)
        return 0;
    return (uint64_t)number;
}

bool sgi_2025_response_has_good_segments(const sgi_2025_response *reply)
{
    sgi_json segment;
    for (size_t at = 0; sgi_json_next_item(reply->segments, &at, &segment);)
        if (!sgi_2025_segment_number(segment))
            return false;
    return true;
}

/* ---- writing an object without some members ---- */

void sgi_2025_segment_write_block(sgi_json segment, sgi_buf *out)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_copy_members(&w, segment, SGI_JSON_NAMES("seqNr"));
    sgi_jw_close(&w, '}');
}

void sgi_2025_response_write_fields(const sgi_2025_response *reply, sgi_buf *out)
{
    static const char *const names[] = {"partial-content", "isComplete", "isError",
                                        "task", NULL};
    sgi_object_write_without_void_report(reply->result, names, out);
}

bool sgi_2025_response_write_stripped(const sgi_2025_response *reply, sgi_buf *out)
{
    static const char *const names[] = {"isComplete", "task", NULL};
    sgi_json meta = sgi_json_get(reply->result, "_meta");
    if (!sgi_json_get(reply->result, "isComplete").n &&
        !sgi_meta_reports_void_segments(meta))
        return false;
    sgi_object_write_without_void_report(reply->result, names, out);
    return true;
}
