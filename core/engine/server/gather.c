#include "engine/server/gather.h"

void sgi_gather_init(sgi_gather *gather, sgi_conn *conn, sgi_source *source)
{
    *gather = (sgi_gather){.conn = conn, .source = source};
}

void sgi_gather_end(sgi_gather *gather)
{
    sgi_engine_clear_timer(gather->conn->engine, &gather->timer);
}

void sgi_gather_begin_pause(sgi_gather *gather)
{
    gather->next_ms = sgi_now(&gather->conn->engine->env) + SGI_GATHER_MS;
}

static void is_due(sgi_timer *timer)
{
    sgi_gather *gather = SGI_OWNER(timer, sgi_gather, timer);
    sgi_source_queue(gather->conn, gather->source);
}

static bool is_full(const sgi_reader *reader)
{
    return sgi_reader_segments_left(reader) >= SGI_GATHER_SEGMENTS ||
           sgi_reader_bytes_left(reader) >= SGI_GATHER_BYTES ||
           sgi_op_is_full(reader->op);
}

bool sgi_gather_must_wait(sgi_gather *gather, const sgi_reader *reader)
{
    int64_t left = gather->next_ms - sgi_now(&gather->conn->engine->env);
    if (!gather->next_ms || left <= 0 || sgi_op_has_ended(reader->op) || is_full(reader))
        return false;
    if (!gather->timer.slot)
        sgi_engine_set_timer(gather->conn->engine, &gather->timer, left, is_due);
    return true;
}
