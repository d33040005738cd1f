/* The references of a session, and the time limit for a server that cannot be reached. */
#include "engine/client/dialects.h"
#include "engine/client/hosting.h"
#include "engine/error.h"

#include <stdio.h>

void sgi_session_free(segue_session *session)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    session->handle.magic = SGI_MAGIC_FREED;
    if (session->gone)
        session->gone(session, session->gone_user);
    sgi_question_host_free(session);
    sgi_engine_clear_timer(session->engine, &session->reach.timer);
    sgi_engine_clear_timer(session->engine, &session->listening.again);
    sgi_engine_clear_timer(session->engine, &session->log.again);
    sgi_map_free(&session->in_flight);
    sgi_tool_headers_free(&session->tools.headers);
    sgi_tool_schemas_free(&session->tools.schemas);
    sgi_cli_dialect_session_states_free(session);
    sgi_result_cache_free(&session->cache);
    sgi_text_free(mem, session->handshake.refusal);
    sgi_buf_free(&session->meta);
    sgi_buf_free(&session->handshake.capabilities);
    sgi_buf_free(&session->peer);
    sgi_buf_free(&session->notifications.waiting);
    sgi_error_free(session->error);
    for (size_t i = 0; i < 2; i++)
        sgi_text_free(mem, session->texts[i]);
    sgi_free(mem, session, sizeof *session);
}

void sgi_session_ref(segue_session *session)
{
    session->refs++;
}

void sgi_session_unref(segue_session *session)
{
    if (--session->refs == 0)
        sgi_session_free(session);
}

/* ---- a server that cannot be reached ---- */

int64_t sgi_session_retry_delay_ms(const segue_session *session, int64_t ms)
{
    int64_t left =
        sgi_time_sub(session->reach.wait_until_ms, sgi_now(&session->engine->env));
    return left > ms ? left : ms;
}

int64_t sgi_session_reconnect_ms_left(const segue_session *session, int64_t gone_ms)
{
    int64_t most = session->options.reconnect_timeout_ms;
    return most > 0 ? most - gone_ms : INT64_MAX;
}

void sgi_session_report_retry(segue_session *session, const char *what, int32_t attempt,
                              int64_t ms, const char *why)
{
    sgi_engine_log(session->engine, SEGUE_LOG_WARNING,
                   "%s%slost (%s): attempt %d to reach the server again in %lld ms",
                   what ? what : "the connection is ", what ? " is " : "", why,
                   (int)attempt, (long long)ms);
    if (!session->events.on_reconnect || (!what && session->retry.due))
        /* an attempt of a request already waits to be reported, and its report says more
         * than a report of the session */
        return;
    session->retry.due = true;
    session->retry.attempt = attempt;
    session->retry.delay_ms = ms;
    sgi_text_format(session->retry.why, sizeof session->retry.why, "%s%s%s",
                    what ? what : "", what ? ": " : "", why);
    if (!session->ready.queued)
        sgi_session_ref(session);
    sgi_ready_queue_add(session->engine, &session->ready);
}

void sgi_explain_unreachable(const segue_session *session, char text[SGI_WHY_MAX],
                             const char *why)
{
    snprintf(text, SGI_WHY_MAX,
             "the server was not reached again within %lld ms "
             "(reconnect_timeout_ms): %.1800s",
             (long long)session->options.reconnect_timeout_ms, why ? why : "no answer");
}
