/* The stored form of an operation: what is written once, at creation, and read back after
 * a restart. Everything that changes later is in the log. */
#ifndef SGI_RECORD_H
#define SGI_RECORD_H

#include "engine/log/op.h"

typedef struct sgi_record {
    segue_store_record head; /* points into the op and into data */
    sgi_buf data;
} sgi_record;

/* Makes op->record. */
segue_status sgi_record_write(sgi_op *op);
/* The record is in the store: frees op->record. */
void sgi_record_written(sgi_op *op);
/* Is it a task that this dialect shows? False also for a record that does not parse. */
bool sgi_record_is_of(sgi_engine *engine, const segue_store_record *record,
                      const struct sgi_dialect *dialect);
/* Makes an operation of a stored record; its log is yet to be applied. *out is unchanged
 * unless SEGUE_OK; SEGUE_E_STORE_CORRUPT for a record that does not parse. */
segue_status sgi_record_read(segue_server *server, const segue_store_record *record,
                             sgi_op **out);

#endif
