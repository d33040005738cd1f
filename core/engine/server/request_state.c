/* The sealed content of a requestState is
 *   bytes that identify the server | id of the round | {questions, answers} or nothing
 *
 * The first part shows which server made the requestState. A server takes over a call
 * only by a requestState that another server made. A server accepts a requestState
 * that it made itself only while the round waits for answers. */
#include "engine/server/request_state.h"

#include "engine/server/carried_answers.h"

/* The maximum length of a requestState that a server writes. A longer text is refused
 * before it is decrypted. */
#define TEXT_MAX ((SGI_RECALL_MAX + 256) / 3 * 4)
#define HEAD (SGI_SERVER_MARK + SGI_RANDOM_TEXT)

/* Returns the arguments for which the requestState is sealed. A resource has no arguments
 * besides its URI. Missing arguments count as an empty object. */
static sgi_str subject_arguments(const sgi_call_kind *kind, sgi_json arguments)
{
    return kind == &sgi_call_resource || !arguments.n ? SGI_STR("{}") : arguments;
}

bool sgi_request_state_write(const sgi_op *op, const char *id, int64_t expires_ms,
                             sgi_buf *out)
{
    const segue_server *server = sgi_op_server(op);
    const sgi_str what[] = {sgi_str_of(op->served->kind->method),
                            sgi_str_of(op->served->item_name),
                            subject_arguments(op->served->kind, sgi_op_arguments(op))};
    const sgi_seal_purpose good_for = {SGI_SEAL_ROUND, op->served->who->digest, what, 3};
    sgi_buf bytes;
    sgi_buf_init(&bytes, sgi_engine_mem(op->engine));
    sgi_buf_add(&bytes, server->cluster.mark, sizeof server->cluster.mark);
    sgi_buf_add_str(&bytes, sgi_str_of(id));
    if (server->seal.shared)
        sgi_carried_answers_write(op, &bytes);
    if (bytes.len > HEAD + SGI_RECALL_MAX)
        sgi_buf_truncate(&bytes, HEAD);
    bool ok = !bytes.failed && sgi_seal_write(&server->seal, &good_for, expires_ms,
                                              sgi_buf_str(&bytes), out);
    sgi_buf_free(&bytes);
    return ok;
}

static segue_status open_text(const sgi_inbound *in, const sgi_seal_purpose *good_for,
                              sgi_buf *bytes)
{
    sgi_str text;
    if (!sgi_json_plain_string(in->state, &text) || text.n > TEXT_MAX)
        /* no server makes a requestState with escapes or of this length, so the text is
         * invalid */
        return SEGUE_E_INVALID;
    segue_status status = sgi_seal_open(&in->peer->server->seal, good_for, text, bytes);
    return status == SEGUE_OK && bytes->len < HEAD ? SEGUE_E_INVALID : status;
}

segue_status sgi_request_state_open(const sgi_inbound *in, const sgi_call_kind *kind,
                                    sgi_str name, sgi_request_state *state)
{
    const segue_server *server = in->peer->server;
    const sgi_str what[] = {sgi_str_of(kind->method), name,
                            subject_arguments(kind, in->arguments)};
    const sgi_seal_purpose good_for = {SGI_SEAL_ROUND, in->peer->who->digest, what, 3};
    sgi_buf *bytes = &state->bytes;
    sgi_buf_init(bytes, sgi_engine_mem(server->engine));
    segue_status status = open_text(in, &good_for, bytes);
    if (status != SEGUE_OK) {
        sgi_buf_free(bytes);
        return status;
    }
    state->is_ours = !memcmp(bytes->p, server->cluster.mark, SGI_SERVER_MARK);
    if (!state->is_ours && !server->seal.shared) {
        /* Only an application that sets a seal_key has written its tools for this: they
         * run again from their start. A key that the store keeps is for sessions. */
        sgi_buf_free(bytes);
        return SEGUE_E_INVALID;
    }
    state->id = (sgi_str){bytes->p + SGI_SERVER_MARK, SGI_RANDOM_TEXT};
    state->carried = (sgi_json){bytes->p + HEAD, bytes->len - HEAD};
    return SEGUE_OK;
}

void sgi_request_state_free(sgi_request_state *state)
{
    sgi_buf_free(&state->bytes);
}
