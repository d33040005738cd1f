/* A call of a client, and the request to the upstream that answers it. */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include "proxy.h"

#define RELAY_KEY 32 /* characters of an idempotency key */

typedef struct relay {
    int32_t refs; /* number of references: the call has one, and each request has one */
    const item *item;
    upstream *up;
    const char *method;
    text params;
    segue_call *call; /* the client's call; NULL = it has ended */
    segue_request *request;
    char key[RELAY_KEY + 1];
    bool is_tool;
    bool cancelled;   /* the client has cancelled the call */
    int32_t attempts; /* requests that were started for the call */
    double progress;  /* the last progress that was reported */
    int64_t beats;
    segue_timer *beat;
    segue_timer *wait;     /* fires when the call is to be answered with a handle */
    struct handle *handle; /* the handle with which the call was answered, or NULL */
} relay;

/* Makes a relay for a call and sends its request to a source. params: the text is moved
 * into the relay. */
void relay_begin(const item *i, source *to, segue_call *call, const char *method,
                 text *params);
/* Adds the client's _meta, without the members that belong to the conversation with the
 * client. */
void relay_add_meta(text *params, json client_params);
/* Ends the call with an error of the proxy itself. reason: the member `reason` of the
 * error's data. */
void relay_fail(relay *r, const char *reason, const char *message);
/* The same for a call of whose result a part had come. */
void relay_fail_with(relay *r, const char *reason, const char *message, json received);
void relay_unref(relay *r);
/* Sends the request to the upstream, also when it was sent before. */
void relay_send(relay *r);
/* Continues a request of an earlier process. */
void relay_follow(relay *r, const char *token);

/* True when an interrupted call of a tool may be sent again. The upstream or this program
 * has ended during the call (relay_call.c). */
bool relay_may_repeat(const relay *r);
/* True when the request has an idempotency key, if the upstream honours keys. */
bool relay_has_key(const relay *r);
/* Continues or ends a call that an earlier process of the proxy began. */
void relay_resume(relay *r);
/* Stores what relay_resume needs, if the call is stored. */
void relay_checkpoint(relay *r);

/* Called when the upstream asks a question (relay_questions.c). */
void relay_question(void *user, segue_request *request, const char *key,
                    const char *method, const char *params, size_t len);

#endif
