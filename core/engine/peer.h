/* The serving side of a conversation: which requests are in flight, in which era each
 * came, and the way back to whoever asked. */
#ifndef SGI_PEER_H
#define SGI_PEER_H

#include "engine/server.h"

typedef struct sgi_reply sgi_reply;

struct sgi_peer {
    segue_server *server; /* counted */
    sgi_conn *conn;       /* counted */
    TAILQ_ENTRY(sgi_peer) link;
    sgi_principal *who;
    sgi_map in_flight; /* sgi_reply by id */
    sgi_buf id_text;   /* canonical id of the request that is looked at */
    int32_t stream_count;
    sgi_version legacy; /* negotiated by initialize; UNKNOWN before */
    bool initialized;
    int32_t log_level; /* set by logging/setLevel (legacy); -1 = none wanted */
    bool reading;      /* recovery is through, and it is known who asks */
    sgi_ready ready;   /* the application is asked who it is */
    LIST_HEAD(, sgi_listen) listens; /* subscriptions.c */
};

/* One request as it came; views into the message. */
typedef struct sgi_inbound {
    sgi_peer *peer;
    sgi_json id;              /* canonical; lives in the peer */
    sgi_json params;          /* an object, or empty */
    sgi_json meta;            /* params._meta, or empty */
    sgi_json name, arguments; /* of params */
    sgi_json protocol, capabilities, level, progress, key; /* of meta */
    sgi_version version;
    uint32_t caps;     /* sgi_cap */
    int32_t log_level; /* index of the level; -1 = none wanted */
} sgi_inbound;

/* A request that is answered later. Owned by whoever answers it: sgi_reply_close ends it.
 * If the client cancels it or goes away first, `cancelled` runs, if set, and nothing that
 * is sent through the reply reaches anybody; closing it stays the owner's duty. */
struct sgi_reply {
    sgi_map_node node;
    sgi_peer *peer; /* NULL = cancelled, or the conversation is lost */
    sgi_engine *engine;
    char *id; /* canonical JSON text; id_room when it fits */
    char id_room[24];
    bool modern;
    bool is_stream;
    char *progress_token; /* JSON text or NULL */
    int32_t log_level;
    void (*cancelled)(sgi_reply *reply);
    bool lost; /* for cancelled: the conversation is gone; else the client said so */
    void *user;
    sgi_waiter waiter; /* for the owner: one wait on an operation's log */
};

/* Recovery is through: requests may come. */
void sgi_peer_open(sgi_peer *peer);
void sgi_peer_close(sgi_peer *peer);

/* NULL when out of memory or over a limit; the request was then answered with an
 * error. */
sgi_reply *sgi_reply_open(const sgi_inbound *in, bool is_stream);
void sgi_reply_close(sgi_reply *reply);

/* Answers at once. */
void sgi_answer_error(const sgi_inbound *in, int32_t code, const char *message,
                      const char *data);
/* Begins a result; resultType is added in the modern era. End with sgi_send_end. */
void sgi_answer_result(sgi_sending *sending, const sgi_inbound *in,
                       const char *result_type);
/* _meta with serverInfo: the last member of a modern result. */
void sgi_send_meta(sgi_sending *sending, segue_server *server);

/* The same for replies: false when nobody is there to hear; nothing was begun then. */
bool sgi_reply_result(sgi_sending *sending, sgi_reply *reply, const char *result_type);
bool sgi_reply_notification(sgi_sending *sending, sgi_reply *reply, const char *method);
void sgi_reply_error(sgi_reply *reply, int32_t code, sgi_str message, sgi_json data);

/* A failed look-up: counts it, and says what R-0-5 allows to be said. */
void sgi_answer_not_found(sgi_reply *reply, const char *message);

/* ---- methods ---- */

typedef struct sgi_method {
    const char *name;
    uint32_t caps; /* what the client must have declared (modern) */
    void (*run)(const sgi_inbound *in);
} sgi_method;

/* era_modern.c, era_legacy.c */
void sgi_modern_request(sgi_inbound *in, sgi_str method);
void sgi_legacy_request(sgi_inbound *in, sgi_str method);

/* tools.c */
void sgi_tools_list(const sgi_inbound *in);
void sgi_tools_call(const sgi_inbound *in);
/* subscriptions.c */
void sgi_subscriptions_listen(const sgi_inbound *in);
void sgi_tools_changed(segue_server *server);
void sgi_listens_close(sgi_peer *peer);

/* "debug" = 0 ... "emergency" = 7; -1 for no level. */
int32_t sgi_log_level(sgi_str text);

#endif
