/* Questions and answers of an earlier run of a call, which the client brings along. The
 * earlier run was at another server, or in an earlier process of this server. The client
 * brings its questions and answers in a requestState. The tool now runs from the start.
 * When the tool asks one of these questions again, the question keeps its key and already
 * has its answer.
 *
 * A client can also send answers without a requestState, because SEP-2322 allows servers
 * that use no requestState. An answer without a requestState names only a key. The tool
 * chooses its keys, and a key means the same in every call of the tool. */
#ifndef SGI_CARRIED_ANSWERS_H
#define SGI_CARRIED_ANSWERS_H

#include "engine/server/peer.h"

#define SGI_CARRIED_ANSWERS_DIGEST 16

typedef struct sgi_carried_answer {
    STAILQ_ENTRY(sgi_carried_answer) link;
    char *key;
    /* the answer came without a question, so it answers any question with this key */
    bool is_early;
    /* digest of the question's method and params */
    uint8_t question[SGI_CARRIED_ANSWERS_DIGEST];
    /* JSON text of the answer; NULL = the question was not answered */
    char *answer;
    size_t answer_len;
} sgi_carried_answer;

/* Appends the questions of an operation and their answers to `out`, as a JSON object. */
void sgi_carried_answers_write(const sgi_op *op, sgi_buf *out);
/* Reads the answers that a request brings for its operation: the answers in a
 * requestState that another server made, and the answers in the request itself. Returns
 * false when out of memory. */
bool sgi_carried_answers_read(sgi_op *op, const sgi_inbound *in);
/* Returns a question of an earlier run that the client has brought along (a carried
 * question) and that the tool has not asked again yet; NULL when no such question
 * matches. key = NULL matches every key. */
const sgi_carried_answer *sgi_carried_answers_find(const sgi_op *op, const char *key,
                                                   const char *method, sgi_json params);
/* Returns the answer to a carried question (a question of an earlier run that the client
 * has brought along), whether or not the tool has asked the question again. Returns an
 * empty value when there is no answer. */
sgi_json sgi_carried_answers_get(const sgi_op *op, const char *key, const char *method,
                                 sgi_json params);
/* True when a question that the client has brought along from an earlier run has this
 * key. */
bool sgi_carried_answers_has_key(const sgi_op *op, const char *key);
void sgi_carried_answers_free(sgi_op *op);

#endif
