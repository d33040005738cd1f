/* A custom transport that is written in the binding's language. The library calls its
 * vtable on the I/O thread, which must not touch the language. So each call becomes an
 * event in the side queue. The language calls the transport through an sgb_transport,
 * which may be used even after the library has freed its transport. */
#ifndef SGB_CUSTOM_TRANSPORT_H
#define SGB_CUSTOM_TRANSPORT_H

#include <segue/segue_ext.h>
#include <stdbool.h>

typedef struct sgb_transport sgb_transport;

/* Passes an event (SGB_TRANSPORT_*) to the language. Any thread. False = it is lost. */
typedef bool (*sgb_transport_event)(void *user, int kind, int64_t number,
                                    const char *bytes, size_t len);

/* NULL when out of memory. The caller has the first reference. */
sgb_transport *sgb_transport_new(void *user, sgb_transport_event event);
sgb_transport *sgb_transport_ref(sgb_transport *custom);
void sgb_transport_unref(void *custom);

/* Makes the library's transport. After SEGUE_OK it has the caller's reference, and
 * SGB_TRANSPORT_FREE is its last event. reopen: the transport can be opened again. */
segue_status sgb_transport_open(sgb_transport *custom, segue_runtime *runtime,
                                bool reopen, segue_transport **transport);

/* Each passes something to the library's transport. SEGUE_E_CLOSED when it is freed. */
segue_status sgb_transport_feed(sgb_transport *custom, const char *bytes, size_t len);
segue_status sgb_transport_writable(sgb_transport *custom);
segue_status sgb_transport_closed(sgb_transport *custom);
/* The language has written `count` bytes of SGB_TRANSPORT_SEND. SEGUE_E_INVALID when that
 * is more than it got. */
segue_status sgb_transport_took(sgb_transport *custom, int64_t count);

#endif
