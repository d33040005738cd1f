/* An archive: all operations of a store as lines of JSON, which another store can take.
 *
 *   {"archive":1,"records":2}          the first line: its format, that of the records
 *   {"operation":{...}}                the record of an operation
 *   {"entry":{...}}                    each entry of its log, in order
 *   {"state":{"ended":1,"purgeMs":N}}  the end of an operation; purgeMs may be missing
 *   {"gone":1}                         instead of it: the operation is left out
 *   {"end":{"operations":N}}           the last line
 *
 * Bytes that are UTF-8 are in "text", and all others in "base64". */
#ifndef SGI_INSPECT_ARCHIVE_H
#define SGI_INSPECT_ARCHIVE_H

#include "inspect/inspect.h"

#define SGI_ARCHIVE_FORMAT 1

/* Passes the archive of a store, line by line. Servers may run meanwhile: each operation
 * is passed as it is when its turn comes. SEGUE_E_STORE_CORRUPT when all lines were
 * passed and operations that cannot be read were left out. */
segue_status sgi_archive_write(sgi_inspection *inspection);

/* The lines of an archive one by one, as sgi_archive_write passes them. */
segue_status sgi_archive_pass_start(sgi_inspection *inspection);
segue_status sgi_archive_pass_record(sgi_inspection *inspection,
                                     const segue_store_record *record);
void sgi_archive_write_entry(sgi_inspection *inspection, sgi_jw *w,
                             const segue_store_entry *entry);
segue_status sgi_archive_pass_state(sgi_inspection *inspection,
                                    const segue_store_record *record);

/* Takes the lines of an archive, one operation after the other. */
typedef struct sgi_archive_reader sgi_archive_reader;

sgi_archive_reader *sgi_archive_reader_new(segue_store *store);
const sgi_mem *sgi_archive_mem(const sgi_archive_reader *reader);
/* Takes the next line. After SEGUE_E_INVALID and SEGUE_E_NOMEM no further line is taken;
 * after another failure one operation is left out. *why receives a static text, or stays
 * NULL when the status says all. */
segue_status sgi_archive_take(sgi_archive_reader *reader, sgi_str line, const char **why);
/* SEGUE_E_INCOMPLETE when the last line is missing. */
segue_status sgi_archive_end(const sgi_archive_reader *reader);
/* Numbers of operations: made, there already, and left out after a failure. */
typedef struct sgi_archive_counts {
    uint64_t made, present, left_out;
} sgi_archive_counts;
sgi_archive_counts sgi_archive_counted(const sgi_archive_reader *reader);
void sgi_archive_reader_free(sgi_archive_reader *reader);

#endif
