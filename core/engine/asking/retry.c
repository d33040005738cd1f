/* When a request tries again: at the next interval, or after a failure, ever later. */
#include "base/backoff.h"
#include "engine/asking/request.h"

static const sgi_backoff trying = {.first_ms = SGI_BACKOFF_FIRST_MS, .most_ms = 30000};

#define SPREAD 10 /* percent */

static void go_again(sgi_timer *timer)
{
    segue_request *request = SGI_OWNER(timer, segue_request, retry);
    if (request->tried_ms) /* the pause was a tenth longer or shorter */
        request->tried_ms = sgi_now(&request->engine->env);
    if (sgi_session_is_open(request->session))
        sgi_request_go(request);
}

/* Plus or minus a tenth, so that many who wait do not come at once. */
void sgi_request_later(segue_request *request, int64_t ms)
{
    sgi_engine_timer(request->engine, &request->retry,
                     sgi_backoff_spread(ms, SPREAD, &request->engine->env), go_again);
}

static int64_t next_pause(segue_request *request, int64_t at_least_ms)
{
    int64_t ms = sgi_backoff_ms(&trying, request->failures++);
    if (ms < at_least_ms)
        ms = at_least_ms;
    int64_t patience = sgi_session_patience(request->session, ms);
    return patience > ms ? patience + patience / 9 : ms; /* nor a tenth sooner */
}

void sgi_request_back_off(segue_request *request, int64_t at_least_ms)
{
    if (!request->cancel_due) /* else nothing but the answer to that is waited for */
        sgi_request_later(request, next_pause(request, at_least_ms));
}

/* An exchange that reached the server and was cut later says that it was there, and so
 * does a pause that the server itself asks for. */
static void lose(segue_request *request, const sgi_outcome *outcome)
{
    segue_session *session = request->session;
    char why[SGI_WHY_MAX];
    int64_t now = sgi_now(&request->engine->env);
    bool is_asked = sgi_session_patience(session, 0) > 0;
    if (request->retry.slot && request->tried_ms > now)
        return; /* another exchange of it was lost as well: one pause is for both */
    if (request->failures && outcome->unsent && request->tried_ms)
        request->lost_ms = sgi_time_add(request->lost_ms, now - request->tried_ms);
    int64_t left = sgi_session_reach_ms(session, request->lost_ms);
    if (left <= 0) {
        sgi_explain_reach(session, why, outcome->why);
        sgi_request_fail(request, SEGUE_E_DISCONNECTED, why);
        return;
    }
    int64_t ms = next_pause(request, 0);
    if (!is_asked) {
        ms = ms < left ? ms : left;
        request->lost_ms += ms;
    }
    request->tried_ms = now + ms;
    sgi_session_tell_retry(session, request->method, request->failures, ms,
                           outcome->why ? outcome->why : "no answer");
    sgi_request_later(request, ms);
}

void sgi_request_cut_off(segue_request *request, const sgi_outcome *outcome)
{
    segue_session *session = request->session;
    if (request->cancel_due)
        return;
    if (outcome->kind == SGI_OUTCOME_REFUSED)
        sgi_request_fail(request, sgi_outcome_status(outcome), outcome->why);
    else if (!sgi_session_is_open(session))
        return; /* asked again when it is */
    else if (request->failures >= session->options.max_reconnects)
        sgi_request_fail(request, SEGUE_E_DISCONNECTED, outcome->why);
    else
        lose(request, outcome);
}
