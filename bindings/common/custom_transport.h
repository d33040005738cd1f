/* A custom transport that is written in the binding's language. The library calls its
 * vtable on the I/O thread, which must not touch the language. So each call becomes an
 * event in the side queue. The language calls the transport through an sgb_transport,
 * which may be used even after the library has freed its transport. */
#ifndef SGB_CUSTOM_TRANSPORT_H
#define SGB_CUSTOM_TRANSPORT_H

#include <segue/segue_ext.h>
#include <stdbool.h>

typedef struct sgb_transport sgb_transport;

/* Passes an event (SGB_TRANSPORT_*) to the language. Called on any thread. Returns
 * false when the event is lost. */
typedef bool (*sgb_transport_event)(void *user, int kind, int64_t number,
                                    const char *bytes, size_t len);

/* Makes a transport; the caller has the first reference. Returns NULL when out of
 * memory. */
sgb_transport *sgb_transport_new(void *user, sgb_transport_event event);
sgb_transport *sgb_transport_ref(sgb_transport *custom);
void sgb_transport_unref(void *custom);

/* Makes the library's transport, which takes over the caller's reference on SEGUE_OK.
 * SGB_TRANSPORT_FREE is then its last event. reopen: the transport can be opened
 * again. */
segue_status sgb_transport_open(sgb_transport *custom, segue_runtime *runtime,
                                bool reopen, segue_transport **transport);

/* Each function passes something to the library's transport. They return
 * SEGUE_E_CLOSED when the transport is freed. */
segue_status sgb_transport_feed(sgb_transport *custom, const char *bytes, size_t len);
segue_status sgb_transport_writable(sgb_transport *custom);
segue_status sgb_transport_closed(sgb_transport *custom);
/* Called when the language has written `count` bytes of the SGB_TRANSPORT_SEND events.
 * Returns SEGUE_E_INVALID when the language has received fewer bytes. */
segue_status sgb_transport_took(sgb_transport *custom, int64_t count);

#endif
