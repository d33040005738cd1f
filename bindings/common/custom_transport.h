/* A custom transport that is written in the binding's language. The library calls the
 * transport's vtable on the I/O thread, which must not touch the language. So each call
 * becomes an event in the side queue. The language calls the library through an
 * sgb_transport, which may be used even after the library has freed its own transport. */
#ifndef SGB_CUSTOM_TRANSPORT_H
#define SGB_CUSTOM_TRANSPORT_H

#include <segue/segue_ext.h>
#include <stdbool.h>

typedef struct sgb_transport sgb_transport;

/* Passes an event (SGB_TRANSPORT_*) to the binding's language. May be called on any
 * thread. Returns false when the event is lost. */
typedef bool (*sgb_transport_event)(void *user, int kind, int64_t number,
                                    const char *bytes, size_t len);

/* Makes a transport with one reference, which the caller owns. Returns NULL when out of
 * memory. */
sgb_transport *sgb_transport_new(void *user, sgb_transport_event event);
sgb_transport *sgb_transport_ref(sgb_transport *custom);
void sgb_transport_unref(void *custom);

/* Makes the library's transport. On SEGUE_OK the library's transport takes over the
 * caller's reference, and SGB_TRANSPORT_FREE is the last event. `reopen`: true = a lost
 * connection can be opened again. */
segue_status sgb_transport_open(sgb_transport *custom, segue_runtime *runtime,
                                bool reopen, segue_transport **transport);

/* The next three functions pass received bytes or a state to the library's transport. The
 * functions return SEGUE_E_CLOSED when the library has freed its transport. */
segue_status sgb_transport_feed(sgb_transport *custom, const char *bytes, size_t len);
segue_status sgb_transport_writable(sgb_transport *custom);
segue_status sgb_transport_closed(sgb_transport *custom);
/* Called when the language has written `count` bytes of the SGB_TRANSPORT_SEND events.
 * Returns SEGUE_E_INVALID when fewer than `count` bytes are unwritten. */
segue_status sgb_transport_took(sgb_transport *custom, int64_t count);

#endif
