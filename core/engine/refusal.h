/* Why the store did not take or give back what belongs to an operation, as its client is
 * told (reasons.def). */
#ifndef SGI_REFUSAL_H
#define SGI_REFUSAL_H

#include "engine/serving/peer.h"

typedef struct sgi_refusal {
    char text[160];
    char data[80]; /* JSON */
} sgi_refusal;

/* what: what could not be done, "The server cannot store the operation". */
sgi_refusal sgi_refusal_of(const char *what, segue_status status);
/* The reply ends with it, as error -32603. */
void sgi_reply_refuse(sgi_reply *reply, const char *what, segue_status status);

#define SGI_UNSTORED "The server cannot store the operation"
#define SGI_UNREADABLE "The server cannot read the operation back"

#endif
