/* HTTP exchanges by hand. The answer comes in events ANSWER, whose first one has the
 * head. The last one says that the answer is complete, if the end comes in the same
 * batch and directly behind it, as with an answer of one piece. Otherwise ANSWER_END is
 * the last event.
 *
 * Headers pass as one string with one character for each byte, as in Node, in which each
 * text ends with a NUL. One string is much cheaper to make than one for each text. No
 * text of a head can have a NUL. In the same way the body of a short answer that comes
 * with its head is a string. The body of any other answer is bytes.
 *
 * When an event ANSWER is lost, the exchange is closed, so that a client never gets an
 * answer with a hole.
 *
 * The context of an exchange is a function: the handler of an sgnode_user. */
#include "addon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- events ---- */

static napi_env begin(const sgnode_user *user)
{
    return user->host->has_batch ? user->host->self->env : NULL;
}

static char *put(char *at, const char *text, size_t len)
{
    if (len)
        memcpy(at, text, len);
    at[len] = 0;
    return at + len + 1;
}

/* Makes the string of status, name, value, name, value, ... */
static napi_value make_head(napi_env env, int32_t status, const segue_http_field *headers,
                            size_t count)
{
    char number[16];
    napi_value made = NULL;
    int digits = snprintf(number, sizeof number, "%d", (int)status);
    size_t size = (size_t)digits + 1;
    for (size_t i = 0; i < count; i++)
        size += headers[i].name_len + headers[i].value_len + 2;
    char *text = malloc(size);
    if (!text)
        return NULL;
    char *at = put(text, number, (size_t)digits);
    for (size_t i = 0; i < count; i++) {
        at = put(at, headers[i].name, headers[i].name_len);
        at = put(at, headers[i].value, headers[i].value_len);
    }
    if (napi_create_string_latin1(env, text, size, &made) != napi_ok)
        made = NULL;
    free(text);
    return made;
}

static bool tell(sgnode_user *user, int kind, napi_value a, napi_value b)
{
    return sgnode_push(user->host, user->handler, kind, a, b, NULL);
}

/* A whole body of at most this many bytes passes as a string. */
enum { MOST_AS_STRING = 65536 };

/* Returns whether the head tells that the body has this length. */
static bool tells_length(const segue_http_field *headers, size_t count, size_t len)
{
    static const char name[] = "content-length";
    char number[24];
    size_t digits = (size_t)snprintf(number, sizeof number, "%zu", len);
    for (size_t i = 0; i < count; i++)
        if (headers[i].name_len == sizeof name - 1 &&
            memcmp(headers[i].name, name, sizeof name - 1) == 0)
            return headers[i].value_len == digits &&
                   memcmp(headers[i].value, number, digits) == 0;
    return false;
}

static napi_value string_of(napi_env env, const char *bytes, size_t len)
{
    napi_value made;
    return napi_create_string_latin1(env, bytes, len, &made) == napi_ok ? made : NULL;
}

static void push_answer(sgnode_user *user, segue_exchange *exchange, napi_value head,
                        napi_value body)
{
    if (!tell(user, SGB_ANSWER, head, body))
        user->is_broken = true;
    if (user->is_broken)
        segue_exchange_closed(exchange);
    user->answer_batch = user->host->batches;
    user->answer_end = user->host->batch.count;
}

/* Marks the last event of the batch as the end of the answer. Returns false when it is no
 * event ANSWER of this exchange. Only the batch knows the event, so it may change. */
static bool end_last_answer(const sgnode_user *user)
{
    sgnode_host *host = user->host;
    napi_value yes;
    if (user->answer_batch != host->batches || user->answer_end != host->batch.count ||
        napi_get_boolean(host->self->env, true, &yes) != napi_ok)
        return false;
    host->batch.items[host->batch.count - 1] = yes;
    return true;
}

static void on_head(void *opaque, segue_exchange *exchange, int32_t status,
                    const segue_http_field *headers, size_t count, const char *bytes,
                    size_t len)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    if (!env)
        return;
    bool is_string = len <= MOST_AS_STRING && tells_length(headers, count, len);
    napi_value head = make_head(env, status, headers, count);
    napi_value body = is_string ? string_of(env, bytes, len)
                      : len     ? sgnode_bytes(env, bytes, len)
                                : NULL;
    user->is_broken = !head || ((is_string || len) && !body);
    push_answer(user, exchange, head, body);
}

static void on_body(void *opaque, segue_exchange *exchange, const char *bytes, size_t len)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    if (!env || user->is_broken)
        return;
    napi_value body = sgnode_bytes(env, bytes, len);
    user->is_broken = !body;
    push_answer(user, exchange, NULL, body);
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
    if (status != SEGUE_OK || !end_last_answer(user))
        tell(user, SGB_ANSWER_END, sgnode_number(env, status), NULL);
}

/* ---- functions ---- */

/* Reads a string of bytes. The text lives until the call ends. */
static char *read_latin1(sgnode_frame *frame, napi_value value, size_t *len)
{
    if (napi_get_value_string_latin1(frame->env, value, NULL, 0, len) != napi_ok) {
        sgnode_type_error(frame, "a string", "headers");
        return NULL;
    }
    char *place = sgnode_scratch(frame, *len + 1);
    if (place &&
        napi_get_value_string_latin1(frame->env, value, place, *len + 1, len) != napi_ok)
        return NULL;
    return place;
}

static bool take_text(const char **at, const char *end, const char **text, size_t *len)
{
    const char *stop = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
    if (!stop)
        return false;
    *text = *at;
    *len = (size_t)(stop - *at);
    *at = stop + 1;
    return true;
}

/* Reads the string of name, value, name, value, ... The number of texts shows that no
 * text has a NUL of its own. */
static bool read_headers(sgnode_frame *frame, napi_value joined, napi_value number,
                         segue_exchange_head *head)
{
    size_t len;
    int64_t texts;
    if (!sgnode_int64(frame, number, 0, &texts))
        return false;
    const char *at = read_latin1(frame, joined, &len);
    if (!at)
        return false;
    const char *end = at + len;
    bool fits = texts >= 0 && texts % 2 == 0 && (uint64_t)texts <= len;
    size_t count = fits ? (size_t)texts / 2 : 0;
    segue_http_field *fields = sgnode_scratch(frame, (count + 1) * sizeof *fields);
    if (!fields)
        return false;
    for (size_t i = 0; fits && i < count; i++)
        fits = take_text(&at, end, &fields[i].name, &fields[i].name_len) &&
               take_text(&at, end, &fields[i].value, &fields[i].value_len);
    if (!fits || at != end) {
        sgnode_type_error(frame, "names and values without NUL", "headers");
        return false;
    }
    head->headers = fields;
    head->header_count = count;
    return true;
}

static bool read_head(sgnode_frame *frame, segue_exchange_head *head)
{
    bool is_tls, is_whole;
    if (!sgnode_name(frame, frame->arg[1], false, &head->method) ||
        !sgnode_name(frame, frame->arg[2], false, &head->target) ||
        !read_headers(frame, frame->arg[3], frame->arg[12], head) ||
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
