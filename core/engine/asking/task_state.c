/* What a server says of a task: its state, its message, how often it is to be asked. */
#include "engine/asking/request.h"

int32_t sgi_task_state_of(sgi_json status)
{
    static const struct {
        const char *name;
        int32_t state;
    } known[] = {
        {"working", SEGUE_TASK_WORKING},
        {"input_required", SEGUE_TASK_INPUT_REQUIRED},
        {"completed", SEGUE_TASK_COMPLETED},
        {"failed", SEGUE_TASK_FAILED},
        {"cancelled", SEGUE_TASK_CANCELLED},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sgi_json_string_is(status, sgi_str_of(known[i].name)))
            return known[i].state;
    return SEGUE_TASK_UNKNOWN;
}

void sgi_task_note_status(segue_request *request, sgi_json object)
{
    sgi_json status = sgi_json_get(object, "status");
    sgi_json message = sgi_json_get(object, "statusMessage");
    int32_t state = sgi_task_state_of(status);
    sgi_str word;
    sgi_buf text;
    if (sgi_json_kind_of(message) != SGI_JSON_STRING)
        message = (sgi_json){0};
    sgi_inbox_head head = {.kind = SGI_RECORD_STATUS, .number = message.n > 0};
    if (state == SEGUE_TASK_UNKNOWN)
        state = request->state;
    bool changed = state != request->state || message.n;
    request->state = state;
    if (request->task)
        request->task->state = state;
    if (!changed || !request->events.on_status || sgi_deliver_is_full(request))
        return;
    sgi_buf_init(&text, sgi_engine_mem(request->engine));
    if (!sgi_json_plain_string(status, &word)) {
        static const char *const words[] = {"",          "working", "input_required",
                                            "completed", "failed",  "cancelled"};
        word = sgi_str_of(words[state]);
    }
    sgi_buf_add_str(&text, word);
    sgi_buf_add_char(&text, 0);
    if (message.n)
        sgi_json_decode(message, &text);
    if (!text.failed)
        sgi_deliver(request, &head, sgi_buf_str(&text));
    sgi_buf_free(&text);
}

/* ttlMs, ttlSeconds, ttl and their like: read by field name (R-2557-2). */
void sgi_task_note_poll(segue_request *request, sgi_json task)
{
    static const char *const names[] = {"pollIntervalMs", "pollIntervalMilliseconds",
                                        "pollInterval"};
    int64_t ms;
    for (size_t i = 0; i < 3; i++)
        if (sgi_json_int(sgi_json_get(task, names[i]), &ms) && ms >= 0) {
            request->poll_ms = ms;
            return;
        }
}
