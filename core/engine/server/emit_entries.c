/* The parts of a result as entries of a list. */
#include "engine/server/emit.h"

#include "wire/json_copy.h"

#define SERVER_INFO "io.modelcontextprotocol/serverInfo"

bool sgi_emit_add_entry(const sgi_mem *mem, struct sgi_entry_list *list, int32_t kind,
                        sgi_str payload)
{
    if (payload.n > UINT32_MAX / 2)
        return false;
    sgi_entry *entry = sgi_entry_new(mem, kind, payload.p, payload.n);
    if (entry)
        TAILQ_INSERT_TAIL(list, entry, link);
    return entry != NULL;
}

bool sgi_emit_add_field(const sgi_mem *mem, struct sgi_entry_list *list, sgi_str name,
                        sgi_json value)
{
    sgi_buf payload;
    sgi_buf_init(&payload, mem);
    sgi_jw w = sgi_jw_to(&payload);
    sgi_jw_open(&w, '{');
    sgi_jw_key_str(&w, name);
    sgi_jw_raw(&w, value);
    sgi_jw_close(&w, '}');
    bool ok = !payload.failed &&
              sgi_emit_add_entry(mem, list, SGI_ENTRY_FIELDS, sgi_buf_str(&payload));
    sgi_buf_free(&payload);
    return ok;
}

bool sgi_emit_needs_place(const sgi_op *op)
{
    return op->head.result->blocks != op->head.next_seg - 1 - op->head.result->voided_seg;
}

void sgi_emit_write_place(sgi_buf *out, uint64_t place)
{
    sgi_buf_add_char(out, '[');
    sgi_buf_add_uint(out, place);
    sgi_buf_add_char(out, ',');
}

static bool add_placed(const sgi_mem *mem, struct sgi_entry_list *list, uint64_t place,
                       sgi_str block)
{
    sgi_buf payload;
    sgi_buf_init(&payload, mem);
    sgi_emit_write_place(&payload, place);
    sgi_buf_add_str(&payload, block);
    sgi_buf_add_char(&payload, ']');
    bool ok = !payload.failed &&
              sgi_emit_add_entry(mem, list, SGI_ENTRY_SEGMENT, sgi_buf_str(&payload));
    sgi_buf_free(&payload);
    return ok;
}

bool sgi_emit_add_block(const sgi_op *op, struct sgi_entry_list *list, size_t i,
                        sgi_str block)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    return sgi_emit_needs_place(op)
               ? add_placed(mem, list, op->head.result->blocks + i, block)
               : sgi_emit_add_entry(mem, list, SGI_ENTRY_SEGMENT, block);
}

bool sgi_emit_add_content(const sgi_op *op, struct sgi_entry_list *list,
                          const segue_content *content)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    for (size_t i = 0; i < sgi_content_block_count(content); i++)
        if (!sgi_emit_add_block(op, list, i, sgi_content_block(content, i)))
            return false;
    if (content->structured.len)
        return sgi_emit_add_field(mem, list, SGI_STR("structuredContent"),
                                  sgi_buf_str(&content->structured));
    return true;
}

bool sgi_emit_is_untold(const sgi_op *op, sgi_str name)
{
    return op->served->kind->ages && op->served->reply &&
           !sgi_facts(op->served->reply->version)->has_cache_hints &&
           (sgi_str_eq(name, SGI_STR("ttlMs")) ||
            sgi_str_eq(name, SGI_STR("cacheScope")));
}

bool sgi_emit_add_meta(const sgi_mem *mem, struct sgi_entry_list *list, sgi_json meta)
{
    sgi_buf text;
    if (!sgi_json_get(meta, SERVER_INFO).n && !sgi_json_get(meta, SGI_RELATED_TASK).n)
        return sgi_emit_add_field(mem, list, SGI_STR("_meta"), meta);
    sgi_buf_init(&text, mem);
    sgi_jw w = sgi_jw_to(&text);
    sgi_jw_open(&w, '{');
    bool some =
        sgi_jw_copy_members(&w, meta, SGI_JSON_NAMES(SERVER_INFO, SGI_RELATED_TASK));
    sgi_jw_close(&w, '}');
    bool ok = !text.failed && (!some || sgi_emit_add_field(mem, list, SGI_STR("_meta"),
                                                           sgi_buf_str(&text)));
    sgi_buf_free(&text);
    return ok;
}
