/* It is kept as it came: decoding and writing it again could spell it in another way. The
 * last one that arrived counts, whatever its message says of the task, and only under the
 * version that has it: of the extension it is ignored (R-2557-34). */
#include "engine/asking/request.h"

bool sgi_echo_set(sgi_echo *echo, const sgi_mem *mem, sgi_json text)
{
    char *copy = text.n ? sgi_text_dup(mem, text) : NULL;
    sgi_echo_free(echo, mem);
    if (!copy)
        return !text.n;
    echo->text = copy;
    echo->len = text.n;
    return true;
}

void sgi_echo_free(sgi_echo *echo, const sgi_mem *mem)
{
    if (echo->text)
        sgi_release(mem, echo->text, echo->len + 1);
    *echo = (sgi_echo){NULL, 0};
}

static bool has_states(const segue_request *request)
{
    return request->session->version == SGI_VERSION_DRAFT_2026_V1;
}

sgi_json sgi_task_echo(const segue_request *request)
{
    const sgi_echo *echo = request->task ? &request->task->echo : &request->echo;
    return (sgi_json){echo->text, echo->len};
}

void sgi_task_echo_note(segue_request *request, sgi_json task, bool is_answer)
{
    sgi_json state = sgi_json_get(task, "requestState");
    sgi_echo *echo = request->task ? &request->task->echo : &request->echo;
    if (!has_states(request))
        return;
    if (state.n && sgi_json_kind_of(state) != SGI_JSON_STRING) {
        request->engine->warnings++;
        state = (sgi_json){0};
    }
    if (!state.n && !is_answer)
        return;
    /* without memory none goes back, and an old one would be wrong: ids find the task */
    if (!sgi_echo_set(echo, sgi_engine_mem(request->engine), state))
        request->engine->warnings++;
}

void sgi_task_echo_write(const segue_request *request, sgi_jw *w)
{
    sgi_json echo = sgi_task_echo(request);
    if (echo.n && has_states(request))
        sgi_jw_member_raw(w, "requestState", echo);
}
