/* One conversation over one transport, in either role. It receives bytes, splits them
 * into messages, and sends messages. The role handles the messages: serving.c for a
 * server, session.c for a client.
 *
 * A byte stream carries one whole conversation. Over HTTP each exchange (one message and
 * its answer) is a conversation of its own. serve_http.c makes the conversations of a
 * server's exchanges, exchange_receive.c those of a client's.
 *
 * Output comes from `out` and from sources. Single messages are appended to `out`. A
 * source is a stream of messages that may never end. Sources are asked for messages only
 * when `out` is nearly empty, so that a slow transport slows the source down and no queue
 * grows. */
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
    /* Called when input is not a message and contains no id of a request. */
    void (*bad_input)(void *self, int32_t rpc_code, const char *problem);
    /* Handles a batch. Returns false when the text is not a batch, or batches are not
     * allowed. */
    bool (*batch)(void *self, sgi_str text);
    void (*lost)(void *self, const char *why);
    bool (*wants_input)(void *self);
    /* called when the transport will not come back; drops the transport's reference to
     * `self` */
    void (*detached)(void *self);
    /* called when the last reference to the conversation is dropped; may be NULL */
    void (*freed)(void *self);
    /* Called by a byte stream each time before it takes output, when everything that it
     * took before was written. Returns true to be called once more after the new output
     * was written. May be NULL. */
    bool (*passed)(void *self);
    /* Called when an event was stored for a client that is not connected (replay.h). NULL
     * for a role that stores no events. */
    void (*kept)(void *self);
} sgi_role;

/* Functions for a conversation without a transport of its own: another conversation of
 * this engine carries it (engine/reverse). Each function is called under the lock. It
 * only notes that there is work, and does the work later. */
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
    /* an HTTP exchange that has not sent its first message: the answer can still become a
     * body or a stream */
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
    /* true between sgi_conn_start and sgi_conn_lost, while the conversation is
     * connected */
    bool up;
    /* the transport must close the connection after it has sent the output */
    bool closing;
    bool detached;
    bool output_notified; /* the host was notified that there is output */
    bool stalled;         /* the host was asked to stop reading */
    bool can_reopen;      /* the transport can connect again after a loss */
    bool sole;            /* this process has no other connection to the peer */
    sgi_ndjson framing;
    sgi_buf out;
    TAILQ_HEAD(, sgi_source) sources;
    sgi_batch_answer *batches; /* the batches that wait for answers; usually NULL */
    /* number of bytes of the answers that these batches have collected */
    size_t batch_bytes;

    /* The following members are used for an HTTP exchange of a server. */
    sgi_frames frames;
    /* each message may use another connection, so messages may arrive in any order */
    bool unordered;
    /* the client accepts no event stream, so the answer must be one message */
    bool no_events;
    /* the request belongs to no wire session; its errors get the HTTP statuses of
     * 2026-07-28 (R-0-4) */
    bool stateless;
    /* the last message of the answer was sent or is in the output */
    bool answered;
    int32_t http_status; /* HTTP status of the answer; 0 = 200 */
    /* with status 403: the scopes that the caller needs; NULL = unknown */
    char *lacks;
    /* stored events for a client that resumes the stream; NULL = no events are stored */
    sgi_replay *replay;
    /* the exchange ends early: the transport takes no more output, and the client has to
     * connect again */
    bool parting;

    /* The following members are used for a client over HTTP (exchange_receive.c). */
    /* the session runs over HTTP: each of its messages is an exchange of its own */
    bool exchanging;
    /* number of the endpoint, under which the era of its server is remembered
     * (era_memory.h) */
    uint64_t endpoint;
    const char *endpoint_name; /* the URL of the endpoint; belongs to the transport */
    /* incremented when the credentials change, because a new user may then use the
     * session */
    uint32_t credentials;
    /* the client's exchange to which this conversation belongs; NULL for any other
     * conversation */
    sgi_exchange *exchange;
};

sgi_conn *sgi_conn_new(sgi_engine *engine, const sgi_role *role, void *self,
                       void *transport);
/* Closes the connection when the queued output has been sent. */
void sgi_conn_close(sgi_conn *conn);
/* Tells the transport to read again, if the role accepts input. */
void sgi_conn_resume_input(sgi_conn *conn);

/* Parses input as a message. On failure returns false, sets *code and *problem, and
 * counts the input as invalid. The strings of the message point into text. */
bool sgi_conn_parse(sgi_engine *engine, sgi_str text, sgi_message *message, int32_t *code,
                    const char **problem);

/* True when the text is an array of JSON. In a version that has batches the text is then
 * a batch. */
bool sgi_conn_is_batch(sgi_engine *engine, sgi_str text);
/* Parses one item of a batch. Returns false when the item is not a message. Does not
 * count the failure. */
bool sgi_conn_parse_batch_item(sgi_engine *engine, sgi_json item, sgi_message *message);
/* Handles each message of a batch as if the message had come alone. */
void sgi_conn_take_batch(sgi_conn *conn, sgi_str batch);

/* Makes outer_conn->outer carry this conversation. The framing is one message per
 * line. */
void sgi_conn_set_outer(sgi_conn *conn, sgi_outer_conn *outer_conn);

void sgi_source_queue(sgi_conn *conn, sgi_source *source);
void sgi_source_remove(sgi_conn *conn, sgi_source *source);

/* True when the unsent output has reached its limit. The caller may then leave out
 * messages that are not needed, such as progress. */
bool sgi_conn_is_full(const sgi_conn *conn);
/* Notifies the host that there is output. */
void sgi_conn_notify_output(sgi_conn *conn);

#endif
