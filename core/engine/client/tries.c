/* Decides when an exchange of a request is tried again: at the next poll interval or,
 * after a failure, after growing pauses. Ends the request when no attempt is left. */
#include "base/backoff.h"
#include "engine/client/request.h"

#include "base/thresholds.h"

#include <stdio.h>

#define SPREAD 10 /* the largest random change of a pause, in percent */
#define RETRY_AFTER_MAX_MS SGI_THRESHOLD(retry_after_most_ms)

void sgi_tries_init(sgi_tries *tries, segue_request *request, const char *method)
{
    *tries = (sgi_tries){.request = request, .engine = request->engine, .method = method};
}

static void go_again(sgi_timer *timer)
{
    sgi_tries *tries = SGI_OWNER(timer, sgi_tries, timer);
    segue_request *request = tries->request;
    /* the pause was changed at random, so the timer did not fire at the planned time; the
     * time of this attempt is set anew */
    int64_t now = sgi_now(&request->engine->env);
    if (tries->tried_ms && tries->probing.until_ms)
        tries->lost_ms += now - tries->tried_ms;
    if (tries->tried_ms)
        tries->tried_ms = now;
    if (sgi_session_is_open(request->session))
        sgi_request_send_due(request);
}

int64_t sgi_error_retry_after_ms(sgi_json error)
{
    int64_t ms = 0;
    sgi_json_read_int(sgi_json_get(sgi_json_get(error, "data"), "retryAfterMs"), &ms);
    return ms < 0 ? 0 : ms > RETRY_AFTER_MAX_MS ? RETRY_AFTER_MAX_MS : ms;
}

/* Starts a pause of about `ms`. The pause is changed at random by up to a tenth, so that
 * many waiting clients do not send at the same time. */
void sgi_tries_set_timer(sgi_tries *tries, int64_t ms)
{
    sgi_engine *engine = tries->request->engine;
    sgi_engine_set_timer(engine, &tries->timer,
                         sgi_backoff_randomize(ms, SPREAD, &engine->env), go_again);
}

static int64_t next_pause(sgi_tries *tries, int64_t at_least_ms)
{
    const sgi_backoff trying = {.first_ms = SGI_BACKOFF_FIRST_MS,
                                .most_ms = SGI_BACKOFF_MOST_MS};
    int64_t ms = sgi_backoff_ms(&trying, tries->failures++);
    if (ms < at_least_ms)
        ms = at_least_ms;
    int64_t patience = sgi_session_retry_delay_ms(tries->request->session, ms);
    /* A pause that the server has asked for is made longer here. The random change of the
     * pause then cannot end it too early. */
    return patience > ms ? patience + patience / 9 : ms;
}

void sgi_tries_back_off(sgi_tries *tries, int64_t at_least_ms)
{
    tries->probing.until_ms = 0;
    if (!tries->request->cancel_due)
        sgi_tries_set_timer(tries, next_pause(tries, at_least_ms));
}

bool sgi_tries_was_probe(const sgi_tries *tries, const sgi_outcome *outcome)
{
    return outcome->loss != SGI_LOSS_ANSWERED &&
           sgi_probing_lasts(&tries->probing, sgi_now(&tries->engine->env));
}

/* Starts the rest of a pause, or the time until the next probe of a pause that has
 * probes. A pause for which the server has asked has none, and is no lost time. */
static void start_pause(sgi_tries *tries, int64_t ms)
{
    const segue_session *session = tries->request->session;
    if (sgi_session_retry_delay_ms(session, 0) <= 0) {
        if (tries->probing.until_ms)
            ms = sgi_probing_ms(ms, tries->lost_ms, session->request_count);
        tries->lost_ms += ms;
    }
    tries->tried_ms = sgi_now(&tries->engine->env) + ms;
    sgi_tries_set_timer(tries, ms);
}

/* Begins a pause of `ms`, in which probes may follow the failure. */
static void begin(sgi_tries *tries, const sgi_outcome *outcome, int64_t now, int64_t ms)
{
    sgi_probing_begin(&tries->probing, now, ms, outcome->loss != SGI_LOSS_ANSWERED);
}

/* Goes on with a pause in which a probe has failed; returns the rest in ms. */
static int64_t go_on(sgi_tries *tries, const sgi_outcome *outcome, int64_t now)
{
    return sgi_probing_go_on(&tries->probing, now, outcome->loss != SGI_LOSS_UNSENT);
}

void sgi_tries_back_off_lost(sgi_tries *tries, const sgi_outcome *outcome)
{
    int64_t now = sgi_now(&tries->engine->env);
    if (tries->request->cancel_due)
        return;
    if (sgi_tries_was_probe(tries, outcome)) {
        start_pause(tries, go_on(tries, outcome, now));
    } else {
        int64_t ms = next_pause(tries, 0);
        begin(tries, outcome, now, ms);
        start_pause(tries, ms);
    }
}

static bool are_over(const sgi_tries *tries)
{
    return tries->failures >= tries->request->session->options.max_reconnects;
}

/* ---- lost exchanges ---- */

/* Begins the next counted pause, or goes on with the one in which a probe has failed.
 * Returns its time in ms, at most `most_ms`. */
static int64_t begin_pause(sgi_tries *tries, const sgi_outcome *outcome, int64_t now,
                           int64_t most_ms)
{
    if (sgi_tries_was_probe(tries, outcome))
        return go_on(tries, outcome, now);
    int64_t ms = next_pause(tries, 0);
    ms = ms < most_ms ? ms : most_ms;
    begin(tries, outcome, now, ms);
    sgi_session_report_retry(tries->request->session, tries->method, tries->failures, ms,
                             outcome->why ? outcome->why : "no answer");
    return ms;
}

/* Counts the time without a server and starts the pause before the next attempt. No time
 * is counted when the exchange had reached the server, or when the server has asked for a
 * pause. */
static void lose(sgi_tries *tries, const sgi_outcome *outcome)
{
    segue_request *request = tries->request;
    segue_session *session = request->session;
    char why[SGI_WHY_MAX];
    int64_t now = sgi_now(&request->engine->env);
    bool is_asked = sgi_session_retry_delay_ms(session, 0) > 0;
    if (sgi_tries_is_waiting(tries) && tries->tried_ms > now)
        /* another exchange was lost at the same time, and this exchange shares its
         * pause */
        return;
    if (tries->failures && outcome->loss == SGI_LOSS_UNSENT && tries->tried_ms)
        tries->lost_ms = sgi_time_add(tries->lost_ms, now - tries->tried_ms);
    int64_t left = sgi_session_reconnect_ms_left(session, tries->lost_ms);
    if (left <= 0) {
        sgi_explain_unreachable(session, why, outcome->why);
        sgi_request_fail(request, SEGUE_E_DISCONNECTED, why);
        return;
    }
    start_pause(tries, begin_pause(tries, outcome, now, is_asked ? INT64_MAX : left));
}

void sgi_explain_row(const segue_session *session, const char *what, int32_t times,
                     const char *why, char text[SGI_ROW_MAX])
{
    snprintf(text, SGI_ROW_MAX,
             "%s failed %d times in a row (max_reconnects: %d): %.2000s", what,
             (int)times, (int)session->options.max_reconnects, why);
}

/* Writes the error text when the last of several attempts in a row has failed. why: the
 * reason of the last failure. */
static void explain_row(const sgi_tries *tries, const char *why, char text[SGI_ROW_MAX])
{
    sgi_explain_row(tries->request->session, tries->method, tries->failures + 1, why,
                    text);
}

static void end_lost(sgi_tries *tries, const char *why)
{
    char text[SGI_ROW_MAX];
    explain_row(tries, why ? why : "no answer", text);
    sgi_request_fail(tries->request, SEGUE_E_DISCONNECTED, tries->failures ? text : why);
}

void sgi_tries_retry_lost(sgi_tries *tries, const sgi_outcome *outcome)
{
    segue_request *request = tries->request;
    if (request->cancel_due)
        return;
    if (outcome->kind == SGI_OUTCOME_REFUSED)
        sgi_request_fail(request, sgi_outcome_status(outcome), outcome->why);
    else if (!sgi_session_is_open(request->session) && request->session->conn->exchanging)
        return; /* the session is not open; when it opens, it sends the request again */
    else if (are_over(tries) && !sgi_tries_was_probe(tries, outcome))
        end_lost(tries, outcome->why);
    else
        lose(tries, outcome);
}

/* ---- failed exchanges ---- */

static void explain(const sgi_outcome *outcome, char why[SGI_WHY_MAX])
{
    char room[SGI_NAME_MAX];
    if (outcome->kind == SGI_OUTCOME_ERROR)
        sgi_explain_failure(
            why, "an error",
            sgi_method_text(sgi_json_get(outcome->json, "message"), room));
    else if (outcome->kind == SGI_OUTCOME_RESULT)
        snprintf(why, SGI_WHY_MAX, "the answer is not a JSON-RPC response");
    else if (outcome->kind == SGI_OUTCOME_TIMEOUT)
        snprintf(why, SGI_WHY_MAX, "no answer in time");
    else
        snprintf(why, SGI_WHY_MAX, "%s", outcome->why ? outcome->why : "no answer");
}

static segue_status status_of(const sgi_outcome *outcome)
{
    switch (outcome->kind) {
    case SGI_OUTCOME_ERROR:
        return SEGUE_E_REMOTE;
    case SGI_OUTCOME_TIMEOUT:
        return SEGUE_E_TIMEOUT;
    case SGI_OUTCOME_REFUSED:
        return sgi_outcome_status(outcome);
    default:
        return SEGUE_E_PROTOCOL;
    }
}

static void give_up(sgi_tries *tries, const sgi_outcome *outcome, const char *why)
{
    char text[SGI_ROW_MAX];
    segue_status status = status_of(outcome);
    int32_t most = tries->request->session->options.max_reconnects;
    if (outcome->kind == SGI_OUTCOME_ERROR) {
        snprintf(text, sizeof text, "%s failed %d times in a row (max_reconnects: %d)",
                 tries->method, (int)tries->failures + 1, (int)most);
        sgi_request_fail_error(tries->request, status, text, outcome->json);
    } else {
        explain_row(tries, why, text);
        sgi_request_fail(tries->request, status, text);
    }
}

void sgi_tries_retry_idempotent(sgi_tries *tries, const sgi_outcome *outcome)
{
    segue_request *request = tries->request;
    int64_t asked = 0;
    char why[SGI_WHY_MAX];
    bool is_final =
        outcome->kind == SGI_OUTCOME_REFUSED && !sgi_outcome_may_pass(outcome);
    if (outcome->kind == SGI_OUTCOME_LOST || is_final) {
        sgi_tries_retry_lost(tries, outcome);
        return;
    }
    if (request->cancel_due)
        return;
    if (outcome->kind == SGI_OUTCOME_ERROR)
        asked = sgi_error_retry_after_ms(outcome->json);
    explain(outcome, why);
    if (are_over(tries)) {
        give_up(tries, outcome, why);
        return;
    }
    int64_t ms = next_pause(tries, asked);
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING,
                   "%s failed (%s): it is sent again in %lld ms, attempt %d",
                   tries->method, why, (long long)ms, (int)tries->failures);
    sgi_tries_set_timer(tries, ms);
}
