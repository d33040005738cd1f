/* The functions of the addon for segue_content. */
#include "addon.h"

#define CONTENT(name)                                                                    \
    segue_content *name = sgnode_unwrap(frame, frame->arg[0], SGNODE_CONTENT);           \
    if (!(name))                                                                         \
    return NULL

static napi_value content_new(sgnode_frame *frame)
{
    segue_content *content;
    sgnode_host *host;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime)
        return NULL;
    segue_status status = segue_content_new(runtime, &content);
    if (status != SEGUE_OK)
        return sgnode_throw(frame, status);
    return sgnode_wrap(frame->self, SGNODE_CONTENT, content, host);
}

static napi_value content_add_text(sgnode_frame *frame)
{
    const char *text;
    size_t len;
    CONTENT(content);
    if (!sgnode_view(frame, frame->arg[1], false, &text, &len))
        return NULL;
    return sgnode_done(frame, segue_content_add_text(content, text, len, &frame->error));
}

static napi_value content_add_blob(sgnode_frame *frame)
{
    const char *type, *mime_type, *data;
    size_t len;
    CONTENT(content);
    if (!sgnode_name(frame, frame->arg[1], false, &type) ||
        !sgnode_name(frame, frame->arg[2], false, &mime_type) ||
        !sgnode_view(frame, frame->arg[3], false, &data, &len))
        return NULL;
    return sgnode_done(frame, segue_content_add_blob(content, type, mime_type, data, len,
                                                     &frame->error));
}

static napi_value content_add_json(sgnode_frame *frame)
{
    const char *json;
    size_t len;
    CONTENT(content);
    if (!sgnode_view(frame, frame->arg[1], false, &json, &len))
        return NULL;
    return sgnode_done(frame, segue_content_add_json(content, json, len, &frame->error));
}

static napi_value content_add_resource_text(sgnode_frame *frame)
{
    const char *uri, *mime_type, *text;
    size_t len;
    CONTENT(content);
    if (!sgnode_name(frame, frame->arg[1], false, &uri) ||
        !sgnode_name(frame, frame->arg[2], true, &mime_type) ||
        !sgnode_view(frame, frame->arg[3], false, &text, &len))
        return NULL;
    return sgnode_done(frame, segue_content_add_resource_text(content, uri, mime_type,
                                                              text, len, &frame->error));
}

static napi_value content_add_resource_blob(sgnode_frame *frame)
{
    const char *uri, *mime_type, *data;
    size_t len;
    CONTENT(content);
    if (!sgnode_name(frame, frame->arg[1], false, &uri) ||
        !sgnode_name(frame, frame->arg[2], true, &mime_type) ||
        !sgnode_view(frame, frame->arg[3], false, &data, &len))
        return NULL;
    return sgnode_done(frame, segue_content_add_resource_blob(content, uri, mime_type,
                                                              data, len, &frame->error));
}

static napi_value content_set_role(sgnode_frame *frame)
{
    const char *role;
    CONTENT(content);
    if (!sgnode_name(frame, frame->arg[1], true, &role))
        return NULL;
    return sgnode_done(frame, segue_content_set_role(content, role));
}

static napi_value content_set_structured(sgnode_frame *frame)
{
    const char *json;
    size_t len;
    CONTENT(content);
    if (!sgnode_view(frame, frame->arg[1], false, &json, &len))
        return NULL;
    return sgnode_done(frame,
                       segue_content_set_structured(content, json, len, &frame->error));
}

static napi_value content_set_error(sgnode_frame *frame)
{
    bool is_error;
    CONTENT(content);
    if (!sgnode_flag(frame, frame->arg[1], &is_error))
        return NULL;
    return sgnode_done(frame, segue_content_set_error(content, is_error));
}

static napi_value content_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_CONTENT);
}

const sgnode_row sgnode_content_rows[] = {
    {"contentNew", content_new},
    {"contentAddText", content_add_text},
    {"contentAddBlob", content_add_blob},
    {"contentAddJson", content_add_json},
    {"contentAddResourceText", content_add_resource_text},
    {"contentAddResourceBlob", content_add_resource_blob},
    {"contentSetRole", content_set_role},
    {"contentSetStructured", content_set_structured},
    {"contentSetError", content_set_error},
    {"contentFree", content_free},
    {NULL, NULL},
};
