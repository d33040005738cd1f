#include "engine/server/content.h"
#include "engine/dialect/tasks_2025/tasks_2025.h"

void sgi_segment_write(sgi_buf *out, uint64_t number, sgi_str block)
{
    sgi_buf_add_lit(out, "{\"seqNr\":");
    sgi_buf_add_uint(out, number);
    sgi_buf_add_char(out, ',');
    /* The "{" of the block is left out, because the caller's object is open. The comma
     * before the block's members is always right, because every block has the member
     * "type". */
    sgi_buf_add(out, block.p + 1, block.n - 1);
}

void sgi_segment_write_error(sgi_buf *out, const sgi_op *op)
{
    sgi_json error = {op->head.final_data, op->head.final_len};
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "type", SGI_STR("text"));
    sgi_jw_member_raw(&w, "text", sgi_json_get(error, "message"));
    sgi_jw_close(&w, '}');
}

void sgi_segments_write_error_meta(sgi_buf *meta, const sgi_op *op)
{
    if (op->head.final != SGI_FINAL_ERROR && op->head.final != SGI_FINAL_EXPIRED)
        return;
    if (meta->len)
        sgi_buf_add_char(meta, ',');
    sgi_buf_add_lit(meta, "\"dev.segue/error\":");
    sgi_buf_add(meta, op->head.final_data, op->head.final_len);
}

bool sgi_segments_are_complete(const sgi_op *op)
{
    return sgi_op_has_ended(op) && op->head.final_seq <= sgi_op_horizon(op);
}

bool sgi_segments_are_withheld(const sgi_op *op)
{
    return (op->head.final == SGI_FINAL_CANCELLED ||
            op->head.final == SGI_FINAL_EXPIRED) &&
           sgi_segments_are_complete(op);
}

bool sgi_segments_end_in_error(const sgi_op *op)
{
    return op->head.final != SGI_FINAL_RESULT;
}
