/* tools/list. */
#include "engine/dialect/dialect.h"

#include <stdio.h>

/* A cursor is the order number of the last tool shown; a tool that was removed meanwhile
 * makes no hole and no repeat. */
static bool read_cursor(const sgi_inbound *in, uint64_t *after)
{
    sgi_json cursor = sgi_json_get(in->params, "cursor");
    sgi_str text;
    *after = 0;
    if (!cursor.n)
        return true;
    if (!sgi_json_plain_string(cursor, &text) || !text.n || text.n > 19)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
        *after = *after * 10 + (uint64_t)(text.p[i] - '0');
    }
    return true;
}

/* 2025-11-25 has a tool say whether it runs as a task; who asks for one without being
 * told so is refused. What the application wrote there was taken out (registry.c). */
static void write_tool(sgi_jw *w, const sgi_tool *tool, bool tells_tasks)
{
    static const char *const words[] = {
        [SEGUE_TASK_MAY] = "optional", [SEGUE_TASK_MUST] = "required"};
    sgi_json json = {tool->json, tool->json_len};
    if (!tells_tasks || tool->options.task == SEGUE_TASK_NEVER) {
        sgi_jw_raw(w, json);
        return;
    }
    sgi_jw_raw(w, (sgi_json){json.p, json.n - 1});
    sgi_buf_add_lit(w->buf, ",\"execution\":{\"taskSupport\":\"");
    sgi_buf_add_str(w->buf, sgi_str_of(words[tool->options.task]));
    sgi_buf_add_lit(w->buf, "\"}}");
}

void sgi_tools_list(const sgi_inbound *in)
{
    segue_server *server = in->peer->server;
    sgi_sending sending;
    sgi_tool *tool;
    uint64_t after;
    uint64_t last = 0;
    int32_t shown = 0;
    bool tells_tasks = sgi_tasks_2025_are_for(in->peer, in->version);
    if (!read_cursor(in, &after)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "Invalid cursor", NULL);
        return;
    }
    sgi_answer_result(&sending, in, "complete");
    sgi_jw_key(&sending.w, "tools");
    sgi_jw_open(&sending.w, '[');
    TAILQ_FOREACH(tool, &server->tools, link) {
        if (tool->order <= after)
            continue;
        if (shown == server->options.page_size)
            break;
        write_tool(&sending.w, tool, tells_tasks);
        last = tool->order;
        shown++;
    }
    sgi_jw_close(&sending.w, ']');
    if (tool) {
        char cursor[24];
        snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)last);
        sgi_jw_member_string(&sending.w, "nextCursor", sgi_str_of(cursor));
    }
    if (sgi_version_is_modern(in->version)) {
        sgi_jw_member_int(&sending.w, "ttlMs", 0);
        sgi_jw_member_string(&sending.w, "cacheScope", SGI_STR("private"));
        sgi_send_meta(&sending, server);
    }
    sgi_send_end(&sending);
}
