/* The stored record of an operation: data that is written once, when the operation is
 * created, and is read after a restart. Everything that changes later is in the log. */
#ifndef SGI_RECORD_H
#define SGI_RECORD_H

#include "engine/log/op.h"

/* The record of an operation that is not in the store yet. Its texts are in op->text,
 * which the operation keeps, and which a store in memory keeps instead of a copy. */
typedef struct sgi_op_record {
    segue_store_record head;
} sgi_op_record;

/* Makes op->text and op->record; the next commit writes op->record to the store. */
segue_status sgi_op_record_make(sgi_op *op, sgi_str task_id);
/* Frees op->record. Called when the record is in the store, or is no longer needed. */
void sgi_op_record_free_written(sgi_op *op);
/* Makes an operation from a stored record. The caller then applies the entries of the
 * log. Sets *out only on SEGUE_OK. Returns SEGUE_E_STORE_CORRUPT when the record cannot
 * be read. */
segue_status sgi_op_new_from_record(sgi_committer *committer,
                                    const segue_store_record *record, sgi_op **out);

#endif
