/* Results of tools: isError, the text, and members of structuredContent. */
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* Tells whether a block is a text block. Without memory the text fails. */
static bool is_text(sgi_easy_text *text, const char *block, size_t len)
{
    const char *type;
    char name[sizeof "text"];
    size_t type_len, name_len = sizeof name;
    if (segue_json_get(block, len, "type", &type, &type_len) != SEGUE_OK)
        return false;
    segue_status status = segue_json_text(type, type_len, name, &name_len);
    text->failed |= status == SEGUE_E_NOMEM;
    return status == SEGUE_OK && name_len == sizeof name - 1 &&
           memcmp(name, "text", name_len) == 0;
}

/* Adds the text of a block, decoded. The JSON string is at least as long as its text. */
static void add_text_of(sgi_easy_text *text, const char *block, size_t len)
{
    const char *value;
    size_t value_len;
    if (segue_json_get(block, len, "text", &value, &value_len) != SEGUE_OK)
        return;
    size_t n = value_len + 1;
    char *decoded = malloc(n);
    segue_status status =
        decoded ? segue_json_text(value, value_len, decoded, &n) : SEGUE_E_NOMEM;
    if (status == SEGUE_OK)
        sgi_easy_add(text, decoded, n);
    text->failed |= status == SEGUE_E_NOMEM;
    free(decoded);
}

static bool is_object(const char *json, size_t len)
{
    size_t at = 0;
    if (!json)
        return false;
    if (len == SEGUE_TO_NUL)
        len = strlen(json);
    while (at < len && strchr(" \t\r\n", json[at]))
        at++;
    return at < len && json[at] == '{';
}

int32_t segue_result_is_error(const char *json, size_t len)
{
    const char *value;
    size_t value_len;
    int32_t is_error = 0;
    if (segue_json_get(json, len, "isError", &value, &value_len) == SEGUE_OK)
        segue_json_bool(value, value_len, &is_error);
    return is_error;
}

segue_status segue_result_text(const char *json, size_t len, char **text)
{
    sgi_easy_text made = {0};
    const char *content, *block;
    size_t content_len, block_len, at = 0;
    if (!text || !is_object(json, len))
        return SEGUE_E_INVALID;
    if (segue_json_get(json, len, "content", &content, &content_len) == SEGUE_OK)
        while (segue_json_next(content, content_len, &at, NULL, NULL, &block,
                               &block_len) == SEGUE_OK)
            if (is_text(&made, block, block_len))
                add_text_of(&made, block, block_len);
    return sgi_easy_give(&made, text);
}

segue_status segue_result_get(const char *json, size_t len, const char *name,
                              const char **value, size_t *value_len)
{
    const char *structured;
    size_t structured_len;
    if (!name || !value || !value_len)
        return SEGUE_E_INVALID;
    segue_status status =
        segue_json_get(json, len, "structuredContent", &structured, &structured_len);
    return status == SEGUE_OK
               ? segue_json_get(structured, structured_len, name, value, value_len)
               : status;
}
