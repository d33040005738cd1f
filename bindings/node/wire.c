/* Custom transports in JavaScript (transportCustom). The library calls the JavaScript
 * code by events. The JavaScript code reports received bytes to the library through a
 * Wire, which its handler receives in the event TRANSPORT_START
 * (../common/custom_transport.h). */
#include "addon.h"

napi_value sgnode_wire_show(const sgnode_user *user)
{
    return sgnode_wrap(user->host->self, SGNODE_WIRE, sgb_transport_ref(user->custom),
                       user->host);
}

static bool put_event(void *opaque, int kind, int64_t number, const char *bytes,
                      size_t len)
{
    sgnode_user *user = opaque;
    return sgnode_side_put(user->host, kind, user, number, bytes, len);
}

static sgnode_user *make_user(sgnode_frame *frame, sgnode_host *host, napi_value handler)
{
    sgnode_user *user;
    if (!sgnode_user_new(frame, host, handler, &user))
        return NULL;
    user->custom = sgb_transport_new(user, put_event);
    if (user->custom)
        return user;
    sgnode_user_free(user);
    sgnode_throw(frame, SEGUE_E_NOMEM);
    return NULL;
}

static napi_value transport_custom(sgnode_frame *frame)
{
    segue_transport *transport;
    sgnode_host *host;
    bool reopen;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_flag(frame, frame->arg[2], &reopen))
        return NULL;
    sgnode_user *user = make_user(frame, host, frame->arg[1]);
    if (!user)
        return NULL;
    segue_status status = sgb_transport_open(user->custom, runtime, reopen, &transport);
    if (status == SEGUE_OK)
        return sgnode_wrap(frame->self, SGNODE_TRANSPORT, transport, host);
    sgb_transport_unref(user->custom);
    sgnode_user_free(user);
    return sgnode_throw(frame, status);
}

static sgb_transport *custom_of(sgnode_frame *frame)
{
    return sgnode_unwrap(frame, frame->arg[0], SGNODE_WIRE);
}

static napi_value transport_feed(sgnode_frame *frame)
{
    const char *bytes;
    size_t len;
    sgb_transport *custom = custom_of(frame);
    if (!custom || !sgnode_view(frame, frame->arg[1], false, &bytes, &len))
        return NULL;
    return sgnode_sent(frame, sgb_transport_feed(custom, bytes, len));
}

static napi_value transport_took(sgnode_frame *frame)
{
    int64_t count;
    sgb_transport *custom = custom_of(frame);
    if (!custom || !sgnode_int64(frame, frame->arg[1], 0, &count))
        return NULL;
    return sgnode_done(frame, sgb_transport_took(custom, count));
}

static napi_value transport_writable(sgnode_frame *frame)
{
    sgb_transport *custom = custom_of(frame);
    return custom ? sgnode_done(frame, sgb_transport_writable(custom)) : NULL;
}

static napi_value transport_closed(sgnode_frame *frame)
{
    sgb_transport *custom = custom_of(frame);
    return custom ? sgnode_done(frame, sgb_transport_closed(custom)) : NULL;
}

const sgnode_row sgnode_wire_rows[] = {
    {"transportCustom", transport_custom}, {"transportFeed", transport_feed},
    {"transportTook", transport_took},     {"transportWritable", transport_writable},
    {"transportClosed", transport_closed}, {NULL, NULL},
};
