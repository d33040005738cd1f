/* A client over HTTP against a server that the test plays itself, request by request, on
 * the test's own thread: a client_kit whose transport goes to an http_peer. Time of the
 * engine is the kit's, so timeouts and pauses pass when told; only the network's own time
 * is real, and whoever waits for it gives up, and fails the test, after ten seconds.
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
    size_t piece; /* answers leave in pieces of so many bytes; 0 = whole */
    size_t most;  /* limit of one message; 0 = the default */
    segue_http_options options;
    int background; /* the runtime has a thread of its own */
    http_wire *wires;
    struct heard *all;
} http_script;

/* One request of the client. Its texts live until the script ends. */
typedef struct heard {
    struct heard *next;
    http_script *script;
    http_wire *wire;
    char *text; /* the head, NUL-terminated; what follows is `body` */
    char *body;
    bool looked;     /* the test has it */
    char value[512]; /* of the header last asked for */
} heard;

/* Zeroes the script and opens the server. */
void script_prepare(http_script *s);
/* Opens the session; options may be NULL. */
void script_connect(http_script *s, const segue_session_options *options);
/* Both. */
void script_begin(http_script *s, const segue_session_options *options);
void script_end(http_script *s);

/* Runs what is due and what has come over the network. */
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
/* Lets the engine's time pass. */
void script_advance(http_script *s, int64_t ms);

/* The next request: a JSON-RPC method, "GET", "DELETE", or "" for any. */
heard *script_expect(http_script *s, const char *method);
/* The same for requests that go side by side: others may stand before it, and stay. */
heard *script_find(http_script *s, const char *method);
/* The first request that nobody has looked at, or NULL; without waiting. */
heard *script_next(const http_script *s);
/* Nothing is asked, though the network had its time. */
void script_expect_silence(http_script *s);
/* NULL when it was not sent. */
const char *heard_header(heard *h, const char *name);
void assert_header(heard *h, const char *name, const char *value);
/* Has the client closed the connection of this request? Runs the loop meanwhile. */
bool heard_is_closed(heard *h);

/* Whole answers. headers: lines that each end in CRLF. */
void script_say(heard *h, const char *status, const char *headers, const char *body);
void script_json(heard *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* 200 and the result with these members; an error, with this status. */
void script_result(heard *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void script_error(heard *h, const char *status, int code, const char *data);
void script_accept(heard *h); /* 202 */

/* A stream: its head, its events, its end. */
void script_stream(heard *h);
/* The same with further header lines that each end in CRLF. */
void script_stream_with(heard *h, const char *headers);
void script_event(heard *h, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void script_stream_result(heard *h, const char *id, const char *members);
/* Any text of the stream. */
void script_text(heard *h, const char *text);
/* As much of it as the connection takes now. */
size_t script_push(heard *h, const char *bytes, size_t len);
/* Does it take more within so long? The runtime is left alone. */
bool script_may_push(heard *h, int ms);
void script_finish(heard *h);
/* Ends the connection. */
void script_cut(heard *h, bool reset);

/* Plays the handshakes. session NULL = none is begun. The second leaves the client's GET
 * to the test. */
void script_discover(http_script *s, const char *capabilities);
void script_initialize(http_script *s, const char *session);
void script_initialize_with(http_script *s, const char *session,
                            const char *capabilities);
/* server/discover is unknown, and script_initialize. */
void script_legacy(http_script *s, const char *session);

#endif
