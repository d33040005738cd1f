/* The host of a session, as the session sees it. A host is a server inside a client's
 * session: the application makes the server, and the server answers requests of the MCP
 * server at the other end. engine/reverse makes hosts. The client calls a host only
 * through this table, which is in the engine (sgi_engine.hosting). The host gets requests
 * such as tasks/get, and the questions that it can answer. The session answers all other
 * questions (client/server_questions.h). Outside 2025-11-25 the session answers all
 * questions. */
#ifndef SGI_HOSTING_H
#define SGI_HOSTING_H

#include "engine/client/session.h"

typedef struct sgi_question_host sgi_question_host;

/* All functions are called under the lock. */
typedef struct sgi_question_host_ops {
    /* Makes a server the host of the session (the server that answers requests of the MCP
     * server), and sets session->hosting. The host's conversation lasts as long as the
     * session. Errors: SEGUE_E_CLOSED, SEGUE_E_NOMEM. */
    segue_status (*join)(segue_session *session, segue_server *host);
    void (*free)(sgi_question_host *hosting);

    /* True when the session's host can receive messages. While the result is false, the
     * handshake of the session waits. The host calls sgi_handshake_begin when it is
     * ready. */
    bool (*is_ready)(sgi_question_host *hosting);
    /* Begins the host's conversation with the MCP server. Called when the session's
     * handshake is over. */
    void (*open)(sgi_question_host *hosting);
    /* Reports to the session's host that the connection to the MCP server is lost. The
     * session may connect again. */
    void (*cut)(sgi_question_host *hosting, const char *why);
    /* Ends the host's conversation. Called when the session is over. */
    void (*end)(sgi_question_host *hosting);
    /* Handles a request or a notification of the MCP server. Returns false when the
     * message is not for the host. */
    bool (*takes)(sgi_question_host *hosting, const sgi_message *msg);
    /* False while the host has too many unsent answers. The session must then read no
     * more input. */
    bool (*wants_input)(const sgi_question_host *hosting);
    /* Sends one of the host's waiting messages. Called over HTTP, when there is room for
     * one more message under way. */
    void (*go)(sgi_question_host *hosting);

    /* Writes the members requests, cancel and list of the capability `tasks`. */
    void (*write_tasks)(sgi_jw *w, const segue_server *host);
    /* Writes members of the capabilities of initialize: the kinds of questions that the
     * host can answer. Leaves out those that `given` already declares. */
    void (*write_questions)(sgi_jw *w, const segue_server *host, sgi_json given);
} sgi_question_host_ops;

/* A host of a session. The struct of every host begins with this struct. */
struct sgi_question_host {
    const sgi_question_host_ops *table;
};

/* ---- the functions of the table, for a session with or without a host ---- */

static inline segue_status sgi_question_host_join(segue_session *session,
                                                  segue_server *host)
{
    return host ? session->engine->hosting->join(session, host) : SEGUE_OK;
}

static inline void sgi_question_host_free(segue_session *session)
{
    if (session->hosting)
        session->hosting->table->free(session->hosting);
}

static inline bool sgi_question_host_is_ready(segue_session *session)
{
    return !session->hosting || session->hosting->table->is_ready(session->hosting);
}

static inline void sgi_question_host_open(segue_session *session)
{
    if (session->hosting)
        session->hosting->table->open(session->hosting);
}

static inline void sgi_question_host_cut(segue_session *session, const char *why)
{
    if (session->hosting)
        session->hosting->table->cut(session->hosting, why);
}

static inline void sgi_question_host_end(segue_session *session)
{
    if (session->hosting)
        session->hosting->table->end(session->hosting);
}

static inline bool sgi_question_host_takes(segue_session *session, const sgi_message *msg)
{
    return session->hosting && session->hosting->table->takes(session->hosting, msg);
}

static inline bool sgi_question_host_wants_input(const segue_session *session)
{
    return !session->hosting || session->hosting->table->wants_input(session->hosting);
}

static inline void sgi_question_host_resume_input(segue_session *session)
{
    if (session->hosting)
        session->hosting->table->go(session->hosting);
}

/* This function and the next one run while the session is made, before session->hosting
 * is set. So they use options.host. */

static inline void sgi_question_host_write_tasks(sgi_jw *w, const segue_session *session)
{
    if (session->options.host)
        session->engine->hosting->write_tasks(w, session->options.host);
}

static inline void
sgi_question_host_write_questions(sgi_jw *w, const segue_session *session, sgi_json given)
{
    if (session->options.host)
        session->engine->hosting->write_questions(w, session->options.host, given);
}

#endif
