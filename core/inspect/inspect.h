/* Looking into a store: operations as JSON texts for tools and people. The store is all
 * that is read: no runtime, no server and no claim is needed, so the servers of the store
 * may run or not. Each function may block, and may be called on any thread. */
#ifndef SGI_INSPECT_H
#define SGI_INSPECT_H

#include "engine/engine.h"
#include "store/store.h"

#define SGI_INSPECT_DEPTH 100000 /* deeper than any server allows */
/* at most this much memory stays allocated between two texts */
#define SGI_INSPECT_KEEP ((size_t)64 * 1024)
/* this many bytes of entries are read before the callback gets them; one more entry may
 * follow */
#define SGI_INSPECT_PAGE ((size_t)256 * 1024)

/* The memory and the reader of one look into a store. The callback never runs under the
 * lock of the store. */
typedef struct sgi_inspection {
    segue_store *store;
    segue_hooks hooks; /* random numbers and the wall clock alone */
    sgi_env env;
    sgi_json_reader reader;
    sgi_buf json; /* the text that the callback gets */
    segue_store_json_fn fn;
    void *user;
    /* the digest of the only principal whose operations are seen; NULL = all are */
    const uint8_t *only;
    struct sgi_summary_cache *cache; /* NULL = each summary reads the whole log */
    bool is_redacted;                /* texts lack what clients and tools have said */
    uint64_t folded; /* number of bytes of entries that summaries have read */
    bool stop;       /* the callback has asked for no more */
    bool failed;     /* memory ran out, so a text may lack a part */
} sgi_inspection;

void sgi_inspection_begin(sgi_inspection *inspection, segue_store *store,
                          segue_store_json_fn fn, void *user);
void sgi_inspection_end(sgi_inspection *inspection);

/* Passes a summary of each operation to the callback, the newest first. Operations of
 * which the server makes use itself are left out. */
segue_status sgi_inspect_all(sgi_inspection *inspection);
/* Passes the summary of one operation, with its parameters. SEGUE_E_NOT_FOUND without
 * such an operation. */
segue_status sgi_inspect_one(sgi_inspection *inspection, const char *task_id);
/* The same without the parameters. */
segue_status sgi_inspect_brief(sgi_inspection *inspection, const char *task_id);
/* Passes each entry of an operation's log with a number above `after`. *ended becomes 1
 * when the operation had ended before its log was read. */
segue_status sgi_inspect_entries(sgi_inspection *inspection, const char *task_id,
                                 uint64_t after, int32_t *ended);
/* Sends a command to the owner of an operation: {"cancel":1} or {"answer":{...}}. key:
 * the key of the question that the command answers, which must be open; empty = the
 * command is no answer. */
segue_status sgi_inspect_command(sgi_inspection *inspection, const char *task_id,
                                 sgi_str command, sgi_str key);
/* Writes the text of a command anew into inspection->json, so that the owner of the
 * operation gets nothing else. *key receives the key of the question that the command
 * answers. Returns false for a text that is no command. */
bool sgi_inspect_write_command(sgi_inspection *inspection, sgi_str text, sgi_str *key);
/* Deletes an operation that has ended. SEGUE_E_STATE when it has not. */
segue_status sgi_inspect_remove(sgi_inspection *inspection, const char *task_id);

/* ---- shared by the files of this folder ---- */

/* A copy of a record that outlives the callback of the store. */
typedef struct sgi_inspected_record {
    segue_store_record head; /* its pointers point into `bytes` */
    sgi_buf bytes;
} sgi_inspected_record;

/* Finds the record of any operation. */
segue_status sgi_inspection_find_any(sgi_inspection *inspection, const char *task_id,
                                     sgi_inspected_record *record);
/* True for a mailbox, in which servers find what others tell them. */
bool sgi_inspection_is_mailbox(const segue_store_record *record);
/* Finds the record of an operation that people may see. */
segue_status sgi_inspection_find(sgi_inspection *inspection, const char *task_id,
                                 sgi_inspected_record *record);
/* False for an operation that a server keeps for itself, and for one of a principal that
 * the inspection does not see. */
bool sgi_inspection_shows(const sgi_inspection *inspection,
                          const segue_store_record *record);
/* The data of the record when it is an object, else nothing. */
sgi_json sgi_inspection_data(sgi_inspection *inspection,
                             const segue_store_record *record);
/* Writes bytes as a member in base64. */
void sgi_inspection_write_base64(sgi_jw *w, const char *name, const void *bytes,
                                 size_t n);
/* Writes an entry as one JSON object. */
typedef void (*sgi_entry_writer)(sgi_inspection *inspection, sgi_jw *w,
                                 const segue_store_entry *entry);
/* Passes each entry with a number above *after to the callback. *after becomes the number
 * of the last one. */
segue_status sgi_inspection_pass_log(sgi_inspection *inspection, const uint8_t *id,
                                     uint64_t *after, sgi_entry_writer write);
/* Calls the callback with `json`, which becomes one line, and empties it. */
segue_status sgi_inspection_pass(sgi_inspection *inspection);
/* True when the text is JSON that the library accepts. */
bool sgi_inspection_accepts(sgi_inspection *inspection, sgi_str text);

#endif
