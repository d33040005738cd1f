/* A question on the channel of a request that can be resumed has an id that is good on
 * every connection (R-975-16): "<the operation's id in the store>:<position of the ASK>".
 * So whoever answers it, wherever, answers that one. */
#include "engine/serving/resumable.h"

#include "engine/serving/server.h"

void sgi_resumable_ask_id(const sgi_resumable *r, const sgi_input *input, sgi_buf *out)
{
    sgi_buf_add_char(out, '"');
    sgi_buf_add_str(out, sgi_str_of(r->op->task_id));
    sgi_buf_add_char(out, ':');
    sgi_buf_add_uint(out, input->asked);
    sgi_buf_add_char(out, '"');
}

static bool split(sgi_str text, sgi_str *id, uint64_t *seq)
{
    size_t n = SGI_RANDOM_TEXT;
    *seq = 0;
    if (text.n < n + 2 || text.n > n + 18 || text.p[n] != ':')
        return false;
    for (size_t i = n + 1; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
        *seq = *seq * 10 + (uint64_t)(text.p[i] - '0');
    }
    *id = (sgi_str){text.p, n};
    return true;
}

sgi_input *sgi_resumable_asked(const sgi_peer *peer, sgi_json id, sgi_op **op)
{
    sgi_str text, of_op;
    uint64_t seq;
    sgi_input *input;
    if (!sgi_json_plain_string(id, &text) || !split(text, &of_op, &seq))
        return NULL;
    sgi_map_node *node = sgi_map_find(&peer->server->by_task, of_op);
    *op = node ? SGI_OWNER(node, sgi_op, by_task) : NULL;
    if (!*op || !(*op)->resumable || (*op)->who != peer->who)
        return NULL;
    TAILQ_FOREACH(input, &(*op)->inputs, link)
        if (input->asked == seq)
            return input;
    return NULL;
}
