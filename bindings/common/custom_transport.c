#include "custom_transport.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "events.h"

/* Maximum number of bytes that the binding's language has received and not yet reported
 * as written. At this number, `send` accepts no bytes. */
#define QUEUED_MAX ((size_t)1024 * 1024)

/* A custom transport. The library holds one reference through the vtable, until `free` of
 * the vtable runs. The binding's language holds the other references. */
struct sgb_transport {
    _Atomic int refs;
    sgb_transport_event event;
    void *user;

    /* The mutex is held during each call of the library, so that another thread cannot
     * free the library's transport during the call. */
    pthread_mutex_t mutex;
    /* the library's transport; set by `start`, NULL again after `free` */
    segue_transport *transport;
    size_t queued; /* number of unwritten bytes, at most QUEUED_MAX */
    /* true = `send` accepted fewer bytes than the library passed, so sgb_transport_took
     * must report when there is room again */
    bool refused;
};

sgb_transport *sgb_transport_new(void *user, sgb_transport_event event)
{
    sgb_transport *custom = calloc(1, sizeof *custom);
    if (!custom)
        return NULL;
    custom->refs = 1;
    custom->user = user;
    custom->event = event;
    pthread_mutex_init(&custom->mutex, NULL);
    return custom;
}

sgb_transport *sgb_transport_ref(sgb_transport *custom)
{
    atomic_fetch_add(&custom->refs, 1);
    return custom;
}

void sgb_transport_unref(void *opaque)
{
    sgb_transport *custom = opaque;
    if (atomic_fetch_sub(&custom->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&custom->mutex);
    free(custom);
}

/* ---- the vtable; any thread ---- */

static void emit(const sgb_transport *custom, int kind, int64_t number)
{
    custom->event(custom->user, kind, number, NULL, 0);
}

static void set_transport(sgb_transport *custom, segue_transport *transport)
{
    pthread_mutex_lock(&custom->mutex);
    custom->transport = transport;
    pthread_mutex_unlock(&custom->mutex);
}

static void start(void *self, segue_transport *transport)
{
    set_transport(self, transport);
    emit(self, SGB_TRANSPORT_START, 0);
}

static size_t send_bytes(void *self, const char *bytes, size_t len)
{
    sgb_transport *custom = self;
    pthread_mutex_lock(&custom->mutex);
    size_t room = QUEUED_MAX - custom->queued;
    size_t took = len < room ? len : room;
    if (took && !custom->event(custom->user, SGB_TRANSPORT_SEND, 0, bytes, took))
        took = 0;
    custom->queued += took;
    custom->refused |= took < len;
    pthread_mutex_unlock(&custom->mutex);
    return took;
}

static void close_transport(void *self)
{
    emit(self, SGB_TRANSPORT_CLOSE, 0);
}

static void pause_input(void *self, int32_t paused)
{
    emit(self, SGB_TRANSPORT_PAUSE, paused);
}

static int32_t reopen_transport(void *self)
{
    emit(self, SGB_TRANSPORT_REOPEN, 0);
    return 0;
}

static void free_transport(void *self)
{
    set_transport(self, NULL);
    /* the binding frees custom->user when it takes this event from the side queue */
    emit(self, SGB_TRANSPORT_FREE, 0);
    sgb_transport_unref(self);
}

segue_status sgb_transport_open(sgb_transport *custom, segue_runtime *runtime,
                                bool reopen, segue_transport **transport)
{
    segue_transport_vtable table = SEGUE_TRANSPORT_VTABLE_INIT;
    table.start = start;
    table.send = send_bytes;
    table.close = close_transport;
    table.pause = pause_input;
    table.reopen = reopen ? reopen_transport : NULL;
    table.free = free_transport;
    return segue_transport_custom(runtime, &table, custom, transport);
}

/* ---- the language's side ---- */

typedef segue_status (*report)(segue_transport *transport);

static segue_status report_if_open(sgb_transport *custom, report function)
{
    pthread_mutex_lock(&custom->mutex);
    segue_status status =
        custom->transport ? function(custom->transport) : SEGUE_E_CLOSED;
    pthread_mutex_unlock(&custom->mutex);
    return status;
}

segue_status sgb_transport_writable(sgb_transport *custom)
{
    return report_if_open(custom, segue_transport_writable);
}

segue_status sgb_transport_closed(sgb_transport *custom)
{
    return report_if_open(custom, segue_transport_closed);
}

segue_status sgb_transport_feed(sgb_transport *custom, const char *bytes, size_t len)
{
    pthread_mutex_lock(&custom->mutex);
    segue_status status = custom->transport
                              ? segue_transport_feed(custom->transport, bytes, len)
                              : SEGUE_E_CLOSED;
    pthread_mutex_unlock(&custom->mutex);
    return status;
}

segue_status sgb_transport_took(sgb_transport *custom, int64_t count)
{
    pthread_mutex_lock(&custom->mutex);
    bool is_good = count >= 0 && (size_t)count <= custom->queued;
    if (is_good)
        custom->queued -= (size_t)count;
    bool has_room = is_good && custom->refused && custom->queued <= QUEUED_MAX / 2;
    if (has_room)
        custom->refused = false;
    pthread_mutex_unlock(&custom->mutex);
    if (has_room)
        /* SEGUE_E_CLOSED can be ignored: the library has freed its transport */
        sgb_transport_writable(custom);
    return is_good ? SEGUE_OK : SEGUE_E_INVALID;
}
