/* Any JSON as a message. Its kind must be the one that R-0-1 and R-0-2 give, which this
 * file finds by member names. Ids have one form, which is stable. An error message can be
 * read back. */
#include "support/fuzz_input.h"
#include "wire/jsonrpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 9, len);
    return 0;
}

static void start_reader(sgi_json_reader *reader)
{
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = fixed_random};
    sgi_env env = {&sgi_mem_libc, &hooks};
    sgi_json_reader_init(reader, &env, SGI_JSON_MAX_BYTES, 64);
}

static bool read_object(sgi_json_reader *reader, sgi_str text, sgi_message *message)
{
    sgi_json_member members[SGI_MESSAGE_MEMBERS];
    size_t count;
    if (!sgi_json_read(reader, text, members, SGI_MESSAGE_MEMBERS, &count, NULL) ||
        sgi_json_kind_of(sgi_json_trim(text)) != SGI_JSON_OBJECT ||
        count > SGI_MESSAGE_MEMBERS)
        return false;
    sgi_message_classify(message, members, count);
    return true;
}

static bool is_same_span(sgi_json a, sgi_json b)
{
    return a.n == b.n && (a.n == 0 || a.p == b.p);
}

/* ---- the rules, by name ---- */

static bool is_usable_id(sgi_json id)
{
    int64_t number;
    return sgi_json_kind_of(id) == SGI_JSON_STRING || sgi_json_read_int(id, &number);
}

static sgi_message_kind expected_call(sgi_json whole)
{
    sgi_json id = sgi_json_get(whole, "id");
    sgi_json params = sgi_json_get(whole, "params");
    if (sgi_json_kind_of(sgi_json_get(whole, "method")) != SGI_JSON_STRING ||
        sgi_json_get(whole, "result").n || sgi_json_get(whole, "error").n ||
        (params.n && sgi_json_kind_of(params) != SGI_JSON_OBJECT))
        return SGI_MESSAGE_INVALID;
    if (!id.n)
        return SGI_MESSAGE_NOTIFICATION;
    return is_usable_id(id) ? SGI_MESSAGE_REQUEST : SGI_MESSAGE_INVALID;
}

static sgi_message_kind expected_response(sgi_json whole)
{
    sgi_json result = sgi_json_get(whole, "result");
    sgi_json error = sgi_json_get(whole, "error");
    int64_t code;
    if ((result.n == 0) == (error.n == 0))
        return SGI_MESSAGE_INVALID;
    if (result.n)
        return sgi_json_kind_of(result) == SGI_JSON_OBJECT &&
                       is_usable_id(sgi_json_get(whole, "id"))
                   ? SGI_MESSAGE_RESULT
                   : SGI_MESSAGE_INVALID;
    return sgi_json_kind_of(error) == SGI_JSON_OBJECT &&
                   sgi_json_read_int(sgi_json_get(error, "code"), &code)
               ? SGI_MESSAGE_ERROR
               : SGI_MESSAGE_INVALID;
}

static void check_sorted(sgi_json whole, const sgi_message *message)
{
    sgi_json id = sgi_json_get(whole, "id");
    sgi_message_kind kind = SGI_MESSAGE_INVALID;
    if (sgi_json_string_is(sgi_json_get(whole, "jsonrpc"), SGI_STR("2.0")))
        kind = sgi_json_get(whole, "method").n ? expected_call(whole)
                                               : expected_response(whole);
    fuzz_check(message->kind == kind);
    fuzz_check((message->problem != NULL) == (kind == SGI_MESSAGE_INVALID));
    fuzz_check(is_same_span(message->id, is_usable_id(id) ? id : (sgi_json){0}));
    if (kind == SGI_MESSAGE_REQUEST || kind == SGI_MESSAGE_NOTIFICATION) {
        fuzz_check(is_same_span(message->method, sgi_json_get(whole, "method")));
        fuzz_check(is_same_span(message->params, sgi_json_get(whole, "params")));
    }
    if (kind == SGI_MESSAGE_RESULT)
        fuzz_check(is_same_span(message->result, sgi_json_get(whole, "result")) &&
                   !message->error.n);
    if (kind == SGI_MESSAGE_ERROR)
        fuzz_check(is_same_span(message->error, sgi_json_get(whole, "error")) &&
                   !message->result.n);
}

/* ---- ids ---- */

static bool is_same_id(sgi_json a, sgi_json b)
{
    int64_t one, other;
    if (sgi_json_read_int(a, &one))
        return sgi_json_read_int(b, &other) && one == other;
    sgi_buf text;
    sgi_buf_init(&text, &sgi_mem_libc);
    sgi_json_decode(a, &text);
    sgi_str decoded = text.len ? sgi_buf_str(&text) : SGI_STR("");
    bool same = sgi_json_string_is(b, decoded);
    sgi_buf_free(&text);
    return same;
}

static void check_id(sgi_json_reader *reader, sgi_json id, sgi_buf *form)
{
    sgi_buf again;
    sgi_buf_init(&again, &sgi_mem_libc);
    sgi_id_write_canonical(id, form);
    fuzz_check(!form->failed);
    fuzz_check(sgi_json_read(reader, sgi_buf_str(form), NULL, 0, NULL, NULL));
    fuzz_check(is_usable_id(sgi_buf_str(form)));
    fuzz_check(is_same_id(id, sgi_buf_str(form)));
    sgi_id_write_canonical(sgi_buf_str(form), &again);
    fuzz_check(sgi_str_eq(sgi_buf_str(form), sgi_buf_str(&again)));
    sgi_buf_free(&again);
}

/* ---- errors ---- */

static void check_error(sgi_json_reader *reader, sgi_str id, sgi_str text, sgi_json data)
{
    sgi_buf out;
    sgi_message message;
    int64_t code;
    sgi_buf_init(&out, &sgi_mem_libc);
    sgi_write_rpc_error(&out, id, -32603, text, data);
    fuzz_check(!out.failed && !memchr(out.p, '\n', out.len));
    fuzz_check(read_object(reader, sgi_buf_str(&out), &message));
    fuzz_check(message.kind == SGI_MESSAGE_ERROR);
    fuzz_check(sgi_str_eq(message.id, id));
    fuzz_check(sgi_json_read_int(sgi_json_get(message.error, "code"), &code) &&
               code == -32603);
    fuzz_check(sgi_json_string_is(sgi_json_get(message.error, "message"), text));
    fuzz_check(sgi_str_eq(sgi_json_get(message.error, "data"), data));
    sgi_buf_free(&out);
}

/* A line from a peer holds no newline. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgi_str text = {(const char *)data, size};
    sgi_json_reader reader;
    sgi_message message;
    if (size && memchr(data, '\n', size))
        return 0;
    start_reader(&reader);
    if (read_object(&reader, text, &message)) {
        sgi_buf form, method;
        sgi_buf_init(&form, &sgi_mem_libc);
        sgi_buf_init(&method, &sgi_mem_libc);
        check_sorted(sgi_json_trim(text), &message);
        if (message.id.n)
            check_id(&reader, message.id, &form);
        if (message.method.n)
            sgi_json_decode(message.method, &method);
        check_error(&reader, sgi_buf_str(&form),
                    method.len ? sgi_buf_str(&method) : SGI_STR(""), message.params);
        sgi_buf_free(&form);
        sgi_buf_free(&method);
    }
    sgi_json_reader_free(&reader);
    return 0;
}
