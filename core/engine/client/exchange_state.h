/* One HTTP exchange of a client. Three files use it: exchange_send.c sends the
 * message, exchange_receive.c receives the answer, and exchange_refused.c handles a
 * response that is no answer. */
#ifndef SGI_EXCHANGE_STATE_H
#define SGI_EXCHANGE_STATE_H

#include "engine/client/exchange_start.h"

struct sgi_exchange {
    /* links the exchange into the list of exchanges that the transport has to handle
     * next */
    TAILQ_ENTRY(sgi_exchange) link;
    bool marked;
    bool taken;      /* the transport has a reference to the exchange */
    bool over;       /* no emitter and no session waits for the answer any more */
    bool waited_for; /* an emitter has waited for the answer */
    sgi_conn *conn;
    segue_session *session; /* a counted reference */
    sgi_emitter *emitter;   /* the emitter that waits for the answer, or NULL */
    sgi_exchange_kind kind;
    sgi_version version;
    sgi_buf method; /* the method of the message, decoded from JSON */
    sgi_buf name;   /* the value of Mcp-Name */
    bool has_name;
    sgi_buf params;       /* the headers Mcp-Param-*, packed as name NUL value NUL */
    int32_t wire_session; /* the wire session of `session` when the message was written */
    bool has_response;    /* a part of the response has arrived */
    /* the stream of the response broke, and the transport tries to open it again */
    bool resumed;
    /* duration of the pauses so far, over all attempts in a row to open the stream
     * again */
    int64_t lost_ms;
    bool held;   /* the exchange waits for a token or for a free connection */
    bool unsent; /* nothing of the message has reached the server */
    /* the message is notifications/initialized: the session opens when the server has
     * accepted it */
    bool announces;
    int64_t withdraws; /* id of the call that this message withdraws; 0 = none */
    sgi_buf answers;   /* id of the server's question whose answer this message is */
    /* the server has accepted the message for good, or refused it for good */
    bool settled;
};

/* The callbacks of the exchange's conversation (exchange_receive.c). */
extern const sgi_role sgi_exchange_role;

/* True when the HTTP headers of this exchange repeat the method of the message. This is
 * so in 2026-07-28 and in the draft before it. */
bool sgi_exchange_repeats_method(const sgi_exchange *exchange);

#endif
