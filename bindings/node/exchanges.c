/* HTTP exchanges by hand. The answer comes in events ANSWER, whose first one has the
 * head; ANSWER_END is the last event. An answer of one piece is one event ANSWER.
 *
 * Headers are strings with one character for each byte, as in Node. When an event ANSWER
 * is lost, the exchange is closed, so that a client never gets an answer with a hole.
 *
 * The context of an exchange is a function: the handler of an sgnode_user. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_READ 128

/* ---- events ---- */

static napi_env begin(const sgnode_user *user)
{
    return user->host->has_batch ? user->host->self->env : NULL;
}

static napi_value latin1(napi_env env, const char *text, size_t len)
{
    napi_value value;
    return napi_create_string_latin1(env, text, len, &value) == napi_ok ? value : NULL;
}

/* Makes the array [status, name, value, name, value, ...]. */
static napi_value make_head(napi_env env, int32_t status, const segue_http_field *headers,
                            size_t count)
{
    napi_value list;
    if (napi_create_array_with_length(env, 2 * count + 1, &list) != napi_ok ||
        napi_set_element(env, list, 0, sgnode_number(env, status)) != napi_ok)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        napi_value name = latin1(env, headers[i].name, headers[i].name_len);
        napi_value value = latin1(env, headers[i].value, headers[i].value_len);
        if (!name || !value || napi_set_element(env, list, 2 * i + 1, name) != napi_ok ||
            napi_set_element(env, list, 2 * i + 2, value) != napi_ok)
            return NULL;
    }
    return list;
}

static bool tell(sgnode_user *user, int kind, napi_value a, napi_value b)
{
    return sgnode_push(user->host, user->handler, kind, a, b, NULL);
}

static void push_answer(sgnode_user *user, segue_exchange *exchange, napi_value head,
                        const char *bytes, size_t len)
{
    napi_value made = len ? sgnode_bytes(user->host->self->env, bytes, len) : NULL;
    if ((len && !made) || !tell(user, SGB_ANSWER, head, made))
        user->is_broken = true;
    if (user->is_broken)
        segue_exchange_closed(exchange);
}

static void on_head(void *opaque, segue_exchange *exchange, int32_t status,
                    const segue_http_field *headers, size_t count, const char *bytes,
                    size_t len)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    if (!env)
        return;
    napi_value head = make_head(env, status, headers, count);
    user->is_broken = !head;
    push_answer(user, exchange, head, bytes, len);
}

static void on_body(void *opaque, segue_exchange *exchange, const char *bytes, size_t len)
{
    sgnode_user *user = opaque;
    if (begin(user) && !user->is_broken)
        push_answer(user, exchange, NULL, bytes, len);
}

static void on_room(void *opaque, segue_exchange *exchange)
{
    sgnode_user *user = opaque;
    (void)exchange;
    if (begin(user))
        tell(user, SGB_ANSWER_ROOM, NULL, NULL);
}

static void on_end(void *opaque, segue_exchange *exchange, segue_status status)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    (void)exchange;
    if (!env)
        return;
    if (user->is_broken)
        status = SEGUE_E_CLOSED;
    tell(user, SGB_ANSWER_END, sgnode_number(env, status), NULL);
}

/* ---- functions ---- */

/* Reads a string of bytes. The text lives until the call ends. */
static bool read_latin1(sgnode_frame *frame, napi_value value, const char **text,
                        size_t *len)
{
    char *place = sgnode_scratch(frame, FIRST_READ);
    if (!place)
        return false;
    if (napi_get_value_string_latin1(frame->env, value, place, FIRST_READ, len) !=
        napi_ok) {
        sgnode_type_error(frame, "an array of strings", "headers");
        return false;
    }
    if (*len + 1 == FIRST_READ) { /* the text may have been cut */
        napi_get_value_string_latin1(frame->env, value, NULL, 0, len);
        size_t size = *len + 1;
        place = sgnode_scratch(frame, size);
        if (!place ||
            napi_get_value_string_latin1(frame->env, value, place, size, len) != napi_ok)
            return false;
    }
    *text = place;
    return true;
}

/* Reads the array [name, value, name, value, ...]. */
static bool read_headers(sgnode_frame *frame, napi_value list, segue_exchange_head *head)
{
    uint32_t count = 0;
    bool is_array = false;
    napi_is_array(frame->env, list, &is_array);
    if (!is_array || napi_get_array_length(frame->env, list, &count) != napi_ok ||
        count % 2) {
        sgnode_type_error(frame, "an array of names and values", "headers");
        return false;
    }
    segue_http_field *fields = sgnode_scratch(frame, (count / 2 + 1) * sizeof *fields);
    if (!fields)
        return false;
    for (uint32_t i = 0; i < count; i += 2) {
        napi_value name, value;
        segue_http_field *field = &fields[i / 2];
        if (napi_get_element(frame->env, list, i, &name) != napi_ok ||
            napi_get_element(frame->env, list, i + 1, &value) != napi_ok ||
            !read_latin1(frame, name, &field->name, &field->name_len) ||
            !read_latin1(frame, value, &field->value, &field->value_len))
            return false;
    }
    head->headers = fields;
    head->header_count = count / 2;
    return true;
}

static bool read_head(sgnode_frame *frame, segue_exchange_head *head)
{
    bool is_tls, is_whole;
    if (!sgnode_name(frame, frame->arg[1], false, &head->method) ||
        !sgnode_name(frame, frame->arg[2], false, &head->target) ||
        !read_headers(frame, frame->arg[3], head) ||
        !sgnode_name(frame, frame->arg[5], true, &head->peer) ||
        !sgnode_name(frame, frame->arg[6], true, &head->local) ||
        !sgnode_flag(frame, frame->arg[7], &is_tls) ||
        !sgnode_name(frame, frame->arg[8], true, &head->principal) ||
        !sgnode_view(frame, frame->arg[9], true, &head->body, &head->body_len) ||
        !sgnode_flag(frame, frame->arg[10], &is_whole))
        return false;
    head->is_tls = is_tls;
    head->is_whole = is_whole;
    return true;
}

static bool read_context(sgnode_frame *frame, sgnode_host *host,
                         segue_exchange_head *head)
{
    sgnode_user *context = NULL;
    if (sgnode_is_none(frame, frame->arg[11]))
        return true;
    if (!sgnode_user_new(frame, host, frame->arg[11], &context))
        return false;
    head->context = context;
    head->free_context = sgnode_user_free;
    return true;
}

static napi_value exchange_open(sgnode_frame *frame)
{
    sgnode_host *host;
    sgnode_user *user;
    segue_exchange *exchange;
    segue_exchange_head head = SEGUE_EXCHANGE_HEAD_INIT;
    segue_exchange_events events = SEGUE_EXCHANGE_EVENTS_INIT;
    segue_listener *listener =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_LISTENER, &host);
    if (!listener || !read_head(frame, &head) ||
        !sgnode_user_new(frame, host, frame->arg[4], &user))
        return NULL;
    if (!read_context(frame, host, &head)) {
        sgnode_user_free(user);
        return NULL;
    }
    events.user = user;
    events.free_user = sgnode_user_free;
    events.on_head = on_head;
    events.on_body = on_body;
    events.on_room = on_room;
    events.on_end = on_end;
    segue_status status =
        segue_exchange_open(listener, &head, &events, &exchange, &frame->error);
    if (status == SEGUE_OK)
        return sgnode_wrap(frame->self, SGNODE_EXCHANGE, exchange, host);
    sgnode_user_free(user);
    sgnode_user_free(head.context);
    return sgnode_throw(frame, status);
}

#define EXCHANGE(name)                                                                   \
    segue_exchange *name = sgnode_unwrap(frame, frame->arg[0], SGNODE_EXCHANGE);         \
    if (!(name))                                                                         \
    return NULL

static napi_value exchange_feed(sgnode_frame *frame)
{
    const char *bytes;
    size_t len;
    EXCHANGE(exchange);
    if (!sgnode_view(frame, frame->arg[1], false, &bytes, &len))
        return NULL;
    return sgnode_sent(frame, segue_exchange_feed(exchange, bytes, len));
}

static napi_value exchange_end(sgnode_frame *frame)
{
    EXCHANGE(exchange);
    return sgnode_done(frame, segue_exchange_end(exchange));
}

static napi_value exchange_sent(sgnode_frame *frame)
{
    int64_t len;
    EXCHANGE(exchange);
    if (!sgnode_int64(frame, frame->arg[1], 0, &len))
        return NULL;
    return sgnode_done(frame, len < 0 ? SEGUE_E_INVALID
                                      : segue_exchange_sent(exchange, (size_t)len));
}

static napi_value exchange_closed(sgnode_frame *frame)
{
    EXCHANGE(exchange);
    return sgnode_done(frame, segue_exchange_closed(exchange));
}

static napi_value exchange_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_EXCHANGE);
}

const sgnode_row sgnode_exchange_rows[] = {
    {"exchangeOpen", exchange_open},
    {"exchangeFeed", exchange_feed},
    {"exchangeEnd", exchange_end},
    {"exchangeSent", exchange_sent},
    {"exchangeClosed", exchange_closed},
    {"exchangeFree", exchange_free},
    {NULL, NULL},
};
