#include "wire/jsonrpc.h"

bool sgi_id_is_usable(sgi_json value)
{
    int64_t number;
    return sgi_json_kind_of(value) == SGI_JSON_STRING ||
           (sgi_json_kind_of(value) == SGI_JSON_NUMBER &&
            sgi_json_read_int(value, &number));
}

typedef struct parts {
    sgi_json jsonrpc, id, method, params, result, error;
} parts;

static bool is_called(const sgi_json_member *member, sgi_str name)
{
    return member->escaped ? sgi_json_key_is(member, name.p)
                           : sgi_str_eq(member->key, name);
}

static void pick_parts(parts *found, const sgi_json_member *members, size_t count)
{
    static const struct {
        sgi_str name;
        size_t offset;
    } known[] = {
        {SGI_STR_INIT("jsonrpc"), offsetof(parts, jsonrpc)},
        {SGI_STR_INIT("id"), offsetof(parts, id)},
        {SGI_STR_INIT("method"), offsetof(parts, method)},
        {SGI_STR_INIT("params"), offsetof(parts, params)},
        {SGI_STR_INIT("result"), offsetof(parts, result)},
        {SGI_STR_INIT("error"), offsetof(parts, error)},
    };
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (is_called(&members[i], known[k].name)) {
                *(sgi_json *)(void *)((char *)found + known[k].offset) = members[i].value;
                break;
            }
}

static const char *sort_call(sgi_message *message, const parts *found)
{
    if (sgi_json_kind_of(found->method) != SGI_JSON_STRING)
        return "method is not a string";
    if (found->result.n || found->error.n)
        return "a message has a method and also a result or error";
    if (found->params.n && sgi_json_kind_of(found->params) != SGI_JSON_OBJECT)
        return "params is not an object";
    message->method = found->method;
    message->params = found->params;
    if (!found->id.n)
        message->kind = SGI_MESSAGE_NOTIFICATION;
    else if (!message->id.n)
        return "id is neither a string nor an integer";
    else
        message->kind = SGI_MESSAGE_REQUEST;
    return NULL;
}

static const char *sort_response(sgi_message *message, const parts *found)
{
    int64_t code;
    if (found->result.n && found->error.n)
        return "a message has both a result and an error";
    if (!found->result.n && !found->error.n)
        return "a message has no method, result or error";
    if (found->result.n && sgi_json_kind_of(found->result) != SGI_JSON_OBJECT)
        return "result is not an object";
    if (found->error.n && !sgi_json_read_int(sgi_json_get(found->error, "code"), &code))
        return "error has no integer code";
    if (!message->id.n && found->result.n)
        return "a result has no id";
    message->result = found->result;
    message->error = found->error;
    message->kind = found->result.n ? SGI_MESSAGE_RESULT : SGI_MESSAGE_ERROR;
    return NULL;
}

bool sgi_message_read(sgi_message *message, sgi_json_reader *reader, sgi_str text,
                      sgi_json_member *members, size_t *count, sgi_json_error *error,
                      sgi_json_shapes *shapes)
{
    static const sgi_str names[SGI_MESSAGE_PARTS][2] = {
        {SGI_STR_INIT("params"), SGI_STR_INIT("result")},
        {SGI_STR_INIT("_meta"), SGI_STR_INIT("payload")}};
    sgi_json_part_names trail = {names, message->parts, SGI_MESSAGE_PARTS, shapes};
    return sgi_json_read_parts(reader, text, members, SGI_MESSAGE_MEMBERS, count, error,
                               &trail);
}

void sgi_message_classify(sgi_message *message, const sgi_json_member *members,
                          size_t count)
{
    parts found = {0};
    memset(message, 0, offsetof(sgi_message, parts));
    pick_parts(&found, members, count);
    if (sgi_id_is_usable(found.id))
        message->id = found.id;
    message->is_call = found.method.n > 0;
    message->is_response = !found.method.n && (found.result.n || found.error.n);
    if (!sgi_json_string_is(found.jsonrpc, SGI_STR("2.0")))
        message->problem = "jsonrpc is not \"2.0\"";
    else if (found.method.n)
        message->problem = sort_call(message, &found);
    else
        message->problem = sort_response(message, &found);
    if (message->problem)
        message->kind = SGI_MESSAGE_INVALID;
}

void sgi_message_read_truncated(sgi_message *message, sgi_json_reader *reader,
                                sgi_str beginning, const char *problem)
{
    sgi_json_member members[SGI_MESSAGE_MEMBERS];
    parts found = {0};
    size_t count =
        sgi_json_read_truncated(reader, beginning, members, SGI_MESSAGE_MEMBERS);
    for (size_t i = 0; i < count; i++)
        if (!members[i].value.n)
            /* the id was cut off; {} takes its place, because {} is not usable as an
             * id */
            members[i].value = SGI_STR("{}");
    pick_parts(&found, members, count);
    *message = (sgi_message){.kind = SGI_MESSAGE_INVALID,
                             .problem = problem,
                             .is_cut = true,
                             .is_call = found.method.n || found.params.n};
    message->is_response = !message->is_call && (found.result.n || found.error.n);
    if ((message->is_call || message->is_response) && sgi_id_is_usable(found.id))
        message->id = found.id;
}

void sgi_id_write_canonical(sgi_json id, sgi_buf *out)
{
    int64_t number;
    sgi_str text;
    if (sgi_json_read_int(id, &number)) {
        sgi_buf_add_int(out, number);
    } else if (sgi_json_plain_string(id, &text)) {
        sgi_buf_add_str(out, id);
    } else {
        sgi_buf decoded;
        sgi_buf_init(&decoded, out->mem);
        sgi_json_decode(id, &decoded);
        sgi_buf_add_char(out, '"');
        sgi_json_escape(out, sgi_buf_str(&decoded));
        sgi_buf_add_char(out, '"');
        out->failed |= decoded.failed;
        sgi_buf_free(&decoded);
    }
}

sgi_str sgi_method_text(sgi_json method, char room[SGI_NAME_MAX])
{
    sgi_str text;
    /* `room` can hold every name, so the buffer never grows */
    sgi_buf out = {.p = room, .cap = SGI_NAME_MAX};
    if (sgi_json_plain_string(method, &text))
        return text;
    if (method.n > SGI_NAME_MAX || !sgi_json_decode(method, &out) ||
        memchr(room, 0, out.len))
        return SGI_STR("");
    return sgi_buf_str(&out);
}

void sgi_write_error_object(sgi_jw *w, int32_t code, sgi_str message, sgi_json data)
{
    sgi_jw_open(w, '{');
    sgi_jw_member_int(w, "code", code);
    sgi_jw_member_string(w, "message", message);
    if (data.n)
        sgi_jw_member_raw(w, "data", data);
    sgi_jw_close(w, '}');
}

void sgi_write_rpc_error(sgi_buf *out, sgi_json id, int32_t code, sgi_str message,
                         sgi_json data)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "jsonrpc", SGI_STR("2.0"));
    if (id.n)
        sgi_jw_member_raw(&w, "id", id);
    sgi_jw_key(&w, "error");
    sgi_write_error_object(&w, code, message, data);
    sgi_jw_close(&w, '}');
}
