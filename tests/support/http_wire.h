/* HTTP exchanges without a network: the test passes requests as heads and bodies, and the
 * wire keeps the output as text. One wire carries one exchange at a time, as a connection
 * does, and keeps its spare conversation for the next exchange.
 *
 *     http_wire a;
 *     http_wire_init(&a, server, "ada");
 *     http_wire_modern(&a, "1", "tools/call", "\"name\":\"tool\"", "{}");
 *     ... http_wire_text(&a) ... http_wire_cut(&a) ...
 *     http_wire_free(&a);
 *
 * A rig (http_rig) is a server with two wires. */
#ifndef HTTP_WIRE_H
#define HTTP_WIRE_H

#include "engine/server/call.h"
#include "engine/server/serve_http.h"
#include "engine/server/wire_session.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

typedef struct http_wire {
    segue_server *server;
    sgi_principal *who;
    sgi_http_request_head head; /* head of the next request; the tests set it */
    const char *more_names[4];  /* further headers of the next request, in lower case */
    const char *more_values[4];
    sgi_conn *conn; /* the exchange under way; a counted reference */
    sgi_conn *spare;
    sgi_http_serve_verdict verdict;
    sgi_http_answer_state answer;     /* the answer when the test last read it */
    char session[SGI_SESSION_ID_MAX]; /* session id in the last answer that named one */
    sgi_buf text; /* output of the current or last exchange; libc memory */
    char body[4096];
} http_wire;

/* Prepares a wire. name: the name of the principal, NULL = no principal. The principal
 * uses the memory of the host. */
void http_wire_init(http_wire *wire, segue_server *server, const char *name);
/* Frees the wire and cuts the exchange under way. */
void http_wire_free(http_wire *wire);

/* These functions end the earlier exchange of the wire and start a new exchange. They
 * return the status of the verdict or of a complete answer; 0 = no answer yet. */
int32_t http_wire_post(http_wire *wire, const char *body);
int32_t http_wire_get(http_wire *wire, const char *last_event);
int32_t http_wire_delete(http_wire *wire);
/* Send complete requests. id: JSON; params: members, "" = none. */
int32_t http_wire_modern(http_wire *wire, const char *id, const char *method,
                         const char *params, const char *capabilities);
int32_t http_wire_legacy(http_wire *wire, const char *id, const char *method,
                         const char *params);
/* Sends initialize and uses the session of its answer from then on. Returns false when
 * the answer names no session. */
bool http_wire_open(http_wire *wire, const char *version);

/* Returns all output of the exchange. */
const char *http_wire_text(http_wire *wire);
/* Ends the exchange: the client is gone, or has received everything. */
void http_wire_cut(http_wire *wire);

/* http_wire_count counts the occurrences of a part in a text. http_wire_says returns
 * whether the exchange's text contains the part. */
int http_wire_count(const char *text, const char *part);
bool http_wire_says(http_wire *wire, const char *part);

/* Delivers callbacks, then returns the latest call of the handler; NULL without a
 * call. */
segue_call *http_wire_call(segue_server *server);
/* Calls the tool in the session of the wire; the call keeps running. */
segue_call *http_wire_start(http_wire *wire, const char *id);
/* Completes the call, frees it and delivers callbacks. */
void http_wire_finish(segue_call *call);

typedef struct http_rig {
    test_mem mem;
    fake_host host;
    segue_server *server;
    http_wire a, b;
} http_rig;

/* Starts a rig; wire a has the principal "ada". */
void http_rig_begin(http_rig *rig, const char *name_of_b);
/* Ends the rig and checks that all memory was returned. */
void http_rig_end(http_rig *rig);
/* Wire a opens a session of 2025-11-25, and wire b sends its requests in that session. */
void http_rig_open(http_rig *rig);

#endif
