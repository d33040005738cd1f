/* The part of a result that a request has received before its end. A request that ends
 * with an error gives this part to the application. The part survives that the call is
 * sent again: what the application has seen as segments does not vanish because the
 * server was restarted. */
#include "engine/client/dialects.h"

/* True when the message of the call that is under way has brought a part. */
static bool has_brought(const segue_request *request)
{
    return sgi_cli_has_received_result_part(request) || request->fold.count ||
           !sgi_fields_is_empty(&request->fold.fields);
}

/* True when the message under way has brought no segment that the earlier part lacks, and
 * has not made the earlier part void. */
static bool is_earlier_larger(const segue_request *request)
{
    const sgi_earlier_part *earlier = &request->earlier;
    return earlier->json.len && request->numbering.next == earlier->next &&
           request->numbering.voided < earlier->next;
}

static void write(const segue_request *request, sgi_buf *out)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_buf_truncate(out, 0);
    sgi_jw_open(&w, '{');
    if (!sgi_cli_write_received_result_part(request, &w))
        sgi_fold_write(&request->fold, &w, false, (sgi_str){0});
    sgi_jw_close(&w, '}');
}

void sgi_received_part_set_aside(segue_request *request)
{
    sgi_earlier_part *earlier = &request->earlier;
    if (!has_brought(request) || is_earlier_larger(request))
        return;
    write(request, &earlier->json);
    earlier->next = request->numbering.next;
    if (earlier->json.failed)
        /* out of memory: the part is lost, and the call goes on */
        sgi_buf_free(&earlier->json);
}

void sgi_received_part_write(segue_request *request)
{
    sgi_buf *result = &request->result;
    if (is_earlier_larger(request)) {
        sgi_buf_truncate(result, 0);
        sgi_buf_add_str(result, sgi_buf_str(&request->earlier.json));
    } else if (has_brought(request)) {
        write(request, result);
    } else {
        return;
    }
    if (!sgi_buf_terminate(result) || result->failed)
        sgi_buf_reset(result, 0);
}
