#include "engine/server/content.h"

#include <stdarg.h>
#include <stdio.h>

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
    sgi_free(mem, content, sizeof *content);
}

size_t sgi_content_block_count(const segue_content *content)
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

__attribute__((format(printf, 2, 3))) static segue_status refuse(segue_content *content,
                                                                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(content->refusal, sizeof content->refusal, format, args);
    va_end(args);
    return SEGUE_E_INVALID;
}

static segue_status check_text(segue_content *content, const char *what, sgi_str text)
{
    size_t at = 0;
    return sgi_utf8_valid(text, &at)
               ? SEGUE_OK
               : refuse(content, "%s is not UTF-8 at byte %zu", what, at);
}

/* True when the new block has to be wrapped in a message of a prompt. */
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

/* Completes the new block. On failure, removes the block, so that the content is as
 * before. */
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
    sgi_buf_truncate(&content->blocks, mark);
    sgi_buf_truncate(&content->ends, ends_mark);
    return SEGUE_E_NOMEM;
}

void sgi_write_text_block(sgi_buf *out, sgi_str text)
{
    sgi_buf_add_lit(out, "{\"type\":\"text\",\"text\":\"");
    sgi_json_escape(out, text);
    sgi_buf_add_lit(out, "\"}");
}

segue_status sgi_content_add_text(segue_content *content, sgi_str text)
{
    segue_status status = check_text(content, "the text", text);
    if (status != SEGUE_OK)
        return status;
    size_t mark = begin_block(content, SGI_SHAPE_BLOCK);
    sgi_write_text_block(&content->blocks, text);
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
        return refuse(content, "the type has to be \"image\" or \"audio\"");
    segue_status status = check_text(content, "the MIME type", sgi_str_of(mime_type));
    if (status != SEGUE_OK)
        return status;
    size_t mark = begin_block(content, SGI_SHAPE_BLOCK);
    sgi_jw w = sgi_jw_to(&content->blocks);
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
    segue_status status = check_text(content, "the URI", sgi_str_of(uri));
    if (status == SEGUE_OK)
        status = check_text(content, "the MIME type", sgi_str_of(mime_type));
    if (status == SEGUE_OK && !encode)
        status = check_text(content, "the text", text);
    if (status != SEGUE_OK)
        return status;
    size_t mark = begin_block(content, SGI_SHAPE_CONTENTS);
    sgi_jw w = sgi_jw_to(&content->blocks);
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

static bool is_contents(sgi_json value)
{
    return is_text(value, "uri") && (is_text(value, "text") || is_text(value, "blob"));
}

/* The members that the schema requires in blocks of the known types. A block of another
 * type is sent unchanged (AS-26). */
enum member_kind { MEMBER_TEXT = 0, MEMBER_OBJECT, MEMBER_LIST, MEMBER_CONTENTS };

static const char *const member_kinds[] = {
    "a string", "an object", "an array",
    "an object with \"uri\" and \"text\" or \"blob\", all strings"};

typedef struct block_member {
    const char *type;
    const char *name;
    enum member_kind kind;
} block_member;

static const block_member block_members[] = {
    {"text", "text", MEMBER_TEXT},           {"image", "data", MEMBER_TEXT},
    {"image", "mimeType", MEMBER_TEXT},      {"audio", "data", MEMBER_TEXT},
    {"audio", "mimeType", MEMBER_TEXT},      {"resource_link", "uri", MEMBER_TEXT},
    {"resource_link", "name", MEMBER_TEXT},  {"resource", "resource", MEMBER_CONTENTS},
    {"tool_use", "id", MEMBER_TEXT},         {"tool_use", "name", MEMBER_TEXT},
    {"tool_use", "input", MEMBER_OBJECT},    {"tool_result", "toolUseId", MEMBER_TEXT},
    {"tool_result", "content", MEMBER_LIST},
};

static bool has_block_member(sgi_json block, const block_member *member)
{
    sgi_json value = sgi_json_get(block, member->name);
    switch (member->kind) {
    case MEMBER_OBJECT:
        return sgi_json_kind_of(value) == SGI_JSON_OBJECT;
    case MEMBER_LIST:
        return sgi_json_kind_of(value) == SGI_JSON_ARRAY;
    case MEMBER_CONTENTS:
        return is_contents(value);
    default:
        return sgi_json_kind_of(value) == SGI_JSON_STRING;
    }
}

static segue_status check_block(segue_content *content, sgi_json block)
{
    sgi_json type = sgi_json_get(block, "type");
    for (size_t i = 0; i < sizeof block_members / sizeof *block_members; i++) {
        const block_member *member = &block_members[i];
        if (sgi_json_string_is(type, sgi_str_of(member->type)) &&
            !has_block_member(block, member))
            return refuse(content, "a block of type \"%s\" needs a member \"%s\", %s",
                          member->type, member->name, member_kinds[member->kind]);
    }
    return SEGUE_OK;
}

/* Checks a JSON value from the application and sets *shape to the form of the value: a
 * block, contents of a resource, or a message of a prompt. */
static segue_status check_item(segue_content *content, sgi_json value, uint32_t *shape)
{
    sgi_json inner = sgi_json_get(value, "content");
    if (is_text(value, "type")) {
        *shape = SGI_SHAPE_BLOCK;
        return check_block(content, value);
    }
    if (is_contents(value)) {
        *shape = SGI_SHAPE_CONTENTS;
        return SEGUE_OK;
    }
    if (is_text(value, "role") && is_text(inner, "type")) {
        *shape = SGI_SHAPE_MESSAGE;
        return check_block(content, inner);
    }
    return refuse(
        content,
        "the value is not valid content: it needs \"type\" (a string), or \"uri\" "
        "with \"text\" or \"blob\", or \"role\" with a block in \"content\"");
}

segue_status sgi_content_add_json(segue_content *content, const char *json, size_t len)
{
    sgi_json value;
    uint32_t shape = 0;
    segue_status status =
        sgi_engine_check_json(content->handle.engine, json, len, &value, NULL);
    if (status == SEGUE_OK)
        status = check_item(content, value, &shape);
    if (status != SEGUE_OK)
        return status;
    size_t mark = begin_block(content, shape);
    sgi_buf_add_str(&content->blocks, value);
    return end_block(content, shape, mark);
}

segue_status sgi_content_set_structured(segue_content *content, const char *json,
                                        size_t len)
{
    sgi_json value;
    segue_status status =
        sgi_engine_check_json(content->handle.engine, json, len, &value, NULL);
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
