/* A transport of HTTP exchanges without HTTP: requests go in as heads and bodies, and
 * what comes out is kept as text. One wire carries one exchange at a time, as a
 * connection does, and keeps its spare.
 *
 *     http_wire a;
 *     http_wire_init(&a, server, "ada");
 *     http_wire_modern(&a, "1", "tools/call", "\"name\":\"tool\"", "{}");
 *     ... http_wire_text(&a) ... http_wire_cut(&a) ...
 *     http_wire_free(&a);
 *
 * A rig is a server with two such wires. */
#ifndef HTTP_WIRE_H
#define HTTP_WIRE_H

#include "engine/serving/call.h"
#include "engine/serving/serve_http.h"
#include "engine/serving/wire_session.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

typedef struct http_wire {
    segue_server *server;
    sgi_principal *who;
    sgi_http_head head;        /* what the next request says; the tests set it */
    const char *more_names[4]; /* further headers, in lower case */
    const char *more_values[4];
    sgi_conn *conn; /* the exchange under way; counted */
    sgi_conn *spare;
    sgi_http_verdict verdict;
    sgi_http_answer answer;           /* as it stood at the last look */
    char session[SGI_SESSION_ID_MAX]; /* that the last answer named */
    sgi_buf text; /* of the exchange under way, or of the last one; libc memory */
    char body[4096];
} http_wire;

/* name: of the principal, NULL = nobody. The host has the memory for it. */
void http_wire_init(http_wire *wire, segue_server *server, const char *name);
/* Cuts what is under way. */
void http_wire_free(http_wire *wire);

/* These end what was under way, and return the status when there is one already: of the
 * verdict, or of a complete answer; else 0. */
int32_t http_wire_post(http_wire *wire, const char *body);
int32_t http_wire_get(http_wire *wire, const char *last_event);
int32_t http_wire_delete(http_wire *wire);
/* Requests with everything that goes with them. id: JSON; params: members, "" = none. */
int32_t http_wire_modern(http_wire *wire, const char *id, const char *method,
                         const char *params, const char *capabilities);
int32_t http_wire_legacy(http_wire *wire, const char *id, const char *method,
                         const char *params);
/* initialize, and from then on the session that it gives; false when it gives none. */
bool http_wire_open(http_wire *wire, const char *version);

/* All that came of the exchange. */
const char *http_wire_text(http_wire *wire);
/* Gives the exchange back: the client is gone, or has all. */
void http_wire_cut(http_wire *wire);

/* How often this part stands in a text; whether it stands in that of the exchange. */
int http_wire_count(const char *text, const char *part);
bool http_wire_says(http_wire *wire, const char *part);

/* The handler's call that came last, NULL when there is none. Delivers first. */
segue_call *http_wire_call(segue_server *server);
/* A call of the tool in the wire's session; it runs. */
segue_call *http_wire_start(http_wire *wire, const char *id);
/* Completes and frees it, and delivers. */
void http_wire_finish(segue_call *call);

typedef struct http_rig {
    test_mem mem;
    fake_host host;
    segue_server *server;
    http_wire a, b;
} http_rig;

/* a speaks for "ada". */
void http_rig_begin(http_rig *rig, const char *name_of_b);
/* All memory must be back. */
void http_rig_end(http_rig *rig);
/* a opens a session of 2025-11-25, and b speaks in it. */
void http_rig_open(http_rig *rig);

#endif
