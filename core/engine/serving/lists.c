/* tools/list, resources/list, resources/templates/list and prompts/list: one page of the
 * items of one type. */
#include "engine/dialect/dialect.h"

/* A cursor is the order number of the last item shown; one that was removed meanwhile
 * makes no hole and no repeat. It is sealed: good for its list, and for who asked unless
 * anybody may be given the page. */
#define CURSOR 8

static sgi_sealed_for good_for(const sgi_inbound *in, const sgi_str *list)
{
    static const uint8_t anybody[SGI_DIGEST_SIZE];
    bool is_public = in->peer->server->options.list_scope == SEGUE_CACHE_PUBLIC;
    return (sgi_sealed_for){SGI_SEAL_CURSOR, is_public ? anybody : in->peer->who->digest,
                            list, 1};
}

static void write_cursor(sgi_jw *w, const sgi_inbound *in, sgi_str list, uint64_t last)
{
    const sgi_seal *seal = &in->peer->server->seal;
    const sgi_sealed_for subject = good_for(in, &list);
    char bytes[CURSOR];
    for (size_t i = 0; i < CURSOR; i++)
        bytes[i] = (char)(uint8_t)(last >> (56 - 8 * i));
    sgi_jw_key(w, "nextCursor");
    sgi_buf_add_char(w->buf, '"');
    sgi_seal_write(seal, &subject, 0, (sgi_str){bytes, CURSOR}, w->buf);
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
}

static bool read_cursor(const sgi_inbound *in, sgi_str list, uint64_t *after)
{
    const sgi_sealed_for subject = good_for(in, &list);
    sgi_json cursor = sgi_json_get(in->params, "cursor");
    sgi_str text;
    sgi_buf bytes;
    *after = 0;
    if (!cursor.n)
        return true;
    if (!sgi_json_plain_string(cursor, &text) || text.n > 256)
        return false;
    sgi_buf_init(&bytes, sgi_engine_mem(in->peer->server->engine));
    bool ok =
        sgi_seal_open(&in->peer->server->seal, &subject, text, &bytes) == SEGUE_OK &&
        bytes.len == CURSOR;
    for (size_t i = 0; ok && i < CURSOR; i++)
        *after = *after << 8 | (uint8_t)bytes.p[i];
    sgi_buf_free(&bytes);
    return ok;
}

/* Before 2026-07-28 structured content was an object, and no outputSchema says anything
 * else. */
static void write_members(sgi_jw *w, sgi_json json, bool modern_output,
                          bool bare_of_annotations)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(json, &at, &member);) {
        if ((modern_output && sgi_json_key_is(&member, "outputSchema")) ||
            (bare_of_annotations && sgi_json_key_is(&member, "annotations")))
            continue;
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, member.value);
    }
}

/* 2025-11-25 has a tool say whether it runs as a task; who asks for one without being
 * told so is refused. In the draft after it, a tool says that it may (R-2557-58). What
 * the application wrote there was taken out (registry.c). */
static const char *task_support(const sgi_inbound *in, const sgi_item *item)
{
    int32_t policy = item->options.task;
    if (policy == SEGUE_TASK_NEVER)
        return NULL;
    if (sgi_tasks_2557_are_for(in->peer, in->version))
        return "true";
    if (!sgi_tasks_2025_are_for(in->peer, in->version))
        return NULL;
    return policy == SEGUE_TASK_MAY ? "\"optional\"" : "\"required\"";
}

/* Will a call of it be seen to grow by this client (R-776-17)? */
static bool is_streamed(const sgi_inbound *in, const sgi_item *item)
{
    return item->type == SEGUE_ITEM_TOOL && sgi_version_is_modern(in->version) &&
           in->caps & SGI_CAP_PARTIAL && in->peer->server->dialects & SGI_DIALECT_PN &&
           item->options.flags & SEGUE_TOOL_INCREMENTAL;
}

/* The application's annotations, and what it said itself wins. */
static void write_hint(sgi_jw *w, sgi_json annotations)
{
    sgi_json_member member;
    bool said = false;
    sgi_jw_key(w, "annotations");
    sgi_jw_open(w, '{');
    for (size_t at = 0;
         annotations.n && sgi_json_next_member(annotations, &at, &member);) {
        said |= sgi_json_key_is(&member, "streamingHint");
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, member.value);
    }
    if (!said) {
        sgi_jw_key(w, "streamingHint");
        sgi_jw_bool(w, true);
    }
    sgi_jw_close(w, '}');
}

static void write_item(sgi_jw *w, const sgi_inbound *in, const sgi_item *item)
{
    bool modern = sgi_version_is_modern(in->version);
    const char *tells = task_support(in, item);
    sgi_json json = {item->json, item->json_len};
    bool streamed = is_streamed(in, item);
    if (!tells && !streamed && (modern || !item->has_modern_output)) {
        sgi_jw_raw(w, json);
        return;
    }
    sgi_jw_open(w, '{');
    write_members(w, json, item->has_modern_output && !modern, streamed);
    if (streamed)
        write_hint(w, sgi_json_get(json, "annotations"));
    if (tells) {
        sgi_jw_key(w, "execution");
        sgi_jw_open(w, '{');
        sgi_jw_member_raw(w, "taskSupport", sgi_str_of(tells));
        sgi_jw_close(w, '}');
    }
    sgi_jw_close(w, '}');
}

/* Writes the items behind `after`, as many as a page has. *last: the order number of the
 * last one, when there are more; else 0. */
static void write_page(sgi_jw *w, const sgi_inbound *in, int32_t type, uint64_t after,
                       uint64_t *last)
{
    segue_server *server = in->peer->server;
    uint64_t shown_last = 0;
    int32_t shown = 0;
    sgi_item *item;
    TAILQ_FOREACH(item, &sgi_shelf_of(server, type)->items, link) {
        if (item->order <= after)
            continue;
        if (shown == server->options.page_size)
            break;
        write_item(w, in, item);
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
    if (!read_cursor(in, sgi_str_of(member), &after)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "Invalid cursor", NULL);
        return;
    }
    sgi_answer_result(&sending, in, "complete");
    sgi_jw_key(&sending.w, member);
    sgi_jw_open(&sending.w, '[');
    write_page(&sending.w, in, type, after, &last);
    sgi_jw_close(&sending.w, ']');
    if (last)
        write_cursor(&sending.w, in, sgi_str_of(member), last);
    if (sgi_version_is_modern(in->version)) {
        sgi_freshness_write(&sending.w, server->freshness);
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
