/* One HTTP exchange of a client. Three files use it: exchange_send.c sends the
 * message, exchange_receive.c receives the answer, and exchange_refused.c handles a
 * response that is no answer. */
#ifndef SGI_EXCHANGE_STATE_H
#define SGI_EXCHANGE_STATE_H

#include "engine/client/exchange_start.h"
#include "engine/client/probing.h"

struct sgi_exchange {
    /* link in the list of exchanges that the transport has to handle next */
    TAILQ_ENTRY(sgi_exchange) link;
    bool marked;
    bool taken; /* true when the transport has a reference to the exchange */
    /* true when no emitter and no session waits for the answer any more */
    bool over;
    bool waited_for; /* true when an emitter waits, or has waited, for the answer */
    sgi_conn *conn;
    segue_session *session; /* a counted reference */
    /* the emitter that waits for the answer; NULL = no emitter waits */
    sgi_emitter *emitter;
    sgi_exchange_kind kind;
    sgi_version version;
    sgi_buf method; /* the method of the message, decoded from JSON */
    sgi_buf name;   /* the encoded value of the header Mcp-Name */
    bool has_name;
    sgi_buf params; /* the headers Mcp-Param-*, packed as name NUL value NUL */
    /* number of the wire session in which the message was written */
    int32_t wire_session;
    bool has_response; /* true when a part of the response has arrived */
    /* true when the stream of the response broke and the transport tries to open it
     * again */
    bool resumed;
    /* sum in ms of the pauses between the attempts to reopen the stream since it last
     * worked */
    int64_t lost_ms;
    sgi_probing probing; /* the last pause before such an attempt */
    /* true while the exchange waits for an access token or for a free connection */
    bool held;
    sgi_loss loss; /* how the last attempt would be lost, if the exchange ended now */
    /* true when the message is notifications/initialized: the session opens when the
     * server has accepted the message */
    bool announces;
    /* id of the call that this message withdraws; 0 = the message withdraws no call */
    int64_t withdraws;
    /* for an answer to a server's question: the id of the question (JSON); otherwise
     * empty */
    sgi_buf answers;
    /* true when the server has accepted or refused the message and the decision is
     * final */
    bool settled;
};

/* The callbacks of the exchange's conversation (exchange_receive.c). */
extern const sgi_conn_role sgi_exchange_role;

/* True when an HTTP header of this exchange repeats the method of the message. This is
 * true in 2026-07-28 and in DRAFT-2026-v1. */
bool sgi_exchange_has_method_header(const sgi_exchange *exchange);

#endif
