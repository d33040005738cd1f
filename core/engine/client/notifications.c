/* Stores the notifications that belong to no request in one buffer until they are
 * delivered to the application. When more than KEPT_MAX bytes wait, the session stops
 * reading, so that the server slows down and nothing is lost. Over a byte stream the
 * session stops reading the connection. Over HTTP it stops reading the streams that are
 * likely to bring more notifications. Streams that bring an answer are still read and may
 * also bring notifications. Beyond KEPT_MOST bytes these notifications are dropped. */
#include "engine/client/exchange_start.h"

#include "base/thresholds.h"
#include "engine/client/request.h"

#define KEPT_MAX SGI_THRESHOLD(kept_notes_bytes)
#define KEPT_MOST (16 * KEPT_MAX)

/* Appends a notification to the buffer as a record: method, NUL, length of params,
 * params, NUL. Returns false when out of memory. */
static bool add(sgi_buf *kept, sgi_str method, sgi_json params)
{
    size_t mark = kept->len;
    sgi_buf_add_str(kept, method);
    sgi_buf_add_char(kept, 0);
    sgi_buf_add(kept, &params.n, sizeof params.n);
    sgi_buf_add_str(kept, params);
    sgi_buf_add_char(kept, 0);
    if (kept->failed)
        sgi_buf_truncate(kept, mark);
    return kept->len > mark;
}

void sgi_notifications_keep(segue_session *session, sgi_str method, sgi_json params)
{
    sgi_buf *kept = &session->notifications.waiting;
    if (!session->events.on_notification || !session->stage)
        return;
    if (kept->len > KEPT_MOST || !add(kept, method, params)) {
        session->engine->warnings++;
        return;
    }
    session->notifications.full |= kept->len > KEPT_MAX;
    if (!session->ready.queued)
        sgi_session_ref(session);
    sgi_ready_queue_add(session->engine, &session->ready);
}

/* Lets the session read input again, because the application has received the
 * notifications. */
static void let_go(segue_session *session)
{
    segue_request *request, *next;
    session->notifications.full = false;
    if (sgi_session_is_closed(session))
        return;
    if (!session->conn->exchanging) {
        sgi_conn_resume_input(session->conn);
        return;
    }
    if (session->listening.conn)
        sgi_exchange_resume_input(session->listening.conn);
    SGI_TAILQ_EACH(request, &session->requests, link, next)
        sgi_session_resume_input(session, request);
}

int32_t sgi_notifications_deliver(segue_session *session)
{
    sgi_engine *engine = session->engine;
    sgi_buf taken = session->notifications.waiting;
    int32_t ran = 0;
    sgi_buf_init(&session->notifications.waiting, sgi_engine_mem(engine));
    sgi_user_code_begin(engine);
    for (size_t at = 0; at < taken.len; ran++) {
        const char *method = taken.p + at;
        size_t len;
        at += strlen(method) + 1;
        memcpy(&len, taken.p + at, sizeof len);
        at += sizeof len;
        session->events.on_notification(session->events.user, session, method,
                                        taken.p + at, len);
        at += len + 1;
    }
    sgi_user_code_end(engine);
    sgi_buf_free(&taken);
    if (session->notifications.full)
        let_go(session);
    return ran;
}
