/* The client stores requestState as JSON text, because decoding and encoding could change
 * the spelling of the text. The newest requestState is valid, even if its message is
 * otherwise out of date. Only this draft has a requestState for tasks. The tasks
 * extension ignores such a member (R-2557-34). */
#include "engine/dialect/rows.h"
#include "engine/dialect/tasks_draft/task_echo.h"

static bool has_states(const segue_request *request)
{
    return request->session->version == SGI_VERSION_DRAFT_2026_V1;
}

static sgi_buf *room_of(const segue_request *request)
{
    sgi_draft_task *own = sgi_cli_dialect_state_find(request, &sgi_cli_tasks_draft);
    if (request->task)
        return &request->task->echo;
    return own ? &own->echo : NULL;
}

/* Returns the buffer for the requestState of a request's task, and makes it if it does
 * not exist. Returns NULL when out of memory. */
static sgi_buf *make_room(segue_request *request)
{
    sgi_buf *room = room_of(request);
    if (room)
        return room;
    sgi_draft_task *own =
        sgi_cli_dialect_state_find_or_new(request, &sgi_cli_tasks_draft);
    if (!own)
        return NULL;
    sgi_buf_init(&own->echo, sgi_engine_mem(request->engine));
    return &own->echo;
}

/* Stores a requestState. An empty text clears the stored requestState. When out of
 * memory, clears it and returns false. */
static bool set(sgi_buf *room, sgi_json text)
{
    sgi_buf_free(room);
    sgi_buf_add_str(room, text);
    bool ok = !room->failed;
    if (!ok)
        sgi_buf_free(room);
    return ok;
}

sgi_json sgi_task_request_state_of(const segue_request *request)
{
    const sgi_buf *room = room_of(request);
    return room ? sgi_buf_str(room) : (sgi_json){0};
}

void sgi_task_request_state_store(segue_request *request, sgi_json task, bool is_answer)
{
    sgi_json state = sgi_json_get(task, "requestState");
    if (!has_states(request))
        return;
    if (state.n && sgi_json_kind_of(state) != SGI_JSON_STRING) {
        request->engine->warnings++;
        state = (sgi_json){0};
    }
    if (!state.n && (!is_answer || !room_of(request)))
        return;
    /* When out of memory, the client stores no requestState and sends none. The server
     * then finds the task by its id. The server would refuse an old requestState. */
    sgi_buf *room = make_room(request);
    if (!room || !set(room, state))
        request->engine->warnings++;
}

void sgi_task_request_state_write(const segue_request *request, sgi_jw *w)
{
    sgi_json echo = sgi_task_request_state_of(request);
    if (echo.n && has_states(request))
        sgi_jw_member_raw(w, "requestState", echo);
}

void sgi_task_request_state_free(segue_request *request, sgi_cli_dialect_state *state)
{
    (void)request;
    sgi_buf_free(&((sgi_draft_task *)state)->echo);
}

bool sgi_task_request_state_restore(segue_request *request, const sgi_request_spec *spec)
{
    if (!spec->echo.n)
        return true;
    sgi_buf *room = make_room(request);
    return room && set(room, spec->echo);
}
