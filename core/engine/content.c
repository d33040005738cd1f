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

/* A content block that becomes a message stands in one. */
static bool is_wrapped(const segue_content *content, uint32_t shape)
{
    return content->role && shape == SGI_SHAPE_BLOCK;
}

static size_t begin_block(segue_content *content, uint32_t shape)
{
    size_t mark = content->blocks.len;
    if (mark)
        sgi_buf_add_char(&content->blocks, ',');
    if (is_wrapped(content, shape)) {
        sgi_buf_add_lit(&content->blocks, "{\"role\":\"");
        sgi_buf_add_str(&content->blocks, sgi_str_of(content->role));
        sgi_buf_add_lit(&content->blocks, "\",\"content\":");
    }
    return mark;
}

/* Keeps the new block, or all is as before. */
static segue_status end_block(segue_content *content, uint32_t shape, size_t mark)
{
    if (is_wrapped(content, shape))
        sgi_buf_add_char(&content->blocks, '}');
    size_t end = content->blocks.len;
    size_t ends_mark = content->ends.len;
    sgi_buf_add(&content->ends, &end, sizeof end);
    if (!content->blocks.failed && !content->ends.failed) {
        content->shapes |= is_wrapped(content, shape) ? SGI_SHAPE_MESSAGE : shape;
        return SEGUE_OK;
    }
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
    size_t mark = begin_block(content, SGI_SHAPE_BLOCK);
    sgi_text_block(&content->blocks, text);
    return end_block(content, SGI_SHAPE_BLOCK, mark);
}

static void write_base64(sgi_jw *w, const char *name, const void *data, size_t len)
{
    sgi_jw_key(w, name);
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_base64(w->buf, data, len, false);
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
}

segue_status sgi_content_add_blob(segue_content *content, const char *type,
                                  const char *mime_type, const void *data, size_t len)
{
    if (strcmp(type, "image") != 0 && strcmp(type, "audio") != 0)
        return SEGUE_E_INVALID;
    if (!sgi_utf8_valid(sgi_str_of(mime_type), NULL))
        return SEGUE_E_INVALID;
    size_t mark = begin_block(content, SGI_SHAPE_BLOCK);
    sgi_jw w = sgi_jw_on(&content->blocks);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "type", sgi_str_of(type));
    write_base64(&w, "data", data, len);
    sgi_jw_member_string(&w, "mimeType", sgi_str_of(mime_type));
    sgi_jw_close(&w, '}');
    return end_block(content, SGI_SHAPE_BLOCK, mark);
}

segue_status sgi_content_add_resource(segue_content *content, const char *uri,
                                      const char *mime_type, const char *member,
                                      sgi_str text, bool encode)
{
    if (!sgi_utf8_valid(sgi_str_of(uri), NULL) ||
        !sgi_utf8_valid(sgi_str_of(mime_type), NULL) ||
        (!encode && !sgi_utf8_valid(text, NULL)))
        return SEGUE_E_INVALID;
    size_t mark = begin_block(content, SGI_SHAPE_CONTENTS);
    sgi_jw w = sgi_jw_on(&content->blocks);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "uri", sgi_str_of(uri));
    if (mime_type)
        sgi_jw_member_string(&w, "mimeType", sgi_str_of(mime_type));
    if (encode)
        write_base64(&w, member, text.p, text.n);
    else
        sgi_jw_member_string(&w, member, text);
    sgi_jw_close(&w, '}');
    return end_block(content, SGI_SHAPE_CONTENTS, mark);
}

segue_status sgi_content_set_role(segue_content *content, const char *role)
{
    static const char *const roles[] = {"user", "assistant"};
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(role, roles[i]) != 0)
            continue;
        content->role = roles[i];
        return SEGUE_OK;
    }
    if (role)
        return SEGUE_E_INVALID;
    content->role = NULL;
    return SEGUE_OK;
}

bool sgi_content_fits(const segue_content *content, const sgi_call_kind *kind)
{
    bool is_tool = kind == &sgi_call_tool;
    return !(content->shapes & ~kind->shape) &&
           (is_tool || (!content->structured.len && !content->is_error));
}

static bool is_text(sgi_json object, const char *name)
{
    return sgi_json_kind_of(sgi_json_get(object, name)) == SGI_JSON_STRING;
}

/* 0 = of none. */
static uint32_t shape_of(sgi_json value)
{
    if (is_text(value, "type"))
        return SGI_SHAPE_BLOCK;
    if (is_text(value, "uri") && (is_text(value, "text") || is_text(value, "blob")))
        return SGI_SHAPE_CONTENTS;
    if (is_text(value, "role") && is_text(sgi_json_get(value, "content"), "type"))
        return SGI_SHAPE_MESSAGE;
    return 0;
}

segue_status sgi_content_add_json(segue_content *content, const char *json, size_t len)
{
    sgi_json value;
    segue_status status =
        sgi_engine_json(content->handle.engine, json, len, &value, NULL);
    if (status != SEGUE_OK)
        return status;
    uint32_t shape = shape_of(value);
    if (!shape)
        return SEGUE_E_INVALID;
    size_t mark = begin_block(content, shape);
    sgi_buf_add_str(&content->blocks, value);
    return end_block(content, shape, mark);
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
