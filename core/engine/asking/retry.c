/* When a request tries again: at the next interval, or after a failure, ever later. */
#include "engine/asking/request.h"

#define BACKOFF_MAX_MS 30000

static void go_again(sgi_timer *timer)
{
    segue_request *request = SGI_OWNER(timer, segue_request, retry);
    if (sgi_session_is_open(request->session))
        sgi_request_go(request);
}

/* Plus or minus a tenth, so that many who wait do not come at once. */
void sgi_request_later(segue_request *request, int64_t ms)
{
    uint8_t chance = 128;
    sgi_random(&request->engine->env, &chance, 1);
    sgi_engine_timer(request->engine, &request->retry, ms - ms / 10 + ms * chance / 1280,
                     go_again);
}

void sgi_request_back_off(segue_request *request, int64_t at_least_ms)
{
    int64_t ms = 0;
    if (request->failures++ > 0) {
        ms = SGI_BACKOFF_FIRST_MS;
        for (int32_t i = 2; i < request->failures && ms < BACKOFF_MAX_MS; i++)
            ms *= 2;
        if (ms > BACKOFF_MAX_MS)
            ms = BACKOFF_MAX_MS;
    }
    if (ms < at_least_ms)
        ms = at_least_ms;
    int64_t patience = sgi_session_patience(request->session, ms);
    if (patience > ms)
        ms = patience + patience / 9; /* nor a tenth sooner */
    sgi_request_later(request, ms);
}

void sgi_request_cut_off(segue_request *request, const sgi_outcome *outcome)
{
    segue_session *session = request->session;
    if (outcome->kind == SGI_OUTCOME_REFUSED)
        sgi_request_fail(request, sgi_outcome_status(outcome), outcome->why);
    else if (!sgi_session_is_open(session))
        return; /* asked again when it is */
    else if (request->failures >= session->options.max_reconnects)
        sgi_request_fail(request, SEGUE_E_DISCONNECTED, outcome->why);
    else
        sgi_request_back_off(request, 0);
}
