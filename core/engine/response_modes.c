#include "engine/response_modes.h"

#include "engine/negotiate.h"

static const struct {
    const char *name;
    uint8_t mode;
} words[] = {
    {"task", SGI_MODE_TASK},
    {"immediate", SGI_MODE_IMMEDIATE},
    {"streaming", SGI_MODE_STREAMING},
};

uint8_t sgi_response_modes_of(uint32_t dialects)
{
    uint8_t modes = SGI_MODE_TASK;
    if (dialects & SGI_DIALECT_S)
        modes |= SGI_MODE_STREAMING;
    if (dialects & SGI_DIALECT_I)
        modes |= SGI_MODE_IMMEDIATE;
    return modes;
}

static uint8_t mode_of(sgi_json word)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sgi_json_string_is(word, sgi_str_of(words[i].name)))
            return words[i].mode;
    return SGI_MODE_OTHER;
}

bool sgi_response_modes_read(sgi_json list, uint8_t *modes)
{
    sgi_json word;
    *modes = 0;
    if (!list.n)
        return true;
    if (sgi_json_kind_of(list) != SGI_JSON_ARRAY)
        return false;
    for (size_t at = 0; sgi_json_next_item(list, &at, &word);) {
        if (sgi_json_kind_of(word) != SGI_JSON_STRING)
            return false;
        *modes |= mode_of(word);
    }
    return true;
}

const char *sgi_response_mode_name(uint8_t mode)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mode == words[i].mode)
            return words[i].name;
    return "";
}

void sgi_response_modes_write(sgi_jw *w, const char *name, uint8_t modes)
{
    sgi_jw_key(w, name);
    sgi_jw_open(w, '[');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (modes & words[i].mode)
            sgi_jw_string(w, sgi_str_of(words[i].name));
    sgi_jw_close(w, ']');
}

sgi_response_form sgi_response_form_decide(uint8_t effective, bool ready,
                                           bool incremental)
{
    if (effective & SGI_MODE_IMMEDIATE && ready)
        return SGI_FORM_PLAIN;
    if (!(effective & SGI_MODE_STREAMING))
        return SGI_FORM_TASK;
    if (ready || incremental)
        return SGI_FORM_STREAM;
    /* The result is not ready, and the tool does not make its result in pieces. With
     * IMMEDIATE, the response is a task, so that the client need not keep the request
     * open until the end. Without IMMEDIATE, all segments are sent at the end of the
     * stream. */
    return effective & SGI_MODE_IMMEDIATE ? SGI_FORM_TASK : SGI_FORM_AT_END;
}
