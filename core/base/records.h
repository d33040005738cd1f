/* The formats of records and entries: what the engine writes into a store, whichever
 * store it is. Each store maps the number of its own format to one of these
 * (core/docs/upgrades.md). tests/files/records_format_N.txt lists what belongs to each
 * format. */
#ifndef SGI_RECORDS_H
#define SGI_RECORDS_H

/* The newest format that this library reads and writes. */
#define SGI_RECORDS 2

/* The format from which on a stored call can become a task: the record has "task":2, and
 * the log the entry TASK. */
#define SGI_RECORDS_WITH_TASK_ENTRY 2

#endif
