#include "engine/content.h"

segue_content *sgi_content_new(sgi_engine *engine)
{
    const sgi_mem *mem = sgi_engine_mem(engine);
    segue_content *content = sgi_zalloc(mem, sizeof *content);
    if (!content)
        return NULL;
    content->handle = (sgi_handle){SGI_MAGIC_CONTENT, engine};
    sgi_buf_init(&content->blocks, mem);
    sgi_buf_init(&content->ends, mem);
    sgi_buf_init(&content->structured, mem);
    return content;
}

void sgi_content_free(segue_content *content)
{
    const sgi_mem *mem = content->blocks.mem;
    content->handle.magic = SGI_MAGIC_FREED;
    sgi_buf_free(&content->blocks);
    sgi_buf_free(&content->ends);
    sgi_buf_free(&content->structured);
    sgi_release(mem, content, sizeof *content);
}

size_t sgi_content_count(const segue_content *content)
{
    return content->ends.len / sizeof(size_t);
}

static size_t block_end(const segue_content *content, size_t index)
{
    size_t end;
    memcpy(&end, content->ends.p + index * sizeof end, sizeof end);
    return end;
}

sgi_json sgi_content_block(const segue_content *content, size_t index)
{
    size_t start = index ? block_end(content, index - 1) + 1 : 0;
    return (sgi_json){content->blocks.p + start, block_end(content, index) - start};
}

static size_t begin_block(segue_content *content)
{
    size_t mark = content->blocks.len;
    if (mark)
        sgi_buf_add_char(&content->blocks, ',');
    return mark;
}

/* Keeps the new block, or all is as before. */
static segue_status end_block(segue_content *content, size_t mark)
{
    size_t end = content->blocks.len;
    size_t ends_mark = content->ends.len;
    sgi_buf_add(&content->ends, &end, sizeof end);
    if (!content->blocks.failed && !content->ends.failed)
        return SEGUE_OK;
    sgi_buf_cut(&content->blocks, mark);
    sgi_buf_cut(&content->ends, ends_mark);
    return SEGUE_E_NOMEM;
}

void sgi_text_block(sgi_buf *out, sgi_str text)
{
    sgi_buf_add_lit(out, "{\"type\":\"text\",\"text\":\"");
    sgi_json_escape(out, text);
    sgi_buf_add_lit(out, "\"}");
}

segue_status sgi_content_add_text(segue_content *content, sgi_str text)
{
    if (!sgi_utf8_valid(text, NULL))
        return SEGUE_E_INVALID;
    size_t mark = begin_block(content);
    sgi_text_block(&content->blocks, text);
    return end_block(content, mark);
}

segue_status sgi_content_add_blob(segue_content *content, const char *type,
                                  const char *mime_type, const void *data, size_t len)
{
    if (strcmp(type, "image") != 0 && strcmp(type, "audio") != 0)
        return SEGUE_E_INVALID;
    if (!sgi_utf8_valid(sgi_str_of(mime_type), NULL))
        return SEGUE_E_INVALID;
    size_t mark = begin_block(content);
    sgi_jw w = sgi_jw_on(&content->blocks);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "type", sgi_str_of(type));
    sgi_jw_key(&w, "data");
    sgi_buf_add_char(w.buf, '"');
    sgi_buf_add_base64(w.buf, data, len, false);
    sgi_buf_add_char(w.buf, '"');
    w.comma = true;
    sgi_jw_member_string(&w, "mimeType", sgi_str_of(mime_type));
    sgi_jw_close(&w, '}');
    return end_block(content, mark);
}

segue_status sgi_content_add_json(segue_content *content, const char *json, size_t len)
{
    sgi_json value;
    segue_status status =
        sgi_engine_json(content->handle.engine, json, len, &value, NULL);
    if (status != SEGUE_OK)
        return status;
    if (sgi_json_kind_of(sgi_json_get(value, "type")) != SGI_JSON_STRING)
        return SEGUE_E_INVALID;
    size_t mark = begin_block(content);
    sgi_buf_add_str(&content->blocks, value);
    return end_block(content, mark);
}

segue_status sgi_content_set_structured(segue_content *content, const char *json,
                                        size_t len)
{
    sgi_json value;
    segue_status status =
        sgi_engine_json(content->handle.engine, json, len, &value, NULL);
    if (status != SEGUE_OK)
        return status;
    sgi_buf fresh;
    sgi_buf_init(&fresh, content->structured.mem);
    sgi_buf_add_str(&fresh, value);
    if (fresh.failed)
        return SEGUE_E_NOMEM;
    sgi_buf_free(&content->structured);
    content->structured = fresh;
    return SEGUE_OK;
}
