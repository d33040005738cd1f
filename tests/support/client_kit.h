/* A client against a server that the test plays itself, line by line: what the client
 * writes is heard, what it shall read is said. Fake clock, seeded chance, counting
 * allocator. Every request is recorded; the recorder fails the test when the order of
 * callbacks is broken: nothing after on_complete but free_user, both exactly once,
 * segments in order. */
#ifndef CLIENT_KIT_H
#define CLIENT_KIT_H

#include <segue/segue_ext.h>

#include "support/test_mem.h"

/* A test of cmocka's with a name of its own. */
#define NAMED(name, test)                                                                \
    {                                                                                    \
        name, test, NULL, NULL, NULL                                                     \
    }

typedef struct kit kit;

/* What one request told the application. */
typedef struct record {
    struct record *next;
    kit *k;
    segue_request *request; /* held; NULL after record_drop */
    char *log;              /* one line per callback, in order */
    size_t log_len;
    int segments;
    uint64_t last_segment;
    uint64_t replaced_by; /* the last segment that replaced those before it; 0 = none */
    int unordered;        /* set by the test: numbers come in any order */
    int completed, freed;
    segue_status status;
    int32_t rpc_code;
    char *result; /* JSON or NULL */
    char *message;
    int retryable;
    char *last_key;                       /* of the last question */
    char token[4096];                     /* of on_task, on_resumable, each segment */
    void (*on_segment)(struct record *r); /* hooks of the test; may be NULL */
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
    char *heard; /* bytes of the client that nobody has looked at */
    size_t heard_len;
    char *said; /* lines handed out, kept until the end */
    int can_reopen;
    int reopens;     /* how often the client asked to connect again */
    int hold_reopen; /* 1 = do not connect by itself */
    int opened, closed, session_freed;
    segue_status closed_status;
    char closed_message[256];
    int retries; /* that on_reconnect told */
    int last_attempt;
    char last_reason[256];
    int notifications;
    char last_notification[512];
    record *records;
    char **lines;
    size_t line_count;
    int transport_gone;
    segue_validate_fn validate; /* of the session; set before it is opened */
    int quiet;                  /* records keep no log, for tests with very much in it */
    char last_warning[512];     /* of the log */
};

/* Starts a client. options may be NULL; the handshake is left to the test. */
void kit_begin(kit *k, const segue_session_options *options);
/* The same in two steps, for a transport of the test's own: the runtime (0 = the default
 * limit), then the session over k->transport. */
void kit_prepare(kit *k, int64_t max_message_bytes);
void kit_open(kit *k, const segue_session_options *options);
/* In three: k->transport is made between them. */
void kit_connect(kit *k);
/* A kit that has only the runtime of another, and no records: its session ends. */
void kit_leave(kit *k);
/* As kit_begin, and plays the handshake of a modern server with these capabilities. */
void kit_begin_modern(kit *k, const segue_session_options *options,
                      const char *capabilities);
#define SERVER_PLAIN "{\"tools\":{}}"
#define SERVER_TASKS                                                                     \
    "{\"tools\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"
#define SERVER_STREAMS                                                                   \
    "{\"tools\":{},\"extensions\":{\"io.modelcontextprotocol/"                           \
    "tasks\":{\"eventStreams\":{}},"                                                     \
    "\"dev.segue/idempotency\":{}}}"
/* Servers of 2025-11-25. */
#define SERVER_2025                                                                      \
    "{\"tools\":{\"listChanged\":true},\"tasks\":{\"cancel\":{},"                        \
    "\"requests\":{\"tools\":{\"call\":{}}}}}"
#define SERVER_2025_STREAMS                                                              \
    "{\"tools\":{},\"tasks\":{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}},"     \
    "\"responses\":{\"modes\":[\"task\",\"immediate\",\"streaming\"]}}}"
/* What such servers say of a task. */
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
/* Of a session of the handshake eras. */
segue_session_options kit_legacy_options(void);
/* The handshake of a server that chooses this version: initialize as it was heard. */
const char *kit_shake_hands(kit *k, const char *version, const char *capabilities);
/* As kit_begin, and plays the handshake of a server of 2025-11-25. */
void kit_begin_2025(kit *k, const segue_session_options *options,
                    const char *capabilities);
/* The handshake alone: again after a cut. */
void kit_handshake_2025(kit *k, const char *capabilities);
/* Plays tools/list: may be tasks: "t" (optional) and "r" (required); "p" may not. */
void kit_list_tools(kit *k);
/* Ends it all, checks every record and that nothing leaked. */
void kit_end(kit *k);

/* Runs what is due now; lets time pass. */
void kit_run(kit *k);
void kit_advance(kit *k, int64_t ms);

/* The next line of the client; NULL when it has said nothing. */
const char *kit_heard(kit *k);
/* The next line, which must be this method; fails the test otherwise. */
const char *kit_expect(kit *k, const char *method);
void kit_expect_silence(kit *k);
/* Says a line to the client; %s-like arguments. */
void kit_say(kit *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Answers a request that was heard: result or error are members without braces. */
void kit_result(kit *k, const char *request, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void kit_error(kit *k, const char *request, int code, const char *data);
/* An event of tasks/stream: seq, and the block or payload. */
void kit_segment(kit *k, const char *task, int seq, int number, const char *text);
/* The connection breaks. With can_reopen the client connects again by itself. */
void kit_cut(kit *k);
/* Plays server/discover. */
void kit_handshake(kit *k, const char *capabilities);

/* Starts a request and records it. */
record *kit_start(kit *k, const char *method, const char *params,
                  const segue_request_options *options);
record *kit_call(kit *k, const char *tool); /* tools/call {"name":tool} */
record *kit_resume(kit *k, const char *token, const segue_request_options *options);
/* Lets the handle of a record go. */
void record_drop(record *r);
/* The application answers a question; key: NULL = the last one. */
segue_status record_answer(record *r, const char *key, const char *json);
/* All records have ended, and are gone. */
void records_end(kit *k);
/* A record without a request, to be used as events of calls the kit has no function
 * for. */
record *kit_record(kit *k, segue_request_events *events);

#endif
