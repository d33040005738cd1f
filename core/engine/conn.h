/* One conversation over one transport, in either role: framing in, messages out. What the
 * messages mean is the role's business: peer.c for a server, session.c for a client.
 *
 * Output has two ways. Messages are appended to `out` as they are due. Sources (streams
 * that may be endless) are asked for more only when `out` is nearly empty, so a slow
 * transport slows a stream down and never makes a queue. */
#ifndef SGI_CONN_H
#define SGI_CONN_H

#include "engine/engine.h"
#include "engine/exchange.h"
#include "wire/jsonrpc.h"
#include "wire/ndjson.h"

typedef struct sgi_source {
    TAILQ_ENTRY(sgi_source) link;
    bool queued;
    /* Appends up to about room bytes of messages to conn->out; true when more is there
     * now. */
    bool (*fill)(struct sgi_source *source, size_t room);
} sgi_source;

/* What a role does with a conversation. All under the lock. */
typedef struct sgi_role {
    void (*start)(void *self);
    void (*message)(void *self, const sgi_message *message);
    void (*bad_input)(void *self, int32_t rpc_code, const char *problem);
    void (*lost)(void *self, const char *why);
    bool (*wants_input)(void *self);
    void (*detached)(
        void *self); /* the transport is gone for good; drops its reference */
} sgi_role;

struct sgi_conn {
    sgi_engine *engine;
    int32_t refs;
    const sgi_role *role;
    void *self;
    void *transport;
    bool up;      /* between start and lost */
    bool closing; /* close once the output is out */
    bool detached;
    bool told;       /* the host knows that there is output */
    bool stalled;    /* the host was told not to read */
    bool can_reopen; /* the transport can connect again */
    sgi_ndjson framing;
    sgi_buf out;
    TAILQ_HEAD(, sgi_source) sources;
};

sgi_conn *sgi_conn_new(sgi_engine *engine, const sgi_role *role, void *self,
                       void *transport);
void sgi_conn_ref(sgi_conn *conn);
void sgi_conn_unref(sgi_conn *conn);
/* Sends what is queued, then closes. */
void sgi_conn_close(sgi_conn *conn);
/* Reading may go on, if the role wants input again. */
void sgi_conn_resume_input(sgi_conn *conn);

void sgi_source_ready(sgi_conn *conn, sgi_source *source);
void sgi_source_remove(sgi_conn *conn, sgi_source *source);

/* More than this is unsent: what may be dropped (progress) is dropped. */
bool sgi_conn_is_full(const sgi_conn *conn);

/* ---- writing one message ---- */

/* A message under construction at the end of conn->out. Begin, write members with w,
 * end. */
typedef struct sgi_sending {
    sgi_conn *conn;
    size_t mark;
    int depth; /* objects to close */
    sgi_jw w;
} sgi_sending;

/* {"jsonrpc":"2.0","id":<id>,"result":{ and, when result_type is not NULL, its member */
void sgi_send_result(sgi_sending *sending, sgi_conn *conn, sgi_str id,
                     const char *result_type);
/* {"jsonrpc":"2.0","method":"<method>","params":{ */
void sgi_send_notification(sgi_sending *sending, sgi_conn *conn, const char *method);
/* {"jsonrpc":"2.0","id":<id>,"method":"<method>","params":{ */
void sgi_send_request(sgi_sending *sending, sgi_conn *conn, int64_t id, sgi_str method);
/* Closes what is open. Out of memory closes the conversation: a peer that sees the end
 * can try again, one that waits for an answer that was never sent cannot. */
bool sgi_send_end(sgi_sending *sending);
/* A whole error response. id empty = unknown. */
void sgi_send_error(sgi_conn *conn, sgi_str id, int32_t code, sgi_str message,
                    sgi_json data);
/* The same with an error object that is JSON already. */
void sgi_send_error_object(sgi_conn *conn, sgi_str id, sgi_json error);

#endif
