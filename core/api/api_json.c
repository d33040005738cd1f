/* Functions that read and write JSON texts of the application. */
#include "api/guard.h"
#include "engine/error.h"
#include "wire/json_write.h"

segue_status segue_json_check(segue_runtime *runtime, const char *json, size_t len,
                              segue_error **error)
{
    len = sgi_given_len(json, len);
    sgi_json value;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_json_check, runtime);
    if (status == SEGUE_OK && !json)
        status = SEGUE_E_INVALID;
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    sgi_enter_runtime(runtime);
    status = sgi_engine_check_json(sgi_runtime_engine(runtime), json, len, &value, NULL);
    return sgi_leave_runtime(runtime, status, error);
}

segue_status segue_json_get(const char *json, size_t len, const char *name,
                            const char **value, size_t *value_len)
{
    len = sgi_given_len(json, len);
    if (!json || !name || !value || !value_len)
        return SEGUE_E_INVALID;
    sgi_json object = sgi_json_trim((sgi_str){json, len});
    sgi_json found = sgi_json_kind_of(object) == SGI_JSON_OBJECT
                         ? sgi_json_get(object, name)
                         : (sgi_json){0};
    if (!found.n)
        return SEGUE_E_NOT_FOUND;
    *value = found.p;
    *value_len = found.n;
    return SEGUE_OK;
}

static bool next_part(sgi_json json, size_t *at, sgi_json_member *member)
{
    sgi_json_kind kind = sgi_json_kind_of(json);
    member->key = (sgi_str){0};
    if (kind == SGI_JSON_OBJECT)
        return sgi_json_next_member(json, at, member);
    return kind == SGI_JSON_ARRAY && sgi_json_next_item(json, at, &member->value);
}

segue_status segue_json_next(const char *json, size_t len, size_t *at, const char **key,
                             size_t *key_len, const char **value, size_t *value_len)
{
    len = sgi_given_len(json, len);
    sgi_json_member member = {.value = {0}};
    if (!json || !at || !value || !value_len || !key != !key_len)
        return SEGUE_E_INVALID;
    if (!next_part(sgi_json_trim((sgi_str){json, len}), at, &member))
        return SEGUE_E_NOT_FOUND;
    if (key) {
        /* *key gets the name with its quotes */
        *key = member.key.p ? member.key.p - 1 : "";
        *key_len = member.key.p ? member.key.n + 2 : 0;
    }
    *value = member.value.p;
    *value_len = member.value.n;
    return SEGUE_OK;
}

segue_status segue_json_text(const char *json, size_t len, char *buf, size_t *buf_len)
{
    len = sgi_given_len(json, len);
    sgi_buf text;
    if (!json || !buf_len)
        return SEGUE_E_INVALID;
    sgi_buf_init(&text, &sgi_mem_libc);
    segue_status status = SEGUE_E_INVALID;
    if (sgi_json_decode(sgi_json_trim((sgi_str){json, len}), &text))
        status = text.failed ? SEGUE_E_NOMEM
                             : sgi_copy_text_out(sgi_buf_str(&text), buf, buf_len);
    sgi_buf_free(&text);
    return status;
}

segue_status segue_json_int(const char *json, size_t len, int64_t *value)
{
    len = sgi_given_len(json, len);
    int64_t number;
    if (!json || !value ||
        !sgi_json_read_int(sgi_json_trim((sgi_str){json, len}), &number))
        return SEGUE_E_INVALID;
    *value = number;
    return SEGUE_OK;
}

segue_status segue_json_number(const char *json, size_t len, double *value)
{
    double number;
    len = sgi_given_len(json, len);
    if (!json || !value ||
        !sgi_json_read_double(sgi_json_trim((sgi_str){json, len}), &number))
        return SEGUE_E_INVALID;
    *value = number;
    return SEGUE_OK;
}

segue_status segue_json_bool(const char *json, size_t len, int32_t *value)
{
    len = sgi_given_len(json, len);
    sgi_json_kind kind = json && value
                             ? sgi_json_kind_of(sgi_json_trim((sgi_str){json, len}))
                             : SGI_JSON_NULL;
    if (kind != SGI_JSON_TRUE && kind != SGI_JSON_FALSE)
        return SEGUE_E_INVALID;
    *value = kind == SGI_JSON_TRUE;
    return SEGUE_OK;
}

segue_status segue_json_quote(const char *text, size_t len, char *buf, size_t *buf_len)
{
    len = sgi_given_len(text, len);
    sgi_buf out;
    if ((!text && len) || !buf_len || !sgi_utf8_valid((sgi_str){text, len}, NULL))
        return SEGUE_E_INVALID;
    sgi_buf_init(&out, &sgi_mem_libc);
    sgi_jw w = sgi_jw_to(&out);
    sgi_jw_string(&w, (sgi_str){text, len});
    segue_status status =
        out.failed ? SEGUE_E_NOMEM : sgi_copy_text_out(sgi_buf_str(&out), buf, buf_len);
    sgi_buf_free(&out);
    return status;
}
