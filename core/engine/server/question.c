/* The questions that a server asks the host of a session: sampling/createMessage and
 * elicitation/create. The handler of a question runs like the handler of a tools/call
 * (tool_call.c). If the asking server sends params.task, the question becomes a task of
 * 2025-11-25, with or without segments. Questions differ from tool calls in the form of
 * their results (call_kind.h), and their handlers cannot ask questions. */
#include "engine/server/tool_call.h"

static void ask(const sgi_inbound *in, const sgi_call_kind *kind)
{
    sgi_call_request request;
    sgi_inbound asked = *in;
    const sgi_item *item =
        sgi_item_find(in->peer->server, SEGUE_ITEM_QUESTION, sgi_str_of(kind->method));
    /* The host (the server that answers questions in a client's session) has declared no
     * tasks for this method, so params.task is ignored (2025-11-25 basic/utilities/tasks,
     * "Task Support and Handling"). */
    if (item->options.task == SEGUE_TASK_NEVER)
        asked.task = (sgi_json){0};
    asked.caps = 0;
    if (sgi_call_request_read_question(&asked, kind, &request) &&
        sgi_call_request_negotiate(&asked, &request))
        sgi_tool_call_start(&asked, &request);
}

static void create_message(const sgi_inbound *in)
{
    ask(in, &sgi_call_sampling);
}

static void elicit(const sgi_inbound *in)
{
    ask(in, &sgi_call_elicitation);
}

const sgi_method *sgi_question_find_method(const segue_server *server, sgi_str name)
{
    static const sgi_method methods[] = {
        {"sampling/createMessage", 0, create_message},
        {"elicitation/create", 0, elicit},
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (sgi_str_eq(sgi_str_of(methods[i].name), name) &&
            sgi_item_find((segue_server *)server, SEGUE_ITEM_QUESTION, name))
            return &methods[i];
    return NULL;
}
