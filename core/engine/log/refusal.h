/* The reason that a client gets when the server could not write data of an operation to
 * the store, or could not read it (reasons.def). */
#ifndef SGI_REFUSAL_H
#define SGI_REFUSAL_H

#include "base/base.h"

typedef struct sgi_store_refusal {
    char text[160];
    char data[80]; /* JSON text of the member "data" of the error */
} sgi_store_refusal;

/* Returns the message and the data of an error. what: the action that failed, for example
 * "The server cannot store the operation". status: the status that the store returned. */
sgi_store_refusal sgi_store_refusal_of(const char *what, segue_status status);

#define SGI_UNSTORED "The server cannot store the operation"
#define SGI_UNREADABLE "The server cannot read the operation"

#endif
