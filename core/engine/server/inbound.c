#include "engine/server/inbound.h"

#include "engine/negotiate.h"

/* Reads the members of params in one pass over the text, and the members of _meta in a
 * second pass. */
static void read_params(sgi_inbound *in, const sgi_message *msg)
{
    static const sgi_str of_params[] = {
        SGI_STR_INIT("_meta"),          SGI_STR_INIT("name"),
        SGI_STR_INIT("arguments"),      SGI_STR_INIT("requestState"),
        SGI_STR_INIT("inputResponses"), SGI_STR_INIT("task")};
    static const sgi_str of_meta[] = {
        SGI_STR_INIT("io.modelcontextprotocol/protocolVersion"),
        SGI_STR_INIT("io.modelcontextprotocol/clientCapabilities"),
        SGI_STR_INIT("io.modelcontextprotocol/logLevel"),
        SGI_STR_INIT("progressToken"),
        SGI_STR_INIT("dev.segue/idempotencyKey"),
        SGI_STR_INIT("allowPartial"),
        SGI_STR_INIT("partialResultToken"),
    };
    sgi_json found[7];
    sgi_json_pick_part(&msg->parts[0], in->params, of_params, 6, found);
    in->meta = found[0];
    in->name = found[1];
    in->arguments = found[2];
    if (sgi_json_kind_of(in->arguments) == SGI_JSON_NULL)
        /* null counts as "no arguments", because some languages write an empty map as
         * null */
        in->arguments = (sgi_json){0};
    in->state = found[3];
    in->responses = found[4];
    in->task = found[5];
    sgi_json_pick_part(&msg->parts[1], in->meta, of_meta, 7, found);
    in->protocol = found[0];
    in->capabilities = found[1];
    in->level = found[2];
    in->progress = found[3];
    in->key = found[4];
    in->partial = found[5];
    in->token = found[6];
}

bool sgi_inbound_read(sgi_inbound *in, sgi_peer *peer, const sgi_message *msg)
{
    sgi_str id = sgi_peer_canonical_id(peer, msg->id);
    if (!id.n)
        return false;
    *in = (sgi_inbound){.peer = peer, .id = id, .params = msg->params};
    read_params(in, msg);
    return true;
}

bool sgi_inbound_is_stateless(const sgi_inbound *in, sgi_json method, bool shaken)
{
    sgi_str text;
    if (!in->protocol.n)
        return false;
    if (!shaken && !sgi_json_string_is(method, SGI_STR("initialize")))
        return true;
    sgi_version version = sgi_json_plain_string(in->protocol, &text)
                              ? sgi_version_parse(text)
                              : SGI_VERSION_UNKNOWN;
    return version == SGI_VERSION_UNKNOWN || sgi_facts(version)->is_stateless;
}
