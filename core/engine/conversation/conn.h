/* One conversation over one transport, in either role. A conversation receives bytes,
 * splits the bytes into messages, and sends messages. The role handles the messages:
 * serving.c for a server, session.c for a client.
 *
 * A byte stream carries one whole conversation. Over HTTP each exchange (one message and
 * its answer) is a separate conversation. serve_http.c makes the conversations of a
 * server's exchanges, exchange_send.c makes those of a client's exchanges.
 *
 * Output comes from `out` and from sources. Single messages are appended to `out`. A
 * source is a stream of messages that may never end. A source is asked for messages only
 * when `out` is nearly empty, so that a slow transport slows down the source and no queue
 * grows. */
#ifndef SGI_CONN_H
#define SGI_CONN_H

#include "engine/engine.h"
#include "engine/conversation/conn_port.h"
#include "wire/jsonrpc.h"
#include "wire/ndjson.h"
#include "wire/version.h"

typedef struct sgi_output_source {
    TAILQ_ENTRY(sgi_output_source) link;
    bool queued;
    /* Appends messages of about `room` bytes to conn->out. Returns true when the source
     * can write more messages now. */
    bool (*fill)(struct sgi_output_source *source, size_t room);
} sgi_output_source;

/* The functions of a role, which handle the messages and the end of a conversation. All
 * functions are called under the lock. */
typedef struct sgi_conn_role {
    void (*start)(void *self);
    void (*message)(void *self, const sgi_message *message);
    /* Called when input is not a message and contains no request id. */
    void (*bad_input)(void *self, int32_t rpc_code, const char *problem);
    /* Handles a batch. Returns false when the text is not a batch, or when batches are
     * not allowed. NULL = the role handles no batches. */
    bool (*batch)(void *self, sgi_str text);
    void (*lost)(void *self, const char *why);
    bool (*wants_input)(void *self);
    /* called when the transport will not carry this conversation again; drops the
     * transport's reference to `self` */
    void (*detached)(void *self);
    /* called when the last reference to the conversation is dropped; NULL = no call */
    void (*freed)(void *self);
    /* Called each time before a byte stream takes output, when it has written everything
     * that it took before. Returns true to be called once more after the new output was
     * written. NULL = no call. */
    bool (*passed)(void *self);
    /* Called when an event was stored for a client that is not connected (replay.h). NULL
     * = no call, because the role stores no events. */
    void (*kept)(void *self);
} sgi_conn_role;

/* Functions for a conversation that another conversation of this engine carries instead
 * of a transport (engine/reverse). Each function is called under the lock, only notes
 * that there is work, and does the work later. */
typedef struct sgi_outer_conn {
    /* the outer conversation, which carries this conversation now; NULL = no conversation
     * carries it */
    sgi_conn *outer;
    /* called when output is ready; the outer conversation takes the output by
     * sgi_conn_take_output */
    void (*output)(struct sgi_outer_conn *outer_conn);
    /* called when the conversation can receive messages again */
    void (*input)(struct sgi_outer_conn *outer_conn);
    /* called when this conversation must end */
    void (*close)(struct sgi_outer_conn *outer_conn);
} sgi_outer_conn;

/* The framing of messages in the output. */
typedef enum sgi_frames {
    SGI_FRAMES_LINES = 0, /* one message per line */
    /* an HTTP exchange that has sent no message yet: the answer can still become a body
     * or a stream */
    SGI_FRAMES_OPEN,
    SGI_FRAMES_BODY, /* the answer of the HTTP exchange is a body with one message */
    /* the answer of the HTTP exchange is a stream of server-sent events */
    SGI_FRAMES_EVENTS
} sgi_frames;

typedef struct sgi_replay sgi_replay;
typedef struct sgi_exchange sgi_exchange;
typedef struct sgi_batch_answer sgi_batch_answer;

struct sgi_conn {
    sgi_engine *engine;
    int32_t refs;
    const sgi_conn_role *role;
    void *self;
    void *transport;
    /* carries the conversation instead of a transport; NULL = a transport carries the
     * conversation */
    sgi_outer_conn *outer_conn;
    /* the conversation is connected: sgi_conn_on_lost was not called since the last
     * sgi_conn_start */
    bool up;
    /* the transport must close the connection when it has sent the output */
    bool closing;
    bool detached;
    bool output_notified; /* the runtime (host) knows that there is output */
    bool stalled;         /* the transport was asked to stop reading */
    bool can_reopen;      /* the transport can connect again after a loss */
    bool sole;            /* the peer has no other connection to this process */
    sgi_ndjson framing;
    sgi_buf out;
    /* Number of bytes of `out` that input has caused: responses, and what is unsent when
     * the peer makes this side withdraw a question (sgi_conn_count_output). When there
     * are too many, no input is read. Other requests and notifications do not count: a
     * peer that waits until this side reads would wait for ever. Two sides that both have
     * too many responses unsent still wait for each other until a time limit ends it. */
    size_t caused_bytes;
    TAILQ_HEAD(, sgi_output_source) sources;
    /* the open batches, a linked list (batch.h); NULL = there is no open batch */
    sgi_batch_answer *batches;
    /* number of bytes of the answers that the open batches have collected */
    size_t batch_bytes;
    /* Offset in `out` of the params of the message that was begun last; 0 = it has none,
     * or was not written member by member. It is valid until the message is taken or
     * dropped. */
    size_t params_at;

    /* The framing of messages. The members below are used for an HTTP exchange of a
     * server. */
    sgi_frames frames;
    /* each message can use another connection, so messages can arrive in any order */
    bool unordered;
    /* the client accepts no event stream, so the answer must be one message */
    bool no_events;
    /* the request belongs to no wire session, so errors have the HTTP statuses of
     * 2026-07-28 (R-0-4) */
    bool stateless;
    /* the last message of the answer was sent or is in the output */
    bool answered;
    int32_t http_status; /* HTTP status of the answer; 0 = 200 */
    /* for status 403: the scopes that the caller needs; NULL = no scope is missing */
    char *lacks;
    /* stored events for a client that resumes the stream; NULL = no events are stored */
    sgi_replay *replay;
    /* the exchange ends early: the transport takes no more output, and the client must
     * connect again */
    bool parting;

    /* The members below are used for a client over HTTP (exchange_receive.c). */
    /* the session runs over HTTP: each message of the session is a separate exchange */
    bool exchanging;
    /* number of the endpoint; the era memory stores the server's era under this number
     * (era_memory.h) */
    uint64_t endpoint;
    const char *endpoint_name; /* the URL of the endpoint; the transport owns the text */
    /* number of changes of the credentials so far; after a change, another user may use
     * the session */
    uint32_t credentials;
    /* the client exchange to which this conversation belongs; NULL = the conversation
     * does not belong to a client exchange */
    sgi_exchange *exchange;
};

sgi_conn *sgi_conn_new(sgi_engine *engine, const sgi_conn_role *role, void *self,
                       void *transport);
/* Closes the connection when the queued output has been sent. */
void sgi_conn_close(sgi_conn *conn);
/* Asks the transport to read again, if the role accepts input now. */
void sgi_conn_resume_input(sgi_conn *conn);

/* Parses input as a message. On failure returns false, sets *code and *problem, and
 * counts the input as invalid. The strings of the message point into `text`. whose: see
 * sgi_engine_shapes_of. */
bool sgi_conn_parse(sgi_engine *engine, const void *whose, sgi_str text,
                    sgi_message *message, int32_t *code, const char **problem);

/* True when the text is a JSON array. In a protocol version with batches, such a text is
 * a batch. */
bool sgi_conn_is_batch(sgi_engine *engine, sgi_str text);
/* Parses one item of a batch. Returns false when the item is not a message; the failure
 * is not counted. */
bool sgi_conn_parse_batch_item(sgi_engine *engine, sgi_json item, sgi_message *message);
/* Handles each message of a batch as if the message had arrived alone. */
void sgi_conn_handle_batch(sgi_conn *conn, sgi_str batch);

/* Makes outer_conn->outer carry this conversation. Each message of the output is one
 * line. */
void sgi_conn_set_outer(sgi_conn *conn, sgi_outer_conn *outer_conn);

void sgi_output_source_queue(sgi_conn *conn, sgi_output_source *source);
void sgi_output_source_remove(sgi_conn *conn, sgi_output_source *source);

/* True when the unsent output has reached its limit. The caller can then omit messages
 * that are not necessary, such as progress. */
bool sgi_conn_is_full(const sgi_conn *conn);
/* Counts all unsent output as caused by input. A peer that reads nothing could otherwise
 * make any number of messages that no limit on requests counts. */
void sgi_conn_count_output(sgi_conn *conn);
/* Notifies the host, or the outer conversation, that there is output. */
void sgi_conn_notify_output(sgi_conn *conn);

#endif
