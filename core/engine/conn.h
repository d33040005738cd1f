/* One conversation over one transport, in either role: framing in, messages out. What the
 * messages mean is the role's business: peer.c for a server, session.c for a client.
 *
 * Over a byte stream it is the whole conversation. Over HTTP each exchange, one message
 * and what answers it, is a conversation of its own: serve_http.c makes those of a
 * server, ask_http.c those of a client.
 *
 * Output has two ways. Messages are appended to `out` as they are due. Sources (streams
 * that may be endless) are asked for more only when `out` is nearly empty, so a slow
 * transport slows a stream down and never makes a queue. */
#ifndef SGI_CONN_H
#define SGI_CONN_H

#include "engine/engine.h"
#include "engine/exchange.h"
#include "engine/negotiate.h"
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
    /* What came is no message, and nothing tells which request it belongs to. */
    void (*bad_input)(void *self, int32_t rpc_code, const char *problem);
    /* Takes a batch; false when this is none, or nobody may send one. */
    bool (*batch)(void *self, sgi_str text);
    void (*lost)(void *self, const char *why);
    bool (*wants_input)(void *self);
    void (*detached)(
        void *self);           /* the transport is gone for good; drops its reference */
    void (*freed)(void *self); /* the last reference is gone; NULL = nobody minds */
    /* A byte stream calls this before it takes output: everything taken earlier has been
     * written. True asks for another call after the output taken now. NULL = the role
     * needs no such call. */
    bool (*passed)(void *self);
} sgi_role;

/* Who carries a conversation that has no transport: another conversation of this engine
 * (engine/hosting). Each is called under the lock and may only note that there is
 * something to do. */
typedef struct sgi_bearer {
    sgi_conn *outer;                           /* that it is carried by now, or NULL */
    void (*output)(struct sgi_bearer *bearer); /* take it with sgi_conn_output */
    void (*input)(struct sgi_bearer *bearer);  /* it takes messages again */
    void (*close)(struct sgi_bearer *bearer);  /* it is to end */
} sgi_bearer;

/* How messages stand in the output. */
typedef enum sgi_frames {
    SGI_FRAMES_LINES = 0, /* one per line */
    SGI_FRAMES_OPEN,      /* the answer of an HTTP exchange: its first message decides */
    SGI_FRAMES_BODY,      /* the answer is one message */
    SGI_FRAMES_EVENTS     /* the answer is a stream of server-sent events */
} sgi_frames;

typedef struct sgi_replay sgi_replay;
typedef struct sgi_exchange sgi_exchange;
typedef struct sgi_batch_answer sgi_batch_answer;

struct sgi_conn {
    sgi_engine *engine;
    int32_t refs;
    const sgi_role *role;
    void *self;
    void *transport;
    sgi_bearer *bearer; /* instead of a transport; NULL nearly always */
    bool up;            /* between start and lost */
    bool closing;       /* close once the output is out */
    bool detached;
    bool told;       /* the host knows that there is output */
    bool stalled;    /* the host was told not to read */
    bool can_reopen; /* the transport can connect again */
    bool sole;       /* its peer has no other way to this process */
    sgi_ndjson framing;
    sgi_buf out;
    TAILQ_HEAD(, sgi_source) sources;
    sgi_batch_answer *batches; /* those that wait for answers; NULL nearly always */
    size_t batch_bytes;        /* of the answers they have */

    /* an HTTP exchange, serving */
    sgi_frames frames;
    bool apart;          /* its messages travel apart: they have no order */
    bool no_events;      /* the client takes no event stream: one message must do */
    bool modern;         /* what HTTP says of an error is 2026-07-28's choice (R-0-4) */
    bool answered;       /* the last message is in the output, or has left */
    int32_t http_status; /* of the answer; 0 = 200 */
    char *lacks;         /* with 403: scopes that the caller needs; NULL = nothing */
    sgi_replay *replay;  /* what the client may ask for again; NULL = nothing */
    bool parting;        /* its transport gets no more: the client is to come again */

    /* asking over HTTP (ask_http.c) */
    bool exchanging;        /* of a session: each message travels by itself */
    uint64_t place;         /* the endpoint it asks */
    const char *place_name; /* the URL of the endpoint; the transport's */
    uint32_t credentials;   /* how often the credentials changed */
    sgi_exchange *exchange; /* of a conversation that is an exchange; else NULL */
};

sgi_conn *sgi_conn_new(sgi_engine *engine, const sgi_role *role, void *self,
                       void *transport);
/* Sends what is queued, then closes. */
void sgi_conn_close(sgi_conn *conn);
/* Reading may go on, if the role wants input again. */
void sgi_conn_resume_input(sgi_conn *conn);

/* What came, as a message; false when it is none: *code and *problem say why, and it was
 * counted. Views of text. */
bool sgi_conn_parse(sgi_engine *engine, sgi_str text, sgi_message *message, int32_t *code,
                    const char **problem);

/* Is it a batch that may be sent in this revision? Only 2025-03-26 has them. */
bool sgi_conn_is_batch(sgi_engine *engine, sgi_version version, sgi_str text);
/* What an item of a batch is, without counting what is none (then false). */
bool sgi_conn_peek(sgi_engine *engine, sgi_json item, sgi_message *message);
/* Each message of a batch as if it had come alone. */
void sgi_conn_each(sgi_conn *conn, sgi_str batch);

/* Begins to be carried by another conversation: one message per line. */
void sgi_conn_carry(sgi_conn *conn, sgi_bearer *bearer);

void sgi_source_ready(sgi_conn *conn, sgi_source *source);
void sgi_source_remove(sgi_conn *conn, sgi_source *source);

/* More than this is unsent: what may be dropped (progress) is dropped. */
bool sgi_conn_is_full(const sgi_conn *conn);
/* There is output. */
void sgi_conn_tell(sgi_conn *conn);

#endif
