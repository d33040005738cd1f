/* Questions of an upstream to the client: elicitation, sampling, roots. */
#include "relay.h"

#include <stdlib.h>
#include <string.h>

/* A question that was passed on to the client, and the upstream's question to which the
 * client's answer belongs. */
typedef struct question {
    relay *relay;
    char *key; /* the key of the upstream's question */
} question;

static void free_question(void *user)
{
    question *q = user;
    relay_unref(q->relay);
    free(q->key);
    free(q);
}

/* Answers the upstream's question with an error. In 2026-07-28 sampling and roots cannot
 * be answered with an error, so the request ends. */
static void refuse(relay *r, segue_request *request, const char *key, int32_t code,
                   const char *message, json data)
{
    if (segue_request_answer_error(request, key, code, message, data.p, data.n, NULL) ==
        SEGUE_E_UNSUPPORTED) {
        if (r->call)
            relay_fail(r, "question_refused", message);
        segue_request_cancel(request);
    }
}

/* Passes the client's answer on. An answer that does not fit the question would leave it
 * open for ever, so it is refused. */
static void pass_answer(relay *r, const char *key, const char *answer, size_t len)
{
    segue_error *error = NULL;
    segue_status status = segue_request_answer(r->request, key, answer, len, &error);
    if (status == SEGUE_E_INVALID)
        refuse(r, r->request, key, -32602, segue_error_read(error)->message,
               (json){NULL, 0});
    segue_error_free(error);
}

static void on_answer(void *user, segue_call *call, segue_status status,
                      const char *answer, size_t len)
{
    question *q = user;
    relay *r = q->relay;
    json given = {answer, len};
    (void)call;
    if (!r->request)
        return;
    if (status == SEGUE_OK) {
        pass_answer(r, q->key, answer, len);
    } else if (status == SEGUE_E_REMOTE) {
        char *message = json_string(json_get(given, "message"));
        refuse(r, r->request, q->key, (int32_t)json_int(json_get(given, "code"), -32603),
               message ? message : "the client refused", json_get(given, "data"));
        free(message);
    }
}

/* Asks the client under the key that the upstream has given the question. The library
 * chooses another key when the call has used this one, or when it is no valid key. */
static segue_status ask(question *q, const char *method, const char *params, size_t len,
                        segue_error **error)
{
    segue_call *call = q->relay->call;
    segue_status status = segue_call_require_input(call, q->key, method, params, len,
                                                   on_answer, q, free_question, error);
    if (status != SEGUE_E_EXISTS && status != SEGUE_E_INVALID)
        return status;
    segue_error_free(*error);
    *error = NULL;
    return segue_call_require_input(call, NULL, method, params, len, on_answer, q,
                                    free_question, error);
}

void relay_question(void *user, segue_request *request, const char *key,
                    const char *method, const char *params, size_t len)
{
    relay *r = user;
    segue_error *error = NULL;
    question *q = r->call ? calloc(1, sizeof *q) : NULL;
    r->request = r->request ? r->request : request;
    if (!q) {
        refuse(r, request, key, -32603, "the call has ended", (json){NULL, 0});
        return;
    }
    r->refs++;
    *q = (question){r, copy_string(key)};
    if (ask(q, method, params, len, &error) == SEGUE_OK)
        return;
    refuse(r, request, key, -32601, segue_error_read(error)->message, (json){NULL, 0});
    segue_error_free(error);
    free_question(q);
}
