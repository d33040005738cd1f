/* Answers tools/list, resources/list, resources/templates/list and prompts/list with one
 * page of the items of one type. */
#include "engine/server/call_request.h"
#include "engine/server/gather.h"
#include "engine/server/sight.h"
#include "wire/json_copy.h"

/* A cursor contains the order number of the last item on the page, so items that are
 * added or removed later cause neither gaps nor repeats. The cursor is sealed for its
 * list. If the page depends on the caller, the cursor is also sealed for the caller. */
#define CURSOR 8

static sgi_seal_purpose good_for(const sgi_inbound *in, const sgi_str *list)
{
    static const uint8_t anybody[SGI_DIGEST_SIZE];
    bool is_public = in->peer->server->options.list_scope == SEGUE_CACHE_PUBLIC;
    return (sgi_seal_purpose){SGI_SEAL_CURSOR,
                              is_public ? anybody : in->peer->who->digest, list, 1};
}

static void write_cursor(sgi_jw *w, const sgi_inbound *in, sgi_str list, uint64_t last)
{
    const sgi_seal *seal = &in->peer->server->seal;
    const sgi_seal_purpose subject = good_for(in, &list);
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
    const sgi_seal_purpose subject = good_for(in, &list);
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

/* Writes the members of an item. Before 2026-07-28, structured content had to be an
 * object, so older clients get no outputSchema that allows other values. */
static void write_members(sgi_jw *w, sgi_json json, bool modern_output,
                          bool bare_of_annotations)
{
    const char *except[3] = {NULL};
    size_t count = 0;
    if (modern_output)
        except[count++] = "outputSchema";
    if (bare_of_annotations)
        except[count++] = "annotations";
    sgi_jw_copy_members(w, json, except);
}

/* True when this client can get results of this tool in pieces while the results grow
 * (R-776-17). */
static bool is_streamed(const sgi_inbound *in, const sgi_item *item)
{
    return item->type == SEGUE_ITEM_TOOL && sgi_srv_hints_growing_results(in) &&
           item->options.flags & SEGUE_TOOL_INCREMENTAL;
}

/* Writes the member annotations with the application's annotations and the library's
 * streamingHint. If the application has set streamingHint itself, the application's value
 * is used. */
static void write_hint(sgi_jw *w, sgi_json annotations)
{
    sgi_jw_key(w, "annotations");
    sgi_jw_open(w, '{');
    sgi_jw_copy_members(w, annotations, NULL);
    if (!sgi_json_get(annotations, "streamingHint").n) {
        sgi_jw_key(w, "streamingHint");
        sgi_jw_bool(w, true);
    }
    sgi_jw_close(w, '}');
}

static void write_item(sgi_jw *w, const sgi_inbound *in, const sgi_item *item)
{
    bool any_output = sgi_facts(in->version)->has_any_output;
    const char *tells = sgi_srv_task_support(in, item->options.task);
    sgi_json json = {item->json, item->json_len};
    bool streamed = is_streamed(in, item);
    if (!tells && !streamed && (any_output || !item->has_modern_output)) {
        sgi_jw_raw(w, json);
        return;
    }
    sgi_jw_open(w, '{');
    write_members(w, json, item->has_modern_output && !any_output, streamed);
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

/* ---- pages ---- */

/* One page of a list: at most `left` items whose order numbers are above `after`. */
typedef struct page {
    /* The request of the page. The views into the message are cleared, because the
     * message is freed before the page. */
    sgi_inbound in;
    int32_t type;
    const char *member;
    uint64_t after;
    int32_t left;
    /* the item with the order number `after`; valid only if no item was removed since;
     * NULL = unknown */
    sgi_item *last;
    /* number of items that had been removed from the list when `last` was set */
    uint64_t removals;
    /* the items that the caller sees; NULL = all of them */
    const sgi_shown *shown;
} page;

static sgi_typed_items *items_of(const page *p)
{
    return sgi_items_of_type(p->in.peer->server, p->type);
}

static bool is_hidden(const page *p, const sgi_item *item)
{
    return item->options.visibility == SEGUE_SERVED_ONLY ||
           !sgi_shown_has(p->shown, item);
}

static sgi_item *next_shown(const page *p, const sgi_item *item)
{
    sgi_item *next = TAILQ_NEXT(item, link);
    while (next && is_hidden(p, next))
        next = TAILQ_NEXT(next, link);
    return next;
}

/* Returns the first item whose order number is above `after`. Each piece of a long page
 * calls this function, so the search starts at `last` when `last` is valid, and otherwise
 * at the beginning of the list. */
static sgi_item *first_behind(const page *p)
{
    const sgi_typed_items *list = items_of(p);
    sgi_item *item;
    if (p->last && p->removals == list->removals)
        return next_shown(p, p->last);
    TAILQ_FOREACH(item, &list->items, link) {
        SGI_WORK(sizeof item->link + sizeof item->order);
        if (item->order > p->after && !is_hidden(p, item))
            break;
    }
    return item;
}

/* Writes at most `most` items of the list, and stops when most_bytes are written. Returns
 * the number of written items. Sets *rest to the next item, or to NULL at the end of the
 * list. */
static int32_t write_items(page *p, sgi_jw *w, int32_t most, size_t most_bytes,
                           sgi_item **rest)
{
    size_t mark = w->buf->len;
    sgi_item *item = first_behind(p);
    int32_t count = 0;
    sgi_jw_key(w, p->member);
    sgi_jw_open(w, '[');
    for (; item && count < most && p->left && w->buf->len - mark < most_bytes; count++) {
        write_item(w, &p->in, item);
        p->after = item->order;
        p->last = item;
        p->left--;
        item = next_shown(p, item);
    }
    p->removals = items_of(p)->removals;
    sgi_jw_close(w, ']');
    *rest = item;
    return count;
}

/* True when the page has too many items or bytes for one piece. */
static bool is_long(const page *p)
{
    const sgi_item *item = first_behind(p);
    size_t bytes = 0;
    for (int32_t i = 0; item && i < p->left; i++, item = next_shown(p, item)) {
        if (i == SGI_GATHER_SEGMENTS || bytes >= SGI_GATHER_BYTES)
            return true;
        bytes += item->json_len;
    }
    return false;
}

static void answer_whole(const sgi_inbound *in, page *p)
{
    segue_server *server = in->peer->server;
    sgi_sending sending;
    sgi_item *rest;
    sgi_answer_begin_result(&sending, in, "complete");
    write_items(p, &sending.w, INT32_MAX, SIZE_MAX, &rest);
    if (rest)
        write_cursor(&sending.w, in, sgi_str_of(p->member), p->after);
    if (sgi_facts(in->version)->has_cache_hints) {
        sgi_freshness freshness = server->freshness;
        if (sgi_list_is_private(server, p->type))
            freshness.scope = SEGUE_CACHE_PRIVATE;
        sgi_freshness_write(&sending.w, freshness);
        sgi_write_server_info_meta(&sending, server);
    }
    sgi_send_end(&sending);
}

/* ---- pages in pieces ---- */

/* A long page is sent in several responses if the client allows it (PR 776, R-776-31).
 * The next response is written when the client has read enough. Each response contains
 * the items that exist when the response is written. */
typedef struct listing {
    sgi_output_source source;
    sgi_conn *conn; /* a counted reference */
    sgi_reply *reply;
    page page;
    sgi_shown *shown; /* what page.shown points to, and the listing owns */
    /* number of the next piece's first item; the items of a page are counted from 1 */
    int64_t next;
} listing;

static void free_listing(listing *l)
{
    sgi_conn *conn = l->conn;
    const sgi_mem *mem = sgi_engine_mem(conn->engine);
    sgi_output_source_remove(conn, &l->source);
    sgi_reply_close(l->reply);
    sgi_shown_free(mem, l->shown);
    sgi_free(mem, l, sizeof *l);
    sgi_conn_unref(conn);
}

static void listing_cancelled(sgi_reply *reply)
{
    free_listing(reply->user);
}

/* Writes _meta of a piece. Every piece except the last has hasMore. A piece that the
 * client may receive twice also has the number of its first item (C-9). */
static void write_piece_meta(const listing *l, sgi_jw *w, bool last, int32_t count)
{
    bool is_numbered = count && l->reply->peer->session;
    if (last && !is_numbered)
        return;
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    if (!last) {
        sgi_jw_key(w, "hasMore");
        sgi_jw_bool(w, true);
    }
    if (is_numbered)
        sgi_jw_member_int(w, "dev.segue/seq", l->next);
    sgi_jw_close(w, '}');
}

/* Sends one piece. Returns false when nothing is left to send; the listing is then freed
 * or about to be freed. */
static bool send_piece(listing *l)
{
    sgi_sending sending;
    sgi_item *rest;
    sgi_send_begin_response(&sending, l->conn, sgi_str_of(l->reply->id), false);
    int32_t count =
        write_items(&l->page, &sending.w, SGI_GATHER_SEGMENTS, SGI_GATHER_BYTES, &rest);
    bool last = !rest || !l->page.left;
    if (last && rest)
        write_cursor(&sending.w, &l->page.in, sgi_str_of(l->page.member), l->page.after);
    write_piece_meta(l, &sending.w, last, count);
    sending.last = last;
    l->next += count;
    if (!sgi_send_end(&sending))
        /* the conversation closes, and its callback `lost` frees the listing */
        return false;
    if (last)
        free_listing(l);
    return !last;
}

static bool fill_listing(sgi_output_source *source, size_t room)
{
    listing *l = SGI_OWNER(source, listing, source);
    sgi_conn *conn = l->conn;
    size_t mark = conn->out.len;
    bool more = true;
    sgi_conn_ref(conn);
    while (more && conn->out.len - mark < room)
        more = send_piece(l);
    sgi_conn_unref(conn);
    return more;
}

/* Begins to answer in pieces. The first piece is sent at once, because over HTTP a source
 * can send only after a first message has decided the form of the response. */
static void answer_in_pieces(const sgi_inbound *in, const page *p)
{
    sgi_reply *reply = sgi_reply_open(in, false);
    if (!reply)
        return;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    sgi_shown *shown;
    listing *l = sgi_shown_copy(mem, p->shown, &shown) ? sgi_alloc(mem, sizeof *l) : NULL;
    if (!l) {
        sgi_shown_free(mem, shown);
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                        (sgi_json){0});
        sgi_reply_close(reply);
        return;
    }
    *l = (listing){.source.fill = fill_listing,
                   .conn = in->peer->conn,
                   .reply = reply,
                   .page = *p,
                   .shown = shown,
                   .next = 1};
    l->page.shown = shown;
    sgi_conn_ref(l->conn);
    reply->user = l;
    reply->cancelled = listing_cancelled;
    if (send_piece(l))
        sgi_output_source_queue(l->conn, &l->source);
}

static void list(const sgi_inbound *in, int32_t type, const char *member,
                 void (*again)(const sgi_inbound *in))
{
    page p = {.in = {.peer = in->peer, .version = in->version, .caps = in->caps},
              .type = type,
              .member = member,
              .left = in->peer->server->options.page_size,
              .shown = in->shown};
    if (!read_cursor(in, sgi_str_of(member), &p.after))
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "Invalid cursor", NULL);
    else if (!sgi_list_is_decided(in, type, again))
        return;
    else if (sgi_request_allows_several_responses(in) && is_long(&p))
        answer_in_pieces(in, &p);
    else
        answer_whole(in, &p);
}

void sgi_tools_list(const sgi_inbound *in)
{
    list(in, SEGUE_ITEM_TOOL, "tools", sgi_tools_list);
}

void sgi_resources_list(const sgi_inbound *in)
{
    list(in, SEGUE_ITEM_RESOURCE, "resources", sgi_resources_list);
}

void sgi_templates_list(const sgi_inbound *in)
{
    list(in, SEGUE_ITEM_RESOURCE_TEMPLATE, "resourceTemplates", sgi_templates_list);
}

void sgi_prompts_list(const sgi_inbound *in)
{
    list(in, SEGUE_ITEM_PROMPT, "prompts", sgi_prompts_list);
}
