/* The sealed content of a session name is: version, modes, lists, the client's
 * declarations to dialects, the kinds of questions that the client can answer, and random
 * bytes, which make each name unique. The text is sealed for the owner of the session.
 *
 * A name is valid for one day. A client whose session has become unknown begins a new
 * session (2025-11-25 basic/transports, "Session Management"). A server remembers the
 * newest names of sessions that clients have ended, and refuses these names. Other
 * servers accept these names until their day is over. */
#include "engine/server/session_name.h"

#include "engine/server/clients.h"
#include "engine/server/mailbox.h"

#include "engine/server/server.h"

#define LIFE_MS ((int64_t)24 * 60 * 60 * 1000)
#define CHANCE 16
#define SIZE (8 + CHANCE)
/* in the number of a stream: how many of its low bits count the streams that one server
 * has opened in the session */
#define NUMBERS 20

static sgi_seal_purpose good_for(const sgi_principal *who)
{
    static const sgi_str what[] = {SGI_STR_INIT("session")};
    return (sgi_seal_purpose){SGI_SEAL_SESSION, who->digest, what, 1};
}

static void write_handshake(const sgi_handshake *handshake, uint8_t bytes[SIZE])
{
    bytes[0] = (uint8_t)handshake->version;
    bytes[1] = handshake->modes;
    bytes[2] = handshake->lists;
    bytes[3] = handshake->declared;
    for (int i = 0; i < 4; i++)
        bytes[4 + i] = (uint8_t)(handshake->caps >> (24 - 8 * i));
}

static void read_handshake(sgi_handshake *handshake, const uint8_t bytes[SIZE])
{
    handshake->version = (sgi_version)bytes[0];
    handshake->modes = bytes[1];
    handshake->lists = bytes[2];
    handshake->declared = bytes[3];
    for (int i = 0; i < 4; i++)
        handshake->caps = handshake->caps << 8 | bytes[4 + i];
    /* Assumed: only the first server knows whether the client has sent
     * notifications/initialized. */
    handshake->initialized = true;
    /* The client has the lists of another server, perhaps of one that was replaced by a
     * new version. Its first GET stream here says that they have changed. */
    handshake->changed_lists = handshake->lists;
}

static void rename_to(sgi_wire_session *session, sgi_str name)
{
    sgi_map *sessions = &session->server->sessions.by_id;
    sgi_map_remove(sessions, &session->node);
    memcpy(session->id, name.p, name.n);
    session->id[name.n] = 0;
    sgi_map_put(sessions, &session->node, sgi_str_of(session->id));
    session->is_named = true;
}

bool sgi_wire_session_give_name(sgi_wire_session *session)
{
    const segue_server *server = session->server;
    const sgi_seal_purpose subject = good_for(session->who);
    uint8_t bytes[SIZE];
    sgi_buf name;
    if (!sgi_seal_is_common(&server->seal) || session->is_named)
        return true;
    write_handshake(&session->handshake, bytes);
    sgi_buf_init(&name, sgi_engine_mem(server->engine));
    bool ok = sgi_random(&server->engine->env, bytes + 8, CHANCE) &&
              sgi_seal_write(&server->seal, &subject,
                             sgi_wall_now(&server->engine->env) + LIFE_MS,
                             (sgi_str){(char *)bytes, SIZE}, &name) &&
              name.len < sizeof session->id;
    if (ok)
        rename_to(session, sgi_buf_str(&name));
    if (ok)
        sgi_mailbox_create(session->server);
    sgi_buf_free(&name);
    return ok;
}

/* ---- continuing a session of another server ---- */

static bool was_ended(const segue_server *server, sgi_str name)
{
    uint8_t digest[SGI_DIGEST_SIZE];
    if (!sgi_engine_digest(server->engine, digest, &name, 1))
        return true;
    return sgi_digest_ring_has(server->ended_sessions, digest);
}

void sgi_wire_session_note_ended(const sgi_wire_session *session)
{
    segue_server *server = session->server;
    const sgi_str name = sgi_str_of(session->id);
    uint8_t digest[SGI_DIGEST_SIZE];
    if (session->is_named && sgi_engine_digest(server->engine, digest, &name, 1))
        sgi_digest_ring_add(server->ended_sessions, digest);
}

static bool is_good(const uint8_t *bytes, size_t size)
{
    if (size != SIZE)
        return false;
    sgi_version version = sgi_version_from_number(bytes[0]);
    return version != SGI_VERSION_UNKNOWN && !sgi_facts(version)->is_stateless;
}

/* Chooses the number of the session's first stream at random, so that two servers use
 * different numbers. Returns false when the system gives no random bytes. */
static bool begin_numbers(sgi_wire_session *session)
{
    uint8_t chance[4];
    int64_t number = 1;
    if (!sgi_random(&session->server->engine->env, chance, sizeof chance))
        return false;
    for (size_t i = 0; i < sizeof chance; i++)
        number = number << 8 | chance[i];
    /* the number, with the bit of GET streams, must have less than 16 digits */
    number &= (INT64_C(1) << 28) - 1;
    session->first_stream = session->next_stream = (number + 1) << NUMBERS;
    return true;
}

segue_status sgi_wire_session_new_from_name(segue_server *server, sgi_principal *who,
                                            sgi_str name, int32_t most, int64_t idle_ms,
                                            sgi_wire_session **out)
{
    const sgi_seal_purpose subject = good_for(who);
    sgi_wire_session *session = NULL;
    sgi_buf bytes;
    if (!sgi_seal_is_common(&server->seal) || name.n >= sizeof session->id ||
        was_ended(server, name))
        return SEGUE_E_NOT_FOUND;
    sgi_buf_init(&bytes, sgi_engine_mem(server->engine));
    segue_status status = sgi_seal_open(&server->seal, &subject, name, &bytes);
    if (status == SEGUE_OK && !is_good((uint8_t *)bytes.p, bytes.len))
        status = SEGUE_E_INVALID;
    if (status != SEGUE_OK && status != SEGUE_E_NOMEM)
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK)
        status = sgi_wire_session_new(server, who, most, idle_ms, &session);
    if (status == SEGUE_OK && !begin_numbers(session)) {
        sgi_wire_session_end(session);
        status = SEGUE_E_NOMEM;
    }
    if (status == SEGUE_OK) {
        read_handshake(&session->handshake, (uint8_t *)bytes.p);
        rename_to(session, name);
        sgi_mailbox_create(server);
        sgi_client_begin_session(session);
        *out = session;
    }
    sgi_buf_free(&bytes);
    return status;
}
