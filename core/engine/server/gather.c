#include "engine/server/gather.h"

void sgi_response_pacer_init(sgi_response_pacer *gather, sgi_conn *conn,
                             sgi_output_source *source)
{
    *gather = (sgi_response_pacer){.conn = conn, .source = source};
}

void sgi_response_pacer_stop(sgi_response_pacer *gather)
{
    sgi_engine_clear_timer(gather->conn->engine, &gather->timer);
}

void sgi_response_pacer_begin_pause(sgi_response_pacer *gather)
{
    gather->next_ms = sgi_now(&gather->conn->engine->env) + SGI_GATHER_MS;
}

static void is_due(sgi_timer *timer)
{
    sgi_response_pacer *gather = SGI_OWNER(timer, sgi_response_pacer, timer);
    sgi_output_source_queue(gather->conn, gather->source);
}

static bool is_full(const sgi_reader *reader)
{
    return sgi_reader_segments_left(reader) >= SGI_GATHER_SEGMENTS ||
           sgi_reader_bytes_left(reader) >= SGI_GATHER_BYTES ||
           sgi_op_handler_must_wait(reader->op);
}

bool sgi_response_pacer_must_wait(sgi_response_pacer *gather, const sgi_reader *reader)
{
    int64_t left = gather->next_ms - sgi_now(&gather->conn->engine->env);
    if (!gather->next_ms || left <= 0 || sgi_op_has_ended(reader->op) || is_full(reader))
        return false;
    if (!gather->timer.slot)
        sgi_engine_set_timer(gather->conn->engine, &gather->timer, left, is_due);
    return true;
}
