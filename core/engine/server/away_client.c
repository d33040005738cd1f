#include "engine/server/away_client.h"

#include "base/thresholds.h"

bool sgi_client_is_expected(const segue_server *server, int64_t since_ms,
                            int64_t asked_ms)
{
    int64_t away_ms = asked_ms ? asked_ms : SGI_THRESHOLD(come_again_ms);
    int64_t most_ms = sgi_time_add(away_ms, SGI_THRESHOLD(return_slack_ms));
    return sgi_now(&server->engine->env) < sgi_time_add(since_ms, most_ms);
}
