/* An exchange of a client over HTTP, for the files that know it: ask_http.c, what goes
 * out and comes back, and ask_refused.c, what comes back and is no answer. */
#ifndef SGI_ASK_EXCHANGE_H
#define SGI_ASK_EXCHANGE_H

#include "engine/asking/ask_http.h"

struct sgi_exchange {
    TAILQ_ENTRY(sgi_exchange) link; /* of those on which there is something to do */
    bool marked;
    bool taken;      /* the transport has its reference */
    bool over;       /* nobody waits for its answer */
    bool waited_for; /* ... or never did */
    sgi_conn *conn;
    segue_session *session; /* counted */
    sgi_emitter *emitter;   /* who waits, or NULL */
    sgi_ask_kind kind;
    sgi_version version;
    sgi_buf method; /* plain text */
    sgi_buf name;   /* the value of Mcp-Name */
    bool has_name;
    sgi_buf params;       /* Mcp-Param-*, packed */
    int32_t wire_session; /* of the session's, when it was written */
    bool heard;           /* something has come back */
    int64_t lost_ms;      /* pauses of a stream that is taken up again, in a row */
    bool held;            /* it waits for a token */
    bool unsent;          /* nothing of it has reached the server */
    bool announces; /* notifications/initialized: the session waits for its acceptance */
    int64_t withdraws; /* it is the withdrawal of this call; 0 = it is none */
    sgi_buf answers;   /* the id of the server's question that it answers */
    bool settled;      /* the server has taken it, or refused it for good */
};

#endif
