/* The summary of an operation: a fold over its log that keeps what a person asks first.
 * The head of an operation (op_head.h), which servers use, needs a server. */
#ifndef SGI_INSPECT_SUMMARY_H
#define SGI_INSPECT_SUMMARY_H

#include "inspect/inspect.h"

/* a summary keeps at most this many open questions; servers allow 64 unless told else */
#define SGI_SUMMARY_QUESTIONS 64

typedef struct sgi_summary {
    /* the kind of the first final entry, which is the end; 0 = no end. A server that did
     * not hear of a commit may have written another one behind it */
    int32_t final;
    bool is_error; /* the result says that the tool has failed */
    int64_t updated_ms;
    uint64_t entries, segments;
    uint64_t bytes;           /* of the data of all entries */
    uint64_t asked, answered; /* numbers of questions */
    uint64_t checkpoint_bytes;
    bool became_task;
    bool is_redacted; /* what clients and tools have said is not written */
    bool unreadable;  /* the data of an entry is not what a server writes */
    sgi_buf message;  /* the last status message, a JSON string; empty = none */
    /* the entries of the open questions, JSON objects; a text of length 0 = free */
    sgi_buf questions[SGI_SUMMARY_QUESTIONS];
} sgi_summary;

void sgi_summary_init(sgi_summary *summary, const sgi_mem *mem);
void sgi_summary_free(sgi_summary *summary);
void sgi_summary_add(sgi_summary *summary, sgi_inspection *inspection,
                     const segue_store_entry *entry);
bool sgi_summary_has_failed(const sgi_summary *summary); /* memory ran out */
/* True when the question with this key is open. */
bool sgi_summary_has_question(const sgi_summary *summary, sgi_str key);
/* Writes the members of the summary into an open object. data: the data of the record, an
 * object; empty = unreadable. */
void sgi_summary_write(const sgi_summary *summary, sgi_jw *w,
                       const segue_store_record *record, sgi_json data);

#endif
