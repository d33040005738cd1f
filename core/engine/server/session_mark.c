#include "engine/server/session_mark.h"

#include "engine/server/wire_session.h"

bool sgi_session_mark_make(const sgi_peer *peer, sgi_session_mark *mark)
{
    sgi_engine *engine = peer->server->engine;
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_buf text;
    *mark = (sgi_session_mark){0};
    if (!peer->session || sgi_peer_is_known(peer))
        return true;
    const sgi_str id = sgi_str_of(peer->session->id);
    sgi_buf_init(&text, sgi_engine_mem(engine));
    if (sgi_engine_digest(engine, digest, &id, 1))
        sgi_buf_add_base64(&text, digest, sizeof digest, true);
    bool ok = text.len == SGI_SESSION_MARK;
    if (ok)
        memcpy(mark->text, text.p, text.len);
    sgi_buf_free(&text);
    return ok;
}

bool sgi_session_mark_fits(const sgi_session_mark *mark, sgi_str other)
{
    return !*mark->text || sgi_str_eq(other, sgi_str_of(mark->text));
}

/* ---- the mark of an operation ---- */

static bool set_session(sgi_op *op, sgi_str mark)
{
    if (!mark.n)
        return true;
    op->served->session = sgi_text_dup(sgi_engine_mem(op->engine), mark);
    return op->served->session != NULL;
}

bool sgi_op_set_session_of(sgi_op *op, const sgi_peer *peer)
{
    sgi_session_mark mark;
    return sgi_session_mark_make(peer, &mark) && set_session(op, sgi_str_of(mark.text));
}

sgi_str sgi_op_session(const sgi_op *op)
{
    return sgi_str_of(op->served->session);
}

void sgi_op_session_write(const sgi_op *op, sgi_jw *w)
{
    if (op->served->session)
        sgi_jw_member_string(w, "session", sgi_op_session(op));
}

sgi_str sgi_session_mark_of_record(sgi_json data)
{
    sgi_str text;
    bool is_mark = sgi_json_plain_string(sgi_json_get(data, "session"), &text) &&
                   text.n == SGI_SESSION_MARK;
    return is_mark ? text : (sgi_str){0};
}

bool sgi_op_session_read(sgi_op *op, sgi_json data)
{
    return set_session(op, sgi_session_mark_of_record(data));
}
