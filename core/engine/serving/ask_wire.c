/* The handler asks, and is answered, as if there were neither tasks nor revisions: what
 * is said of them is written here, and taken out again. */
#include "engine/serving/ask_wire.h"

#include "engine/dialect/response_modes.h"
#include "engine/dialect/tasks_2025.h"

void sgi_ask_write_params(sgi_jw *w, const sgi_op *op, const sgi_input *input)
{
    sgi_json params = {input->params, input->params_len};
    sgi_json_member member;
    sgi_buf related;
    for (size_t at = 0; sgi_json_next_member(params, &at, &member);) {
        if ((op->is_task && sgi_json_key_is(&member, "_meta")) ||
            sgi_json_key_is(&member, "task"))
            continue;
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, member.value);
    }
    if (!op->is_task)
        return;
    sgi_buf_init(&related, sgi_engine_mem(op->engine));
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    sgi_buf_add_str(w->buf, sgi_related_task(&related, op));
    w->comma = true;
    w->buf->failed |= related.failed;
    params = sgi_json_get(params, "_meta");
    for (size_t at = 0; sgi_json_kind_of(params) == SGI_JSON_OBJECT &&
                        sgi_json_next_member(params, &at, &member);) {
        if (sgi_json_key_is(&member, SGI_RELATED_TASK))
            continue;
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, member.value);
    }
    sgi_jw_close(w, '}');
    sgi_buf_free(&related);
}

bool sgi_ask_is_task(const sgi_op *op, const sgi_input *input, const sgi_place *where)
{
    uint32_t needs =
        !strcmp(input->method, sgi_call_sampling.method)      ? SGI_CAP_SAMPLING_TASK
        : !strcmp(input->method, sgi_call_elicitation.method) ? SGI_CAP_ELICITATION_TASK
                                                              : SGI_CAP_NOBODY;
    return op->server->options.question_ttl_ms > 0 && where->caps & needs;
}

void sgi_ask_write_task(sgi_jw *w, const sgi_op *op, const sgi_place *where)
{
    uint8_t modes = sgi_response_modes_of(op->server->dialects) & where->modes;
    sgi_jw_key(w, "task");
    sgi_jw_open(w, '{');
    sgi_jw_member_int(w, "ttl", op->server->options.question_ttl_ms);
    if (modes & ~(unsigned)SGI_MODE_TASK)
        sgi_response_modes_write(w, "responseModes", modes);
    sgi_jw_close(w, '}');
}

/* The members of an object but one; false when there are none. */
static bool write_but(sgi_jw *w, sgi_json object, const char *name)
{
    sgi_json_member member;
    bool any = false;
    for (size_t at = 0; sgi_json_next_member(object, &at, &member);) {
        if (sgi_json_key_is(&member, name))
            continue;
        any = true;
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, member.value);
    }
    return any;
}

sgi_json sgi_ask_clean_answer(sgi_json result, sgi_buf *out)
{
    sgi_json meta = sgi_json_get(result, "_meta");
    if (!sgi_json_get(meta, SGI_RELATED_TASK).n)
        return result;
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    write_but(&w, result, "_meta");
    size_t mark = out->len;
    sgi_jw_key(&w, "_meta");
    sgi_jw_open(&w, '{');
    bool any = write_but(&w, meta, SGI_RELATED_TASK);
    sgi_jw_close(&w, '}');
    if (!any)
        sgi_buf_cut(out, mark);
    sgi_jw_close(&w, '}');
    return sgi_buf_str(out);
}
