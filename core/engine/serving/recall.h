/* What a call was asked and answered before it came to this server: it began in another,
 * or in an earlier run of this one, and its client has brought that along. Its tool runs
 * from the start; a question that it asks again is the same question, under the same key,
 * and the answer is there already.
 *
 * A client may also bring answers, and no state (SEP-2322 leaves states to the server).
 * Those are for keys that the tool chose, which mean the same in every call of it. */
#ifndef SGI_RECALL_H
#define SGI_RECALL_H

#include "engine/serving/peer.h"

#define SGI_RECALL_DIGEST 16

typedef struct sgi_recalled {
    STAILQ_ENTRY(sgi_recalled) link;
    char *key;
    bool is_early; /* it was not asked: whatever the tool asks under the key */
    uint8_t question[SGI_RECALL_DIGEST]; /* method and params */
    char *answer;                        /* JSON, or NULL: it was not answered */
    size_t answer_len;
} sgi_recalled;

/* Appends what is known of the questions of an operation: an object. */
void sgi_recall_write(const sgi_op *op, sgi_buf *out);
/* What the request brings is known to its operation from now on: the state of another
 * server, and answers. False when out of memory. */
bool sgi_recall_take(sgi_op *op, const sgi_inbound *in);
/* The question, when it was asked before and is not asked yet; key NULL = under
 * whichever. */
const sgi_recalled *sgi_recall_find(const sgi_op *op, const char *key, const char *method,
                                    sgi_json params);
/* Its answer, asked again or not; empty when there is none. */
sgi_json sgi_recall_answer(const sgi_op *op, const char *key, const char *method,
                           sgi_json params);
/* Is the key one of another question? */
bool sgi_recall_has_key(const sgi_op *op, const char *key);
void sgi_recall_free(sgi_op *op);

#endif
