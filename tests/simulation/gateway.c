/* What a gateway in front of the servers does to HTTP requests: for one request, or for
 * a while, it answers 502, 503 or 504 itself. The server either never gets the request,
 * or its answer is thrown away. The connection ends, and the session goes on. */
#include "simulation/web.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Returns whether a request begins: nothing of it has been passed on yet. */
static bool is_at_request(const cutting_line *line, short events)
{
    char head[5];
    return line->stage == LINE_OPEN && !line->halves[CUTTING_UP].len &&
           (events & POLLIN) &&
           recv(line->fds[CUTTING_UP], head, sizeof head, MSG_PEEK) == sizeof head &&
           (!memcmp(head, "POST ", 5) || !memcmp(head, "GET /", 5));
}

static void answer(sim *s, sim_joined *one)
{
    static const char *const statuses[] = {"502 Bad Gateway", "503 Service Unavailable",
                                           "503 Service Unavailable\r\nRetry-After: 1",
                                           "504 Gateway Timeout"};
    char text[200];
    const char *status = statuses[dice_roll(&s->line_dice, 4)];
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: 5\r\n"
                       "Connection: close\r\n\r\n<hr/>",
                       status);
    sim_note(s, "gateway", status, strlen(status));
    send(one->line->fds[CUTTING_UP], text, (size_t)len, MSG_NOSIGNAL);
    cutting_line_cut(one->line, CUTTING_FIN, false, s->now_ms);
}

void sim_gateway_turn(sim *s, sim_joined *one, const struct pollfd pair[2])
{
    sim_client *client = one->client;
    bool is_out = s->now_ms < client->refused_until;
    bool begins = is_at_request(one->line, pair[CUTTING_UP].revents);
    sim_client_sends(client, begins);
    if (one->drops_answer) {
        if (pair[CUTTING_DOWN].revents & POLLIN)
            answer(s, one);
        return;
    }
    if ((!is_out && !client->refused) || !begins)
        return;
    sim_fault(s, "cut");
    if (!is_out)
        client->refused--;
    one->drops_answer = !is_out && dice_once_in(&s->line_dice, 3);
    if (!one->drops_answer)
        answer(s, one);
}
