/* A client over HTTP against a server that the test plays itself, request by request, on
 * the test's own thread: a client_kit whose transport goes to an http_peer. The engine
 * uses the clock of the kit, so timeouts pass only when the test moves the clock. Only
 * the network takes real time: every wait for the network fails the test after ten
 * seconds.
 *
 *     http_script s;
 *     script_begin(&s, NULL, NULL);
 *     script_discover(&s, SERVER_PLAIN);
 *     record *r = kit_call(&s.k, "t");
 *     script_result(script_expect(&s, "tools/call"), "\"content\":[]");
 *     script_until(&s, r->completed);
 *     script_end(&s); */
#ifndef HTTP_SCRIPT_H
#define HTTP_SCRIPT_H

#include "support/client_kit.h"
#include "support/http_peer.h"

typedef struct http_wire http_wire;

typedef struct http_script {
    kit k;
    http_peer peer;
    char url[64];
    size_t piece; /* answers are sent in pieces of this size; 0 = whole */
    size_t most;  /* limit of one message in bytes; 0 = the default */
    segue_http_options options;
    int background; /* the runtime has a thread of its own */
    http_wire *wires;
    struct heard *all;
} http_script;

/* A request of the client. Its texts live until the script ends. */
typedef struct heard {
    struct heard *next;
    http_script *script;
    http_wire *wire;
    char *text; /* the head of the request, NUL-terminated; `body` has the rest */
    char *body;
    bool looked;     /* the test has taken the request */
    char value[512]; /* value of the header that was read last */
} heard;

/* Zeroes the script and starts the server. */
void script_prepare(http_script *s);
/* Opens the session; options may be NULL. */
void script_connect(http_script *s, const segue_session_options *options);
/* Does what script_prepare and script_connect do. */
void script_begin(http_script *s, const segue_session_options *options);
void script_end(http_script *s);

/* Does the work that is due, and handles the bytes that have arrived over the network. */
void script_pump(http_script *s);
#define script_until(s, condition)                                                       \
    do {                                                                                 \
        int64_t until_ = script_deadline();                                              \
        while (!(condition)) {                                                           \
            script_pump(s);                                                              \
            script_check(until_, #condition, __FILE__, __LINE__);                        \
        }                                                                                \
    } while (0)
int64_t script_deadline(void);
void script_check(int64_t until, const char *what, const char *file, int line);
/* Moves the clock of the engine. */
void script_advance(http_script *s, int64_t ms);

/* Waits for the next request: a JSON-RPC method, "GET", "DELETE", or "" for any. */
heard *script_expect(http_script *s, const char *method);
/* Waits for the next request as script_expect does, when several requests run in
 * parallel. Other requests are skipped and keep waiting. */
heard *script_find(http_script *s, const char *method);
/* Returns the first request that the test has not taken, or NULL; does not wait. */
heard *script_next(const http_script *s);
/* Gives the network time and checks that no request came. */
void script_expect_silence(http_script *s);
/* Returns the value of a header; NULL when it was not sent. */
const char *heard_header(heard *h, const char *name);
void assert_header(heard *h, const char *name, const char *value);
/* Runs the loop; returns whether the client has closed the connection of this request. */
bool heard_is_closed(heard *h);

/* Send whole answers. headers: lines that each end in CRLF. */
void script_say(heard *h, const char *status, const char *headers, const char *body);
void script_json(heard *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Send 200 and a result with these members, or an error with this status. */
void script_result(heard *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void script_error(heard *h, const char *status, int code, const char *data);
void script_accept(heard *h); /* sends 202 */

/* script_stream sends the head of an event stream, script_event an event, script_finish
 * the end. */
void script_stream(heard *h);
/* Does what script_stream does, with further header lines that each end in CRLF. */
void script_stream_with(heard *h, const char *headers);
void script_event(heard *h, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void script_stream_result(heard *h, const char *id, const char *members);
/* Sends any text as part of the stream. */
void script_text(heard *h, const char *text);
/* Sends as many bytes as the connection takes now; returns their number. */
size_t script_push(heard *h, const char *bytes, size_t len);
/* Returns whether the connection takes more bytes within ms milliseconds. The runtime
 * does not run during this wait. */
bool script_may_push(heard *h, int ms);
void script_finish(heard *h);
/* Breaks the connection. */
void script_cut(heard *h, bool reset);

/* Play the handshakes. session NULL = the server gives no session id. script_initialize
 * leaves the client's GET to the test. */
void script_discover(http_script *s, const char *capabilities);
void script_initialize(http_script *s, const char *session);
void script_initialize_with(http_script *s, const char *session,
                            const char *capabilities);
/* server: the name of the server process in the answer; NULL = no name. */
void script_initialize_at(http_script *s, const char *session, const char *capabilities,
                          const char *server);
/* Refuses server/discover as unknown, then does what script_initialize does. */
void script_legacy(http_script *s, const char *session);

#endif
