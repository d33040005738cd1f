/* Each dialect is one row: a struct of functions (sgi_srv_dialect). The functions of this
 * file call the functions of the rows, in the order of sgi_srv_dialects. */
#include "engine/server/dialects.h"

#include "engine/server/call_request.h"
#include "engine/server/pieces.h"

#define EACH_ROW(row)                                                                    \
    for (const sgi_srv_dialect *const *at_ = sgi_srv_dialects, *row;                     \
         (row = *at_) != NULL; at_++)
/* Iterates over the rows whose bit is in the set. With an empty set, as for most calls,
 * the loop ends at once. */
#define EACH_ROW_OF(set, row)                                                            \
    for (const sgi_srv_dialect *const *at_ = sgi_srv_dialects, *row;                     \
         (set) && (row = *at_) != NULL; at_++)                                           \
        if (row->bit & (set))

const sgi_srv_dialect *sgi_srv_task_dialect_in_set(uint32_t set)
{
    EACH_ROW_OF(set, row)
        if (row->created)
            return row;
    return NULL;
}

const sgi_srv_dialect *sgi_srv_task_dialect(const sgi_inbound *in)
{
    uint32_t tasks = 0;
    EACH_ROW(row)
        if (row->created)
            tasks |= row->bit;
    return sgi_srv_task_dialect_in_set(sgi_negotiate_dialects(
        in->version, sgi_srv_read_declared(in, NULL, tasks), in->peer->server->dialects));
}

bool sgi_srv_makes_tasks(const segue_server *server, sgi_version version)
{
    return sgi_srv_task_dialect_in_set(
        sgi_negotiate_dialects(version, UINT32_MAX, server->dialects));
}

const sgi_srv_dialect *sgi_srv_dialect_named(sgi_str name)
{
    EACH_ROW(row)
        if (sgi_str_eq(name, sgi_str_of(row->name)))
            return row;
    return NULL;
}

/* ---- capabilities ---- */

bool sgi_srv_has_version(const segue_server *server, sgi_version version)
{
    EACH_ROW(row)
        if (row->version != SGI_VERSION_UNKNOWN && row->version == version)
            return row->bit & server->dialects;
    return false;
}

void sgi_srv_read_capabilities(sgi_handshake *handshake, sgi_json capabilities)
{
    handshake->declared = 0;
    EACH_ROW(row)
        if (row->read_capabilities)
            row->read_capabilities(handshake, capabilities);
}

void sgi_srv_write_capabilities(sgi_jw *w, const sgi_inbound *in)
{
    EACH_ROW(row)
        if (row->write_capabilities)
            row->write_capabilities(w, in);
}

void sgi_srv_write_extensions(sgi_jw *w, const segue_server *server)
{
    EACH_ROW(row)
        if (row->extension && row->bit & server->dialects)
            sgi_jw_member_raw(w, row->extension, SGI_STR("{}"));
}

void sgi_srv_write_experiments(sgi_jw *w, const segue_server *server)
{
    EACH_ROW(row) {
        const char *name = row->experiment ? row->experiment(server) : NULL;
        if (name)
            sgi_jw_member_raw(w, name, SGI_STR("{}"));
    }
}

uint32_t sgi_srv_assumed_caps(const sgi_peer *peer, sgi_version version)
{
    uint32_t caps = 0;
    EACH_ROW(row)
        if (row->given_caps)
            caps |= row->given_caps(peer, version);
    return caps;
}

/* ---- methods ---- */

static const sgi_method *find(const sgi_srv_dialect *row, sgi_str name)
{
    for (const sgi_method *m = row->methods; m && m->name; m++)
        if (sgi_str_eq(sgi_str_of(m->name), name))
            return m;
    return NULL;
}

const sgi_method *sgi_srv_find_method(const sgi_peer *peer, sgi_version version,
                                      sgi_str name)
{
    EACH_ROW(row) {
        const sgi_method *method = find(row, name);
        if (method && row->serves(peer, version))
            return method;
    }
    return NULL;
}

const sgi_method *sgi_srv_find_old_method(const sgi_inbound *in, sgi_str name)
{
    EACH_ROW(row)
        if (row->serves_older && row->serves_older(in, name))
            return find(row, name);
    return NULL;
}

bool sgi_srv_may_reuse_id(const sgi_peer *peer, sgi_str method)
{
    EACH_ROW(row)
        if (row->may_reuse_id && row->may_reuse_id(peer, method))
            return true;
    return false;
}

/* ---- tools in a list ---- */

const char *sgi_srv_task_support(const sgi_inbound *in, int32_t policy)
{
    if (policy == SEGUE_TASK_NEVER)
        return NULL;
    EACH_ROW(row) {
        const char *text = row->task_support ? row->task_support(in, policy) : NULL;
        if (text)
            return text;
    }
    return NULL;
}

bool sgi_srv_hints_growing_results(const sgi_inbound *in)
{
    EACH_ROW(row)
        if (row->hints && row->hints(in))
            return true;
    return false;
}

bool sgi_srv_keeps_segments_apart(const segue_server *server)
{
    EACH_ROW(row)
        if (row->keeps_segments_apart && row->keeps_segments_apart(server))
            return true;
    return false;
}

/* ---- calls ---- */

bool sgi_srv_read_call(const sgi_inbound *in, sgi_call_request *request)
{
    EACH_ROW(row)
        if (row->read_call && !row->read_call(in, request))
            return false;
    return true;
}

uint32_t sgi_srv_read_declared(const sgi_inbound *in, sgi_call_request *request,
                               uint32_t set)
{
    uint32_t says = 0;
    EACH_ROW_OF(set, row)
        if (row->says)
            says |= row->says(in, request);
    return says;
}

uint32_t sgi_srv_usable_dialects(const sgi_inbound *in, const sgi_call_request *request,
                                 uint32_t set)
{
    EACH_ROW_OF(set, row)
        if (row->takes && !row->takes(in, request))
            set &= ~row->bit;
    return set;
}

const sgi_lasting_call_ops *sgi_srv_lasting_call_ops(const sgi_inbound *in,
                                                     const sgi_call_request *request,
                                                     uint32_t set)
{
    EACH_ROW_OF(set, row)
        if (row->lasts && row->lasts(in, request))
            return row->lasting;
    return NULL;
}

uint32_t sgi_srv_dialects_with_pieces(void)
{
    uint32_t set = 0;
    EACH_ROW(row)
        if (row->pieces)
            set |= row->bit;
    return set;
}

const struct sgi_pieces_ops *sgi_srv_pieces_ops(uint32_t set)
{
    const struct sgi_pieces_ops *form = NULL;
    EACH_ROW_OF(set, row)
        if (row->pieces)
            form = row->pieces;
    return form;
}

const struct sgi_pieces_ops *sgi_srv_lasting_pieces_ops(void)
{
    EACH_ROW(row)
        if (row->pieces && row->pieces->lasts)
            return row->pieces;
    return NULL;
}

/* ---- tasks ---- */

bool sgi_srv_answers_at_once(const sgi_call_request *request)
{
    const sgi_srv_dialect *row = request->dialect;
    return row && row->answers_at_once && row->answers_at_once(request);
}

bool sgi_srv_streams_segments(const sgi_call_request *request)
{
    const sgi_srv_dialect *row = request->dialect;
    return row && row->streams && row->streams(request);
}

bool sgi_srv_answers_after_turn(const sgi_op *op)
{
    const sgi_srv_dialect *row = op->served->dialect;
    return row && row->waits_for_turn && row->waits_for_turn(op);
}

bool sgi_srv_keeps_task_beside_result(const sgi_op *op)
{
    const sgi_srv_dialect *row = op->served->dialect;
    return row && row->tracks && row->tracks(op);
}

const sgi_reply *sgi_srv_find_waiting_reply(const sgi_op *op, const sgi_reply *before)
{
    const sgi_srv_dialect *row = op->served->dialect;
    return row && row->waiting ? row->waiting(op, before) : NULL;
}

const sgi_reply *sgi_srv_find_reading_reply(const sgi_op *op, const sgi_reply *before)
{
    const sgi_srv_dialect *row = op->served->dialect;
    return row && row->reading ? row->reading(op, before) : NULL;
}
