/* How an attempt of a client was lost: a request, or the reopening of its stream. */
#ifndef SGI_LOSS_H
#define SGI_LOSS_H

typedef enum sgi_loss {
    SGI_LOSS_ANSWERED = 0, /* the server was reached, and the answer did not come */
    SGI_LOSS_BROKEN,       /* the connection broke after it was made */
    /* no connection could be made, or nothing of the message can have reached the server
     * for another reason */
    SGI_LOSS_UNSENT
} sgi_loss;

#endif
