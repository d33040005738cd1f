/* A handler asks questions and gets answers in one form for all protocol versions,
 * without the members that depend on tasks or on the version. This file adds those
 * members to questions and removes them from answers. */
#include "engine/server/question_wire.h"

#include "engine/response_modes.h"
#include "engine/server/task_form.h"
#include "wire/json_copy.h"

void sgi_question_write_params(sgi_jw *w, const sgi_op *op, const sgi_op_question *input)
{
    sgi_json params = {input->params, input->params_len};
    sgi_buf related;
    sgi_jw_copy_members(w, params,
                        SGI_JSON_NAMES("task", sgi_op_is_task(op) ? "_meta" : NULL));
    if (!sgi_op_is_task(op))
        return;
    sgi_buf_init(&related, sgi_engine_mem(op->engine));
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    sgi_buf_add_str(w->buf, sgi_task_related_meta(&related, op));
    w->comma = true;
    w->buf->failed |= related.failed;
    sgi_jw_copy_members(w, sgi_json_get(params, "_meta"),
                        SGI_JSON_NAMES(SGI_RELATED_TASK));
    sgi_jw_close(w, '}');
    sgi_buf_free(&related);
}

bool sgi_question_is_sent_as_task(const sgi_op *op, const sgi_op_question *input,
                                  const sgi_question_target *where)
{
    uint32_t needs =
        !strcmp(input->method, sgi_call_sampling.method)      ? SGI_CAP_SAMPLING_TASK
        : !strcmp(input->method, sgi_call_elicitation.method) ? SGI_CAP_ELICITATION_TASK
                                                              : SGI_CAP_NOBODY;
    return sgi_op_server(op)->options.question_ttl_ms > 0 && where->caps & needs;
}

void sgi_question_write_task(sgi_jw *w, const sgi_op *op,
                             const sgi_question_target *where)
{
    uint8_t modes = sgi_response_modes_of(sgi_op_server(op)->dialects) & where->modes;
    sgi_jw_key(w, "task");
    sgi_jw_open(w, '{');
    sgi_jw_member_int(w, "ttl", sgi_op_server(op)->options.question_ttl_ms);
    if (modes & ~(unsigned)SGI_MODE_TASK)
        sgi_response_modes_write(w, "responseModes", modes);
    sgi_jw_close(w, '}');
}

sgi_json sgi_question_strip_task_members(sgi_json value, sgi_buf *out)
{
    sgi_json meta = sgi_json_get(value, "_meta");
    if (!sgi_json_get(meta, SGI_RELATED_TASK).n)
        return value;
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_copy_members(&w, value, SGI_JSON_NAMES("_meta"));
    size_t mark = out->len;
    sgi_jw_key(&w, "_meta");
    sgi_jw_open(&w, '{');
    bool any = sgi_jw_copy_members(&w, meta, SGI_JSON_NAMES(SGI_RELATED_TASK));
    sgi_jw_close(&w, '}');
    if (!any)
        sgi_buf_shorten(out, mark);
    sgi_jw_close(&w, '}');
    return sgi_buf_str(out);
}
