/* tools/list, resources/list, resources/templates/list and prompts/list: one page of the
 * items of one type. */
#include "engine/dialect/dialect.h"

#include <stdio.h>

/* A cursor is the order number of the last item shown; one that was removed meanwhile
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
static void write_item(sgi_jw *w, const sgi_item *item, bool tells_tasks)
{
    static const char *const words[] = {
        [SEGUE_TASK_MAY] = "optional", [SEGUE_TASK_MUST] = "required"};
    sgi_json json = {item->json, item->json_len};
    if (!tells_tasks || item->options.task == SEGUE_TASK_NEVER) {
        sgi_jw_raw(w, json);
        return;
    }
    sgi_jw_raw(w, (sgi_json){json.p, json.n - 1});
    sgi_buf_add_lit(w->buf, ",\"execution\":{\"taskSupport\":\"");
    sgi_buf_add_str(w->buf, sgi_str_of(words[item->options.task]));
    sgi_buf_add_lit(w->buf, "\"}}");
}

/* Writes the items behind `after`, as many as a page has. *last: the order number of the
 * last one, when there are more; else 0. */
static void write_page(sgi_jw *w, const sgi_inbound *in, int32_t type, uint64_t after,
                       uint64_t *last)
{
    segue_server *server = in->peer->server;
    bool tells_tasks = sgi_tasks_2025_are_for(in->peer, in->version);
    uint64_t shown_last = 0;
    int32_t shown = 0;
    sgi_item *item;
    TAILQ_FOREACH(item, &sgi_shelf_of(server, type)->items, link) {
        if (item->order <= after)
            continue;
        if (shown == server->options.page_size)
            break;
        write_item(w, item, tells_tasks);
        shown_last = item->order;
        shown++;
    }
    *last = item ? shown_last : 0;
}

static void list(const sgi_inbound *in, int32_t type, const char *member)
{
    segue_server *server = in->peer->server;
    sgi_sending sending;
    uint64_t after;
    uint64_t last;
    if (!read_cursor(in, &after)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "Invalid cursor", NULL);
        return;
    }
    sgi_answer_result(&sending, in, "complete");
    sgi_jw_key(&sending.w, member);
    sgi_jw_open(&sending.w, '[');
    write_page(&sending.w, in, type, after, &last);
    sgi_jw_close(&sending.w, ']');
    if (last) {
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

void sgi_tools_list(const sgi_inbound *in)
{
    list(in, SEGUE_ITEM_TOOL, "tools");
}

void sgi_resources_list(const sgi_inbound *in)
{
    list(in, SEGUE_ITEM_RESOURCE, "resources");
}

void sgi_templates_list(const sgi_inbound *in)
{
    list(in, SEGUE_ITEM_RESOURCE_TEMPLATE, "resourceTemplates");
}

void sgi_prompts_list(const sgi_inbound *in)
{
    list(in, SEGUE_ITEM_PROMPT, "prompts");
}
