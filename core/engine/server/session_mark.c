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

bool sgi_session_mark_fits(const sgi_session_mark *asked, const sgi_session_mark *other)
{
    return !*asked->text || !strcmp(asked->text, other->text);
}

void sgi_session_mark_write(sgi_jw *w, const sgi_session_mark *mark)
{
    if (*mark->text)
        sgi_jw_member_string(w, "session", sgi_str_of(mark->text));
}

void sgi_session_mark_read(sgi_json data, sgi_session_mark *mark)
{
    sgi_str text;
    *mark = (sgi_session_mark){0};
    if (sgi_json_plain_string(sgi_json_get(data, "session"), &text) &&
        text.n == SGI_SESSION_MARK)
        memcpy(mark->text, text.p, text.n);
}
