/* The reason that a client gets when the server could not write data of an operation to
 * the store, or could not read it (reasons.def). */
#ifndef SGI_REFUSAL_H
#define SGI_REFUSAL_H

#include "base/base.h"

typedef struct sgi_store_refusal {
    char text[160];
    char data[80]; /* JSON text of the member "data" of the error */
} sgi_store_refusal;

/* The action that the store refused. */
typedef enum sgi_store_failure {
    SGI_UNSTORED, /* an operation was not stored */
    /* a change that the client requested was not made; the client can request the change
     * again */
    SGI_PUT_OFF,
    SGI_UNREADABLE, /* an operation was not read */
    SGI_UNLISTED    /* the tasks were not listed */
} sgi_store_failure;

/* Returns the message and the data of an error. status: the status that the store
 * returned. */
sgi_store_refusal sgi_store_refusal_of(sgi_store_failure failure, segue_status status);

#endif
