/* One conversation over one transport, in either role. It receives bytes, splits them
 * into messages, and sends messages. The role gives the messages their meaning: serving.c
 * for a server, session.c for a client.
 *
 * A byte stream carries one whole conversation. Over HTTP each exchange (one message and
 * its answer) is a conversation of its own: serve_http.c makes those of a server,
 * exchange_receive.c those of a client.
 *
 * Output comes from `out` and from sources. Single messages are appended to `out` as
 * they are due. Sources are streams that may be endless. They are asked for more only
 * when `out` is nearly empty, so a slow transport slows a stream down and never makes
 * a queue. */
#ifndef SGI_CONN_H
#define SGI_CONN_H

#include "engine/engine.h"
#include "engine/conversation/conn_port.h"
#include "wire/jsonrpc.h"
#include "wire/ndjson.h"
#include "wire/version.h"

typedef struct sgi_source {
    TAILQ_ENTRY(sgi_source) link;
    bool queued;
    /* Appends messages of about `room` bytes to conn->out. Returns true when the source
     * has more messages now. */
    bool (*fill)(struct sgi_source *source, size_t room);
} sgi_source;

/* The functions of a role, which handle the messages and the end of a conversation. All
 * are called under the lock. */
typedef struct sgi_role {
    void (*start)(void *self);
    void (*message)(void *self, const sgi_message *message);
    /* Called when input is no message, and no id shows to which request the input
     * belongs. */
    void (*bad_input)(void *self, int32_t rpc_code, const char *problem);
    /* Handles a batch. Returns false when the text is not a batch, or batches are not
     * allowed. */
    bool (*batch)(void *self, sgi_str text);
    void (*lost)(void *self, const char *why);
    bool (*wants_input)(void *self);
    /* called when the transport is gone for good; drops the reference that the transport
     * had to `self` */
    void (*detached)(void *self);
    /* called when the last reference is gone; NULL = the role does not need this call */
    void (*freed)(void *self);
    /* Called by a byte stream before it takes output, when all output taken earlier has
     * been written. Returns true when the role needs one more such call, after the output
     * that is now taken was written. NULL = the role needs no such call. */
    bool (*passed)(void *self);
    /* Called when an event was stored for a client that is not connected (replay.h). NULL
     * = the role stores no events. */
    void (*kept)(void *self);
} sgi_role;

/* Functions for a conversation that has no transport, because another conversation of
 * this engine carries it (engine/reverse). Each function is called under the lock and may
 * only note that there is work. */
typedef struct sgi_outer_conn {
    /* the outer conversation, which carries this conversation now; or NULL */
    sgi_conn *outer;
    /* called when output is ready; the outer conversation takes the output with
     * sgi_conn_output */
    void (*output)(struct sgi_outer_conn *outer_conn);
    /* called when the conversation can receive messages again */
    void (*input)(struct sgi_outer_conn *outer_conn);
    /* called when this conversation has to end */
    void (*close)(struct sgi_outer_conn *outer_conn);
} sgi_outer_conn;

/* The framing of messages in the output. */
typedef enum sgi_frames {
    SGI_FRAMES_LINES = 0, /* one message per line */
    /* the form of the answer of an HTTP exchange is open until its first message */
    SGI_FRAMES_OPEN,
    SGI_FRAMES_BODY, /* the answer of the HTTP exchange is one message */
    /* the answer of the HTTP exchange is a stream of server-sent events */
    SGI_FRAMES_EVENTS
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
    /* carries the conversation instead of a transport; usually NULL */
    sgi_outer_conn *outer_conn;
    /* the conversation is connected: true between sgi_conn_start and sgi_conn_lost */
    bool up;
    /* the transport closes the connection when it has taken the output */
    bool closing;
    bool detached;
    bool output_notified; /* the host was notified that there is output */
    bool stalled;         /* the host was asked to stop reading */
    bool can_reopen;      /* the transport can connect again after a loss */
    bool sole;            /* the peer has no other connection to this process */
    sgi_ndjson framing;
    sgi_buf out;
    TAILQ_HEAD(, sgi_source) sources;
    sgi_batch_answer *batches; /* the batches that wait for answers; usually NULL */
    /* number of bytes of the answers that these batches have collected */
    size_t batch_bytes;

    /* The following members are used for an HTTP exchange of a server. */
    sgi_frames frames;
    /* the messages travel on several connections, so they may arrive in any order */
    bool unordered;
    /* the client accepts no event stream, so the answer must be one message */
    bool no_events;
    bool modern; /* errors get the HTTP statuses of 2026-07-28 (R-0-4) */
    /* the last message of the answer is in the output, or was sent */
    bool answered;
    int32_t http_status; /* HTTP status of the answer; 0 = 200 */
    char *lacks;         /* for status 403: scopes that the caller needs; NULL = none */
    /* the stored events, which the client may request again; NULL = none are stored */
    sgi_replay *replay;
    /* the exchange ends now: the transport takes no more output, and the client has to
     * connect again */
    bool parting;

    /* The following members are used for a client over HTTP (exchange_receive.c). */
    /* each message of this session is an HTTP exchange of its own */
    bool exchanging;
    /* number of the endpoint, under which the era of its server is remembered
     * (era_memory.h) */
    uint64_t endpoint;
    const char *endpoint_name; /* the URL of the endpoint; belongs to the transport */
    /* counts the changes of the credentials; a new number may mean a new user */
    uint32_t credentials;
    /* the exchange that this conversation carries; NULL = the conversation is no exchange
     * of a client */
    sgi_exchange *exchange;
};

sgi_conn *sgi_conn_new(sgi_engine *engine, const sgi_role *role, void *self,
                       void *transport);
/* Closes the connection when the queued output has been sent. */
void sgi_conn_close(sgi_conn *conn);
/* Lets the transport read again, if the role wants input. */
void sgi_conn_resume_input(sgi_conn *conn);

/* Parses input as a message. Returns false when the input is no message: *code and
 * *problem then say why, and the input is counted as invalid. The message has views of
 * text. */
bool sgi_conn_parse(sgi_engine *engine, sgi_str text, sgi_message *message, int32_t *code,
                    const char **problem);

/* True when the text is a batch and this revision allows batches (only 2025-03-26
 * does). */
bool sgi_conn_is_batch(sgi_engine *engine, sgi_version version, sgi_str text);
/* Parses one item of a batch. Returns false when the item is no message; the item is not
 * counted as invalid. */
bool sgi_conn_parse_batch_item(sgi_engine *engine, sgi_json item, sgi_message *message);
/* Handles each message of a batch as if the message had come alone. */
void sgi_conn_take_batch(sgi_conn *conn, sgi_str batch);

/* Lets another conversation (outer_conn->outer) carry this conversation, with one message
 * per line. */
void sgi_conn_set_outer(sgi_conn *conn, sgi_outer_conn *outer_conn);

void sgi_source_queue(sgi_conn *conn, sgi_source *source);
void sgi_source_remove(sgi_conn *conn, sgi_source *source);

/* True when the unsent output is larger than its limit. The caller then drops messages
 * that may be dropped (progress). */
bool sgi_conn_is_full(const sgi_conn *conn);
/* Notifies the host that there is output. */
void sgi_conn_notify_output(sgi_conn *conn);

#endif
