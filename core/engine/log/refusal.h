/* The reason that a client gets when data of an operation could not be written to the
 * store, or read from it (reasons.def). */
#ifndef SGI_REFUSAL_H
#define SGI_REFUSAL_H

#include "base/base.h"

typedef struct sgi_refusal {
    char text[160];
    char data[80]; /* JSON text of the error's data */
} sgi_refusal;

/* Returns the reason and its data. what: the action that failed, for example "The server
 * cannot store the operation". */
sgi_refusal sgi_refusal_of(const char *what, segue_status status);

#define SGI_UNSTORED "The server cannot store the operation"
#define SGI_UNREADABLE "The server cannot read the operation back"

#endif
