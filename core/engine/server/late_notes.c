#include "engine/server/late_notes.h"

#include "wire/json_copy.h"

struct sgi_late_notes {
    sgi_output_source source;
    sgi_reply *reply;
    sgi_buf params[SGI_NOTE_KINDS]; /* empty = no message of this kind waits */
};

const char *sgi_note_method(sgi_note_kind kind)
{
    return kind == SGI_NOTE_LOG ? "notifications/message" : "notifications/progress";
}

static bool fill(sgi_output_source *source, size_t room)
{
    (void)room;
    sgi_late_notes_send(SGI_OWNER(source, sgi_late_notes, source)->reply);
    return false;
}

static sgi_late_notes *find_or_make(sgi_reply *reply)
{
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    sgi_late_notes *late = reply->late;
    if (late)
        return late;
    late = sgi_zalloc(mem, sizeof *late);
    if (!late)
        return NULL;
    late->source.fill = fill;
    late->reply = reply;
    for (int kind = 0; kind < SGI_NOTE_KINDS; kind++)
        sgi_buf_init(&late->params[kind], mem);
    return reply->late = late;
}

segue_status sgi_late_note_keep(sgi_reply *reply, sgi_note_kind kind, sgi_json params)
{
    sgi_late_notes *late = find_or_make(reply);
    if (!late)
        return SEGUE_E_NOMEM;
    sgi_buf *waiting = &late->params[kind];
    if (waiting->len)
        reply->peer->server->counts.thinned++;
    sgi_buf_truncate(waiting, 0);
    sgi_buf_add_str(waiting, params);
    if (waiting->failed) {
        sgi_buf_truncate(waiting, 0);
        return SEGUE_E_NOMEM;
    }
    sgi_output_source_queue(reply->peer->conn, &late->source);
    return SEGUE_OK;
}

void sgi_late_notes_send(sgi_reply *reply)
{
    sgi_late_notes *late = reply->late;
    if (!late || !reply->peer)
        return;
    for (sgi_note_kind kind = 0; kind < SGI_NOTE_KINDS; kind++) {
        sgi_buf *waiting = &late->params[kind];
        sgi_sending sending;
        if (!waiting->len)
            continue;
        sgi_send_begin_notification(&sending, reply->peer->conn, sgi_note_method(kind));
        sgi_jw_copy_members(&sending.w, sgi_buf_str(waiting), NULL);
        sgi_send_end(&sending);
        sgi_buf_truncate(waiting, 0);
    }
}

void sgi_late_notes_drop(sgi_reply *reply)
{
    sgi_late_notes *late = reply->late;
    if (!late)
        return;
    for (int kind = 0; kind < SGI_NOTE_KINDS; kind++)
        sgi_buf_free(&late->params[kind]);
    sgi_output_source_remove(reply->peer->conn, &late->source);
    sgi_free(sgi_engine_mem(reply->engine), late, sizeof *late);
    reply->late = NULL;
}
