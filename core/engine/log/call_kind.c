#include "engine/log/call_kind.h"

const sgi_call_kind sgi_call_tool = {
    .method = "tools/call", .list = "content", .shape = SGI_SHAPE_BLOCK};

const sgi_call_kind sgi_call_resource = {.method = "resources/read",
                                         .list = "contents",
                                         .shape = SGI_SHAPE_CONTENTS,
                                         .ages = true};

const sgi_call_kind sgi_call_prompt = {
    .method = "prompts/get", .list = "messages", .shape = SGI_SHAPE_MESSAGE};

const sgi_call_kind sgi_call_completion = {
    .method = "completion/complete",
    .standard = {"completion", "{\"values\":[],\"hasMore\":false}"}};

const sgi_call_kind sgi_call_list = {.method = ""};

const sgi_call_kind sgi_call_sampling = {
    .method = "sampling/createMessage",
    .list = "content",
    .shape = SGI_SHAPE_BLOCK,
    .opening = "{\"role\":\"assistant\",\"model\":\"unknown\"}",
    .is_message = true};

const sgi_call_kind sgi_call_elicitation = {.method = "elicitation/create",
                                            .opening = "{\"action\":\"cancel\"}"};

const sgi_call_kind *sgi_question_kind(sgi_str method)
{
    static const sgi_call_kind *const kinds[] = {&sgi_call_sampling,
                                                 &sgi_call_elicitation};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (sgi_str_eq(sgi_str_of(kinds[i]->method), method))
            return kinds[i];
    return NULL;
}

const char *sgi_call_kind_shape_text(const sgi_call_kind *kind)
{
    switch (kind->shape) {
    case SGI_SHAPE_BLOCK:
        return "content blocks";
    case SGI_SHAPE_CONTENTS:
        return "contents of resources (uri, and text or blob)";
    case SGI_SHAPE_MESSAGE:
        return "messages (role and a content block)";
    default:
        return "no list";
    }
}
