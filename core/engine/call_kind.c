#include "engine/call_kind.h"

const sgi_call_kind sgi_call_tool = {
    .method = "tools/call", .list = "content", .shape = SGI_SHAPE_BLOCK};

const sgi_call_kind sgi_call_resource = {
    .method = "resources/read",
    .list = "contents",
    .shape = SGI_SHAPE_CONTENTS,
    .ages = true};

const sgi_call_kind sgi_call_prompt = {
    .method = "prompts/get", .list = "messages", .shape = SGI_SHAPE_MESSAGE};

const sgi_call_kind sgi_call_completion = {
    .method = "completion/complete",
    .standard = {"completion", "{\"values\":[],\"hasMore\":false}"}};
