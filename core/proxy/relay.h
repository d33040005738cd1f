/* One call below, and the request above that answers it. */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include "proxy.h"

#define RELAY_KEY 32 /* characters of an idempotency key */

typedef struct relay {
    int32_t refs; /* the call and each request have one */
    const item *item;
    upstream *up;
    const char *method;
    text params;
    segue_call *call; /* NULL = it has ended */
    segue_request *request;
    char key[RELAY_KEY + 1];
    bool is_tool;
    bool cancelled;   /* the client wants the call to end */
    int32_t attempts; /* requests that were started for the call */
    double progress;  /* the last progress that was reported */
    int64_t beats;
    segue_timer *beat;
    segue_timer *wait;     /* until the call is answered with a handle */
    struct handle *handle; /* which has answered the call */
} relay;

/* Makes a relay for a call and sends its request to a source. params: consumed. */
void relay_begin(const item *i, source *to, segue_call *call, const char *method,
                 text *params);
/* Adds the client's _meta as a member, without the members that belong to the
 * conversation below. */
void relay_add_meta(text *params, json client_params);
/* Ends the call with an error of the proxy. reason: data.reason. */
void relay_fail(relay *r, const char *reason, const char *message);
/* The same for a call of whose result a part had come. */
void relay_fail_with(relay *r, const char *reason, const char *message, json received);
void relay_unref(relay *r);
/* Sends the request, again if it was sent before. */
void relay_send(relay *r);
/* Continues a request of an earlier process. */
void relay_follow(relay *r, const char *token);

/* What happens to a call of a tool whose run was cut, by the end of an upstream or of
 * this program (relay_call.c). */
bool relay_may_repeat(const relay *r);
/* True when the request has an idempotency key, if the upstream honours keys. */
bool relay_has_key(const relay *r);
/* Continues or ends a call that an earlier process of the proxy began. */
void relay_resume(relay *r);
/* Stores what relay_resume needs, if the call is stored. */
void relay_checkpoint(relay *r);

/* The upstream asks a question (relay_questions.c). */
void relay_question(void *user, segue_request *request, const char *key,
                    const char *method, const char *params, size_t len);

#endif
