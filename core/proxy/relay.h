/* A relay: a call of a client, and the request to the upstream that answers this call. */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include "segments.h"

#define RELAY_KEY 32 /* number of characters of an idempotency key */

/* The client's call of which a handle is the answer, after another call has taken its
 * place in the relay. */
typedef struct former {
    segue_call *call;  /* NULL = there is no such call, or it was answered */
    bool has_segments; /* the answer replaces the segments of the call */
    text answer;       /* the result (JSON), while it waits for room in the log */
} former;

typedef struct relay {
    /* number of references: one of the call, and one of each request or timer */
    int32_t refs;
    const item *item;
    upstream *up;
    const char *method;
    text params;
    segue_call *call; /* the client's call; NULL = the call has ended */
    segue_request *request;
    char key[RELAY_KEY + 1];
    /* the token with which the next process continues the request; NULL = no token */
    char *token;
    passage passage; /* the segments of the result */
    former former;
    /* true when the request is a task of the upstream, or the upstream gave a token */
    bool resumable;
    bool is_tool;
    bool unsent;      /* true while the request waits for the checkpoint of the call */
    bool cancelled;   /* true when the client has cancelled the call */
    int32_t attempts; /* number of requests that were started for the call */
    double progress;  /* the last progress value that was reported to the client */
    int64_t beats;
    segue_timer *beat;
    segue_timer *wait; /* fires when the call has to be answered with a handle */
} relay;

/* Makes a relay (the call and its request to an upstream), and sends the request to a
 * source. params: the function takes the content of this text. */
void relay_begin(const item *i, source *to, segue_call *call, const char *method,
                 text *params);
/* Adds the client's _meta to the params, without the members that belong only to the
 * conversation with the client. */
void relay_add_meta(text *params, json client_params);
/* Ends the call with an error of the proxy itself. reason: the value of `reason` in the
 * error's data. */
void relay_fail(relay *r, const char *reason, const char *message);
/* Like relay_fail, for a call of which a part of the result was received. received: this
 * part, as JSON. */
void relay_fail_with(relay *r, const char *reason, const char *message, json received);
void relay_unref(relay *r);
/* Goes on with another call, which becomes a task with this time to live. The call that
 * the relay has had is the former call from now on. Returns false, and goes on as before,
 * when the relay's call has ended or the new one cannot become a task. */
bool relay_continue_as(relay *r, const item *i, segue_call *call, int64_t ttl_ms);
/* Answers the former call with this result (JSON), at once or as soon as its log has
 * room. Does nothing when the call was answered or cancelled. */
void relay_answer_former(relay *r, json result);
/* Answers the former call with an error, unless it has an answer or was cancelled.
 * error: may be NULL. */
void relay_fail_former(relay *r, const segue_error *error);
/* Called when the log of the former call has room again. */
void relay_drain_former(relay *r);
/* Called when the former call was cancelled. */
void relay_forget_former(relay *r);
/* Sends the request to the upstream, even if it was sent before. */
void relay_send(relay *r);
/* Continues a request that an earlier process of the proxy began. token: the token of
 * that request. */
void relay_follow(relay *r, const char *token);

/* True when an interrupted call of a tool may be sent again. Such a call was interrupted
 * because the upstream or this program has ended (relay_call.c). */
bool relay_may_repeat(const relay *r);
/* True when the request has an idempotency key. The key works only if the upstream
 * supports idempotency keys. */
bool relay_has_key(const relay *r);
/* Continues or ends a call that an earlier process of the proxy began. */
void relay_resume(relay *r);
/* Stores the checkpoint of a call, if the call is stored or may become a task: {"key":K},
 * {"token":T}, both or none of them, and the position in the segments. A checkpoint
 * before the change into a task is durable before the client knows the task. Returns
 * SEGUE_E_WOULD_BLOCK, and sets passage.checkpoint_due, when the log has no room. */
segue_status relay_mark(relay *r);
/* Like relay_mark, for a call whose request has sent something: stores nothing for a call
 * without a token and without a key that the upstream supports. */
segue_status relay_checkpoint(relay *r);
/* Stores the first checkpoint of a call, and then sends the request. So a next process
 * finds a checkpoint of each call that was sent, with the key that the request has. */
void relay_send_when_stored(relay *r);
/* Like relay_checkpoint, with the present token of the request. Does nothing when the
 * request has no token, and while a segment waits, because the present token covers this
 * segment, too. */
void relay_renew_checkpoint(relay *r);
/* Starts and stops the timers of a call that takes long (relay_long.c). */
void relay_set_timers(relay *r);
void relay_stop_timers(relay *r);
/* Ends the call with the result of the upstream. */
void relay_finish(relay *r, json result);

/* Called when the upstream asks a question during the call of a relay
 * (relay_questions.c). */
void relay_question(void *user, segue_request *request, const char *key,
                    const char *method, const char *params, size_t len);

#endif
