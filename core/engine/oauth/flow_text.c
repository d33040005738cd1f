/* The array of a flow's texts, and reading the JSON of servers into these texts. Servers
 * are not trusted, so only visible ASCII text is stored and shown. When a text is
 * emptied, a failed allocation of its old value is noted, so that no failure is
 * missed. */
#include "engine/oauth/flow_state.h"

#include <stdio.h>

/* ---- the texts ---- */

sgi_buf *sgi_flow_text_begin(sgi_flow *flow, sgi_flow_text which)
{
    sgi_buf *text = &flow->text[which];
    flow->starved |= text->failed;
    sgi_buf_reset(text, SIZE_MAX);
    return text;
}

void sgi_flow_text_set(sgi_flow *flow, sgi_flow_text which, sgi_str value)
{
    sgi_buf_add_str(sgi_flow_text_begin(flow, which), value);
}

void sgi_flow_text_clear(sgi_flow *flow, sgi_flow_text which)
{
    sgi_flow_text_begin(flow, which);
}

bool sgi_flow_is_out_of_memory(sgi_flow *flow)
{
    bool starved = flow->starved;
    for (size_t i = 0; i < SGI_FLOW_TEXTS; i++)
        starved |= flow->text[i].failed;
    if (starved) {
        /* the failed allocation may have left these texts incomplete, so they are
         * dropped */
        sgi_buf_reset(&flow->text[SGI_FT_KNOWN], SIZE_MAX);
        sgi_buf_reset(&flow->text[SGI_FT_CLIENT_ID], SIZE_MAX);
        flow->status = SEGUE_E_NOMEM;
        snprintf(flow->why, sizeof flow->why, "out of memory");
        sgi_flow_finish(flow);
    }
    return starved;
}

const char *sgi_flow_printable(sgi_str text, char shown[SGI_FLOW_SHOWN + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < text.n && n < SGI_FLOW_SHOWN; i++)
        if (text.p[i] >= ' ' && text.p[i] <= '~')
            shown[n++] = text.p[i];
    shown[n] = 0;
    return shown;
}

/* ---- reading JSON of servers ---- */

bool sgi_flow_parse_object(sgi_flow *flow, sgi_str body, sgi_json *object)
{
    sgi_json_error fault;
    segue_status status =
        sgi_engine_check_json(flow->engine, body.p, body.n, object, &fault);
    flow->starved |= status == SEGUE_E_NOMEM;
    return status == SEGUE_OK && sgi_json_kind_of(*object) == SGI_JSON_OBJECT;
}

bool sgi_flow_read_member(sgi_flow *flow, sgi_json object, const char *name,
                          sgi_flow_text which)
{
    sgi_json value = sgi_json_get(object, name);
    sgi_buf *text = sgi_flow_text_begin(flow, which);
    if (sgi_json_kind_of(value) == SGI_JSON_NONE ||
        sgi_json_kind_of(value) == SGI_JSON_NULL)
        return true;
    bool fits = sgi_json_decode(value, text);
    for (size_t i = 0; fits && i < text->len; i++)
        fits = text->p[i] >= ' ' && text->p[i] <= '~';
    if (!fits)
        sgi_flow_text_clear(flow, which);
    return fits;
}

bool sgi_flow_error_is(sgi_flow *flow, sgi_str body, const char *code)
{
    sgi_json object;
    return sgi_flow_parse_object(flow, body, &object) &&
           sgi_json_string_is(sgi_json_get(object, "error"), sgi_str_of(code));
}

bool sgi_flow_failure_is_temporary(sgi_flow *flow, int32_t status, sgi_str body)
{
    return status == 408 || status == 429 || status >= 500 ||
           (status >= 400 && (sgi_flow_error_is(flow, body, "temporarily_unavailable") ||
                              sgi_flow_error_is(flow, body, "server_error")));
}

void sgi_flow_fail_by_answer(sgi_flow *flow, const char *what, int32_t status,
                             sgi_str body)
{
    sgi_json object;
    char error[SGI_FLOW_SHOWN + 1] = "", text[SGI_FLOW_SHOWN + 1] = "";
    if (sgi_flow_parse_object(flow, body, &object)) {
        if (sgi_flow_read_member(flow, object, "error", SGI_FT_SCRATCH))
            sgi_flow_printable(sgi_flow_text_of(flow, SGI_FT_SCRATCH), error);
        if (sgi_flow_read_member(flow, object, "error_description", SGI_FT_SCRATCH))
            sgi_flow_printable(sgi_flow_text_of(flow, SGI_FT_SCRATCH), text);
    }
    if (sgi_flow_failure_is_temporary(flow, status, body))
        sgi_flow_fail_temporarily(flow, "%s was answered with HTTP status %d%s%s", what,
                                  (int)status, *error ? ": " : "", error);
    else if (*error)
        sgi_flow_fail(flow, "%s was refused: %s%s%s", what, error, *text ? ": " : "",
                      text);
    else
        sgi_flow_fail(flow, "%s was answered with HTTP status %d", what, (int)status);
}
