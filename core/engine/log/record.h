/* The stored record of an operation: data that is written once, when the operation is
 * created, and read back after a restart. Everything that changes later is in the log. */
#ifndef SGI_RECORD_H
#define SGI_RECORD_H

#include "engine/log/op.h"

typedef struct sgi_record {
    /* the record for the store; it points into the operation and into data */
    segue_store_record head;
    sgi_buf data;
} sgi_record;

/* Makes op->record, which the next commit writes. */
segue_status sgi_record_write(sgi_op *op);
/* Frees op->record, because the record is in the store. */
void sgi_record_free_written(sgi_op *op);
/* Makes an operation from a stored record. The caller then applies the entries of the
 * log. *out is set only when SEGUE_OK. SEGUE_E_STORE_CORRUPT: the record cannot be
 * read. */
segue_status sgi_record_read(sgi_committer *committer, const segue_store_record *record,
                             sgi_op **out);

#endif
