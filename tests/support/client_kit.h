/* A client against a server that the test plays itself, line by line. kit_heard returns
 * what the client wrote; kit_say gives the client a line to read. The kit has a fake
 * clock, seeded randomness and a counting allocator. It records every request. The
 * recorder fails the test when callbacks run in a wrong order: only free_user may run
 * after on_complete, both run exactly once, and segments come in order. */
#ifndef CLIENT_KIT_H
#define CLIENT_KIT_H

#include <segue/segue_ext.h>

#include "support/test_mem.h"

/* A cmocka test with a name of its own. */
#define NAMED(name, test)                                                                \
    {                                                                                    \
        name, test, NULL, NULL, NULL                                                     \
    }

typedef struct kit kit;

/* The callbacks that one request made. */
typedef struct record {
    struct record *next;
    kit *k;
    segue_request *request; /* a counted reference; NULL after record_drop */
    char *log;              /* one line for each callback, in order */
    size_t log_len;
    int segments;
    uint64_t last_segment;
    uint64_t replaced_by; /* number of the last segment that replaced those before it; 0 =
                           * none */
    int unordered;        /* 1 = segments may come in any order; set by the test */
    int completed, freed;
    segue_status status;
    int32_t rpc_code;
    char *result; /* JSON of the result, or NULL */
    char *message;
    int retryable;
    char *last_key;                       /* key of the last question */
    char token[4096];                     /* token as of the last on_task, on_resumable or
                                           * segment */
    void (*on_segment)(struct record *r); /* callbacks of the test; may be NULL */
    void (*on_task)(struct record *r);
    void (*on_input)(struct record *r, const char *key);
    void (*on_complete)(struct record *r);
    void *user;
} record;

struct kit {
    int64_t clock_ms;
    uint64_t chance;
    test_mem mem;
    segue_runtime *runtime;
    segue_transport *transport;
    segue_session *session;
    struct tap *tap;
    char *heard; /* bytes from the client that the test has not read yet */
    size_t heard_len;
    char *said; /* lines that kit_heard returned, kept until the end */
    int can_reopen;
    int reopens;     /* the number of times that the client asked for a new connection */
    int hold_reopen; /* 1 = the kit does not reconnect by itself */
    int opened, closed, session_freed;
    segue_status closed_status;
    char closed_message[256];
    int retries; /* number of retries that on_reconnect reported */
    int last_attempt;
    char last_reason[256];
    int notifications;
    char last_notification[512];
    record *records;
    char **lines;
    size_t line_count;
    int transport_gone;
    segue_validate_fn validate; /* validator of the session; set before the session is
                                 * opened */
    int quiet;                  /* 1 = records keep no log, for tests with very many
                                 * callbacks */
    char last_warning[512];     /* text of the last warning in the log */
};

/* Starts a client; options may be NULL. The test plays the handshake. */
void kit_begin(kit *k, const segue_session_options *options);
/* kit_prepare and kit_open are kit_begin in two steps, for a test with its own transport.
 * kit_prepare makes the runtime (max_message_bytes 0 = the default limit). kit_open opens
 * a session over k->transport. */
void kit_prepare(kit *k, int64_t max_message_bytes);
void kit_open(kit *k, const segue_session_options *options);
/* Makes k->transport; called between kit_prepare and kit_open. */
void kit_connect(kit *k);
/* Ends the session of a kit that has no records and uses the runtime of another kit. */
void kit_leave(kit *k);
/* Does what kit_begin does, and plays the handshake of a modern server with these
 * capabilities. */
void kit_begin_modern(kit *k, const segue_session_options *options,
                      const char *capabilities);
#define SERVER_PLAIN "{\"tools\":{}}"
#define SERVER_TASKS                                                                     \
    "{\"tools\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"
#define SERVER_STREAMS                                                                   \
    "{\"tools\":{},\"extensions\":{\"io.modelcontextprotocol/"                           \
    "tasks\":{\"eventStreams\":{}},"                                                     \
    "\"dev.segue/idempotency\":{}}}"
/* Capabilities of servers of 2025-11-25. */
#define SERVER_2025                                                                      \
    "{\"tools\":{\"listChanged\":true},\"tasks\":{\"cancel\":{},"                        \
    "\"requests\":{\"tools\":{\"call\":{}}}}}"
#define SERVER_2025_STREAMS                                                              \
    "{\"tools\":{},\"tasks\":{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}},"     \
    "\"responses\":{\"modes\":[\"task\",\"immediate\",\"streaming\"]}}}"
#define SERVER_2025_KEYS                                                                 \
    "{\"tools\":{},\"tasks\":{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}},"     \
    "\"responses\":{\"modes\":[\"task\",\"immediate\",\"streaming\"]}},"                 \
    "\"experimental\":{\"dev.segue/idempotency\":{}}}"
/* A task in the form in which servers of 2025-11-25 describe it. */
#define TASK_2025(id, status)                                                            \
    "\"taskId\":\"" id "\",\"status\":\"" status                                         \
    "\",\"createdAt\":\"2026-01-01T00:00:00Z\","                                         \
    "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"ttl\":60000,\"pollInterval\":1000"
#define CREATED_2025(id) "\"task\":{" TASK_2025(id, "working") "}"
#define RELATED(id)                                                                      \
    "\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"" id "\"}}"
/* Answers about a task: members for kit_result. */
#define STAMPS                                                                           \
    "\"createdAt\":\"2026-01-01T00:00:00Z\",\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\"," \
    "\"ttlMs\":60000,\"pollIntervalMs\":1000"
#define CREATED(id)                                                                      \
    "\"resultType\":\"task\",\"taskId\":\"" id "\",\"status\":\"working\"," STAMPS
#define TASK(id, status)                                                                 \
    "\"resultType\":\"complete\",\"taskId\":\"" id "\",\"status\":\"" status "\""        \
    "," STAMPS
#define RESULT                                                                           \
    "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","    \
    "\"text\":\"b\"}]}"
#define FINAL                                                                            \
    "\"resultType\":\"complete\",\"_meta\":{\"dev.segue/final\":{\"status\":"            \
    "\"completed\",\"isError\":false}}"
/* Options of a session of the handshake eras. */
segue_session_options kit_legacy_options(void);
/* Plays the handshake of a server that chooses this version; returns the client's
 * initialize. */
const char *kit_shake_hands(kit *k, const char *version, const char *capabilities);
/* Does what kit_begin does, and plays the handshake of a server of 2025-11-25. */
void kit_begin_2025(kit *k, const segue_session_options *options,
                    const char *capabilities);
/* Plays the handshake of a server of 2025-11-25 alone, for instance again after
 * kit_cut. */
void kit_handshake_2025(kit *k, const char *capabilities);
/* Answers tools/list with the tools "t" (may run as a task), "r" (must run as a task) and
 * "p" (never runs as a task). */
void kit_list_tools(kit *k);
/* Ends the kit, checks every record and checks that no memory leaked. */
void kit_end(kit *k);

/* kit_run does the work that is due now. kit_advance lets time pass and then does it. */
void kit_run(kit *k);
void kit_advance(kit *k, int64_t ms);

/* Returns the next line that the client wrote; NULL when there is none. */
const char *kit_heard(kit *k);
/* Returns the next line, which must be a message of this method. */
const char *kit_expect(kit *k, const char *method);
void kit_expect_silence(kit *k);
/* Sends a line to the client; the format takes arguments as printf does. */
void kit_say(kit *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Answers a request of the client. The text has the members of the result or error,
 * without braces. */
void kit_result(kit *k, const char *request, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void kit_error(kit *k, const char *request, int code, const char *data);
/* Sends an event of tasks/stream with this seq, segment number and text. */
void kit_segment(kit *k, const char *task, int seq, int number, const char *text);
/* Breaks the connection. With can_reopen the client connects again by itself. */
void kit_cut(kit *k);
/* Answers server/discover. */
void kit_handshake(kit *k, const char *capabilities);

/* Starts a request and records its callbacks. */
record *kit_start(kit *k, const char *method, const char *params,
                  const segue_request_options *options);
record *kit_call(kit *k, const char *tool); /* calls tools/call with {"name":tool} */
record *kit_resume(kit *k, const char *token, const segue_request_options *options);
/* Starts the request that receives the questions that belong to no other request. */
record *kit_take_input(kit *k);
/* Frees the handle of a record's request. */
void record_drop(record *r);
/* The application answers a question; key NULL = the last question. */
segue_status record_answer(record *r, const char *key, const char *json);
/* Checks that all records have ended, and frees them. */
void records_end(kit *k);
/* Makes a record without a request. A test passes its events to functions of the library
 * for which the kit has no function. */
record *kit_record(kit *k, segue_request_events *events);

#endif
