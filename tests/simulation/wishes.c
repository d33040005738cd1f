/* What applications ask for with their calls: time limits, and log messages from a level
 * on. */
#include "simulation/sim.h"

#include "wire/json_read.h"
#include "wire/log_level.h"

/* Every second call has a limit. Segments that wait for credit delay its end. */
static int64_t limit_of(const sim_app *a)
{
    return a->index % 2 ? 0 : sim_planned(a->s, SIM_limit);
}

static void tell_limit(const sim_app *a)
{
    int64_t grace = 5000 + 2 * sim_planned(a->s, SIM_step);
    if (sim_planned(a->s, SIM_credit))
        grace += INT64_C(10) * 60 * 1000;
    sim_tell(a->s, "limit " SIM_WHO " ms=%lld wire=%d grace=%lld", SIM_WHO_OF(a),
             (long long)limit_of(a), SIM_REQUEST_MS, (long long)grace);
}

/* Returns the lowest level of log messages that a call asks for; NULL = it asks for
 * none. */
static const char *level_of(const sim_app *a)
{
    static const char *const levels[] = {"debug", "warning", NULL, "alert"};
    int64_t mix = sim_planned(a->s, SIM_levels);
    return levels[mix ? (mix + a->index) % 4 : 0];
}

/* Before 2026-07-28 the level belongs to the session. A call that asks for none then gets
 * what others have asked for. Messages of SEP-975 come at least once (R-975-20). */
static void tell_level(const sim_app *a)
{
    bool is_modern = sim_row(&a->s->plan)->era == SEGUE_ERA_MODERN;
    const char *level = level_of(a);
    int32_t least = level       ? sgi_log_level_parse(sgi_str_of(level))
                    : is_modern ? SGI_LOG_LEVELS
                                : 0;
    sim_tell(a->s, "wants " SIM_WHO " level=%d asks=%d shared=%d repeats=%d",
             SIM_WHO_OF(a), (int)least, level != NULL,
             !is_modern || !sim_planned(a->s, SIM_http),
             (sim_row(&a->s->plan)->flags & ROW_LASTS) != 0);
}

void sim_wishes_tell(const sim_app *a)
{
    tell_limit(a);
    tell_level(a);
}

void sim_wishes_set(const sim_app *a, segue_request_options *options)
{
    options->timeout_ms = limit_of(a);
    options->on_timeout = sim_planned(a->s, SIM_overtime) != 0;
    options->log_level = level_of(a);
}

/* ---- log messages ---- */

void sim_wishes_hear(sim_app *a, const char *json, size_t len)
{
    sgi_json params = {json, len}, data = sgi_json_get(params, "data");
    int64_t step = -1, run = -1;
    sgi_str of = {0};
    sgi_json_read_int(sgi_json_get(data, "step"), &step);
    sgi_json_read_int(sgi_json_get(data, "run"), &run);
    sgi_json_plain_string(sgi_json_get(data, "of"), &of);
    sim_check(a->s, !a->completed && step >= 0 && run > 0 && of.n);
    a->heard = true;
    sim_tell(a->s, "heard " SIM_WHO " of=%.*s r=%d n=%d level=%d", SIM_WHO_OF(a),
             (int)of.n, of.p, (int)run, (int)step,
             (int)sgi_log_level_parse_json(sgi_json_get(params, "level")));
}

static void on_hushed(void *user, segue_request *request, segue_status status,
                      const char *json, size_t len, const segue_error *error)
{
    const sim_client *client = user;
    (void)request;
    (void)json;
    (void)len;
    (void)error;
    if (status == SEGUE_OK)
        sim_tell(client->s, "hush k%d level=%d kept=%d", client->index,
                 (int)sgi_log_level_parse(SGI_STR("critical")),
                 !sim_planned(client->s, SIM_http));
}

static bool all_have_heard(const sim_client *client)
{
    for (int i = 0; i < 2 * SIM_CALLS; i++) {
        const sim_app *a = &client->s->apps[i];
        if (a->client == client && a->request && !a->completed && !a->heard)
            return false;
    }
    return true;
}

/* Raises the level of the session, when each call of the client has got its own level. */
void sim_wishes_turn(sim_client *client)
{
    static const char params[] = "{\"level\":\"critical\"}";
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    sim *s = client->s;
    if (!sim_planned(s, SIM_hushes) || client->hushed || !all_have_heard(client) ||
        !dice_once_in(&s->dice, 10))
        return;
    client->hushed = true;
    events.user = client;
    events.on_complete = on_hushed;
    sim_check(s, segue_request_start(client->session, "logging/setLevel", params,
                                     sizeof params - 1, NULL, &events, NULL,
                                     NULL) == SEGUE_OK);
}
