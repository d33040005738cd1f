/* The operation and its ordered log, the central idea of this library. A handler appends
 * to the log, and every wire dialect reads the log. Appending is the only way to change
 * an operation, and the state of an operation is a fold over its log (R-C-1).
 *
 * An operation is stored when a client can ask for it after its request: a task, a call
 * with an idempotency key, or a call that can be resumed. Mailboxes are stored too. Other
 * operations do not use the store. Peers may see only the durable part of a stored
 * operation: `durable` is the horizon of every projection (R-C-2). A plain operation is
 * never stored, so all of its log is visible at once.
 *
 * The life of a segment: the handler's thread appends the segment under the lock (emit.c
 * -> sgi_op_append_list). The segment gets its number, and the operation is marked dirty
 * (committer.c). The host writes everything that is dirty to the store, on a thread of
 * its own if the store may block, and then calls sgi_op_became_durable. Now the segment
 * is visible. First the readers of streams are called, then the code that waits for a
 * position. The reader of a stream makes its source ready (conn.c). The transport, when
 * it has room, asks the source for bytes. So a segment waits only in the log, never in a
 * queue. Handlers wait while too many entries are not durable (sgi_op_is_full), and
 * streams wait while their clients do not read.
 *
 * A log has exactly one final entry, and appending after it is refused. This rule alone
 * decides races between completing, cancelling and expiring (R-C-3). */
#ifndef SGI_OP_H
#define SGI_OP_H

#include "base/limit.h"
#include "engine/log/account.h"
#include "engine/log/fold.h"
#include "engine/log/committer.h"
#include "engine/log/retention.h"

typedef struct sgi_reader sgi_reader;
typedef struct sgi_waiter sgi_waiter;

/* Kinds of entries. The numbers are stored, so they never change. */
typedef enum sgi_entry_kind {
    SGI_ENTRY_SEGMENT = 1, /* one content block, or [index,block] */
    SGI_ENTRY_FIELDS = 2,  /* an object: members of the result beside the list */
    SGI_ENTRY_REPLACE = 3, /* {}: makes all earlier segments and fields void */
    /* {"status","statusMessage"?}: the status of the operation */
    SGI_ENTRY_STATUS = 4,
    SGI_ENTRY_INPUT_ASK = 5, /* {"key","method","params"}: a question to the client */
    /* {"key","response"} or {"key","error"}: the answer to a question */
    SGI_ENTRY_INPUT_ANSWER = 6,
    SGI_ENTRY_CHECKPOINT = 7, /* bytes that the handler stores for a later run */
    SGI_ENTRY_RESULT = 8,     /* final: the call has a result: {} or {"isError":true} */
    SGI_ENTRY_ERROR = 9,      /* final: the call has failed: a JSON-RPC error object */
    SGI_ENTRY_CANCELLED = 10, /* final: the call was cancelled: {} */
    /* final: the time to live is over: a JSON-RPC error object */
    SGI_ENTRY_EXPIRED = 11,
    SGI_ENTRY_NOTIFY = 12, /* members of a notification: "method":..,"params":.. */
    /* lasting calls: {"away":0 or 1}: from now on the client is away (1) or connected
     * (0) */
    SGI_ENTRY_PRESENCE = 13,
    /* dialect S: {}: the handler starts again and counts blocks from 0; all earlier
     * blocks stay valid; clients do not receive this entry */
    SGI_ENTRY_ANEW = 14
} sgi_entry_kind;

static inline bool sgi_entry_is_final(int32_t kind)
{
    return kind >= SGI_ENTRY_RESULT && kind <= SGI_ENTRY_EXPIRED;
}

static inline bool sgi_entry_is_known(int32_t kind)
{
    return kind >= SGI_ENTRY_SEGMENT && kind <= SGI_ENTRY_ANEW;
}

/* The ways in which an operation can end. Each dialect has its own words for them
 * (C-10). */
typedef enum sgi_final {
    SGI_FINAL_NONE = 0,
    SGI_FINAL_RESULT,
    SGI_FINAL_RESULT_IS_ERROR,
    SGI_FINAL_ERROR,
    SGI_FINAL_CANCELLED,
    SGI_FINAL_EXPIRED
} sgi_final;

typedef enum sgi_state {
    SGI_STATE_WORKING = 0,
    SGI_STATE_INPUT_REQUIRED,
    SGI_STATE_COMPLETED,
    SGI_STATE_FAILED,
    SGI_STATE_CANCELLED
} sgi_state;

/* Which server owns and runs an operation. Code that writes, runs or reports an operation
 * must check this first. */
typedef enum sgi_hold {
    /* This server owns the operation, and its handler has not started. The handler of a
     * keyed or lasting operation starts when the creation is durable. */
    SGI_HOLD_NEW = 0,
    /* This server owns the operation. Its handler was started here, or need not be
     * started. */
    SGI_HOLD_HERE,
    SGI_HOLD_ELSEWHERE, /* another server on the store runs the operation (following.h) */
    /* the log is being read from the store and is incomplete; only recovery.c uses the
     * operation */
    SGI_HOLD_UNREAD
} sgi_hold;

#define SGI_INPUT_KEY_MAX 64

/* A question of the operation to its client. */
typedef struct sgi_input {
    TAILQ_ENTRY(sgi_input) link;
    char *key;
    char *method;
    char *params; /* the question's params: a JSON object */
    size_t params_len;
    uint64_t asked; /* position of the question's ASK entry in the log */
    /* position of the question's ANSWER entry in the log; 0 = there is no answer */
    uint64_t answered;
    char *answer; /* JSON text of the answer */
    size_t answer_len;
    /* the answer is an error object: the client could not answer, or refused to */
    bool failed;
    int32_t bad_answers;
    bool bound;     /* a handler of this process gets the answer */
    bool delivered; /* the handler was called with the answer */
    segue_input_fn on_input;
    void *user;
    segue_free_fn free_user;
    /* the request that carries the question, or NULL; see question_requests.h */
    struct sgi_question_request *question_request;
    /* the task that asks the question, or NULL; see input/question_task.h */
    struct sgi_question_task *question_task;
} sgi_input;

TAILQ_HEAD(sgi_input_list, sgi_input);

/* A status message of the operation, with the position of its entry. */
typedef struct sgi_status_message {
    TAILQ_ENTRY(sgi_status_message) link;
    uint64_t seq;
    char *text;
} sgi_status_message;

TAILQ_HEAD(sgi_status_message_list, sgi_status_message);

/* Kinds of entries that may leave a log before its end (dropping.h). */
typedef enum sgi_drop {
    SGI_DROP_SEGMENTS,
    SGI_DROP_NOTES,
    SGI_DROP_MARKS,
    SGI_DROPS
} sgi_drop;

/* How much of structuredContent is kept for the check at the end of the call. */
typedef enum sgi_output {
    SGI_OUTPUT_NONE = 0, /* nothing: the tool has no outputSchema */
    /* only whether structuredContent exists, because its value is not checked */
    SGI_OUTPUT_THERE,
    SGI_OUTPUT_KEPT
} sgi_output;

/* The map node by which an operation with an idempotency key is found. */
typedef struct sgi_op_key {
    sgi_map_node node; /* node of by_key of the server */
    sgi_op *op;
    uint8_t key[SGI_DIGEST_SIZE];
    uint8_t digest[SGI_DIGEST_SIZE]; /* digest of the request that first used the key */
} sgi_op_key;

/* The state of an operation, a fold over its log (R-C-1). op_head.c applies entries to
 * the state, in the same way whether they were appended or come from the store. Other
 * files change only what does not follow from the entries. op.c removes entries that
 * cannot be written, skips numbers that the store has lost, and sets the end of an
 * operation that was never created. Files that free entries early (dropping.c and the
 * file of lasting calls) reduce log_bytes. record.c sets the time of creation. */
typedef struct sgi_head {
    /* Numbers of the next entry, the next segment and the next event. next_evt is 1 + the
     * number of the next event. */
    uint64_t next_log, next_seg, next_evt;
    /* wall clock time of the last change that peers may see */
    int64_t updated_ms;
    int64_t ended_ms;
    size_t log_bytes;
    /* like log_bytes, but still includes entries that have left the log */
    uint64_t appended_bytes;

    /* The following members describe the result so far. */
    /* position of the first FIELDS entry that is not void; 0 = none */
    uint64_t first_fields;
    uint64_t voided_seq; /* position of the last REPLACE entry; 0 = there was none */
    /* number of the last segment that this REPLACE entry has made void */
    uint64_t voided_seg;
    /* number of blocks before the last ANEW entry; the running handler does not count
     * them */
    uint64_t anew;
    uint64_t blocks;       /* number of blocks that the result has so far */
    sgi_text_blocks texts; /* which blocks of the result are texts */
    /* JSON text of structuredContent; "" for SGI_OUTPUT_THERE; NULL = not set yet */
    char *structured;
    size_t structured_len;
    bool structured_lost; /* there was no memory for structuredContent */
    bool immediate; /* dialect S: the result was sent as the plain answer to the call */

    /* The following members describe the end of the operation. */
    sgi_final final;
    uint64_t final_seq;
    char *final_data; /* the error object of an ERROR or EXPIRED entry */
    size_t final_len;

    /* the visible status message, and later messages that are not visible yet */
    struct sgi_status_message_list remarks;
    struct sgi_input_list inputs;
    int32_t input_count;
    void *checkpoint;
    size_t checkpoint_len;
} sgi_head;

/* Whether an operation is in the store. op_state.c has the table of moves. */
typedef enum sgi_stored {
    /* the operation is in memory only, and all of its log is visible */
    SGI_STORED_NOT = 0,
    SGI_STORED_CREATING, /* the creation of the operation is being written to the store */
    SGI_STORED_YES,      /* the operation is in the store */
    /* the store has the beginning of the log but refused later entries, so the operation
     * ends in memory only */
    SGI_STORED_BROKEN
} sgi_stored;

/* What the committer is doing with the operation. */
typedef enum sgi_writing {
    SGI_WRITING_NOTHING = 0,
    SGI_WRITING_DIRTY, /* the operation is in a list of the committer */
    SGI_WRITING_NOW    /* the operation is in a commit */
} sgi_writing;

struct sgi_op {
    sgi_committer *committer;
    sgi_engine *engine;
    struct sgi_shared *shared; /* the cluster's data of the operation */
    /* the server's data of the operation; the observer's function freed() frees both */
    struct sgi_served *served;
    int32_t refs;
    /* number of running callbacks of the application that read bytes of the head */
    int32_t lent;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    /* id of the task; NULL = the operation is no task and is not stored */
    char *task_id;
    sgi_op_key *key;     /* the idempotency key, or NULL */
    int64_t created_ms;  /* wall clock time of the creation */
    int64_t ttl_ms;      /* time to live; -1 = unlimited */
    sgi_timer end_again; /* set while the engine has to try again to end the operation */

    /* The following members are the log. */
    sgi_head head;
    uint64_t durable;
    sgi_limits limits;
    /* the newest entries; for an operation that is not stored, the whole log */
    struct sgi_entry_list tail;
    size_t tail_bytes;
    sgi_entry *pending; /* the first entry that is not durable */
    size_t pending_bytes;
    /* Positions up to which entries are dropped (drop_upto), and up to which the store
     * was asked to delete them (gone_upto); see dropping.c. */
    uint64_t drop_upto[SGI_DROPS], gone_upto[SGI_DROPS];
    /* dialect E: limits of the retained events; NULL = events have no such limits */
    struct sgi_retention *retention;
    sgi_limit reached; /* the limit because of which the last entry was refused */
    /* counts the bytes that the operation holds in memory */
    sgi_account *account;
    /* number of bytes that the operation holds in memory */
    size_t held;
    sgi_output output; /* how much of structuredContent is stored */
    /* dialect P: entries are freed when the only reader has consumed them, and are never
     * read again */
    bool frees_consumed;
    /* entries may leave the log before the operation ends; the observer is called for
     * each new entry */
    bool drops;
    bool end_received; /* a client has received the end of the operation */

    /* The following members describe the operation in the store. */
    sgi_stored stored;
    sgi_hold hold;
    sgi_writing writing;
    /* Another server may own the operation, or the store may have lost some of its
     * entries. The outcome of the next commit shows which. */
    bool doubted;
    /* the store has lost the end of the log, so the operation must end */
    bool torn;
    /* this server closes, so the store may let another server claim the operation */
    bool releasing;
    /* clients can no longer ask for the operation, so it is deleted from the store */
    bool deleting;
    TAILQ_ENTRY(sgi_op) dirty_link;
    /* number of the first entry after those that the store has lost; 0 = no entry is
     * lost */
    uint64_t behind_hole;
    /* number of the last forwarded command that was run */
    uint64_t commands_taken;
    uint64_t commands_taken_stored; /* the value of commands_taken that the store has */
    /* the operation's record, until the operation is created (record.h) */
    struct sgi_record *record;

    /* ---- readers and waiters ---- */
    TAILQ_HEAD(, sgi_reader) readers;
    TAILQ_HEAD(, sgi_waiter) waiters;
    LIST_HEAD(, sgi_watch) watches;
};

/* Code that waits until the operation is created and its log is visible up to seq, or
 * until the creation has failed. SGI_WAIT_FINAL: waits until the end is visible. */
#define SGI_WAIT_FINAL UINT64_MAX
struct sgi_waiter {
    TAILQ_ENTRY(sgi_waiter) link;
    sgi_op *op; /* the operation, while the waiter waits */
    uint64_t seq;
    /* NULL: the waiter is called when position `seq` is visible. Otherwise it is called
     * when this function returns true. */
    bool (*is_due)(const sgi_op *op, const sgi_waiter *waiter);
    uint64_t number; /* a number that is_due uses */
    /* Called when the wait is over. status: SEGUE_OK, or why the write has failed. The
     * function frees the waiter. */
    void (*fire)(sgi_waiter *waiter, sgi_op *op, segue_status status);
};

/* A function that is called at each visible change of the status of an operation
 * (subscriptions.c). */
typedef struct sgi_watch {
    LIST_ENTRY(sgi_watch) link;
    void (*changed)(struct sgi_watch *watch, sgi_op *op);
} sgi_watch;

/* Makes an operation. Its memory block also has room for the data of cluster and server
 * (sgi_log_observer.room). Returns NULL when out of memory. */
sgi_op *sgi_op_new(sgi_committer *committer);
/* Add bytes to the bytes that the operation holds, and to its account, or subtract bytes
 * from them. */
static inline void sgi_op_hold_bytes(sgi_op *op, size_t bytes)
{
    op->held += bytes;
    sgi_account_add(op->account, bytes);
}

static inline void sgi_op_release_bytes(sgi_op *op, size_t bytes)
{
    op->held -= bytes;
    sgi_account_subtract(op->account, bytes);
}

/* Gives the operation an idempotency key. False when out of memory. */
bool sgi_op_set_key(sgi_op *op, const uint8_t key[SGI_DIGEST_SIZE],
                    const uint8_t digest[SGI_DIGEST_SIZE]);
void sgi_op_ref(sgi_op *op);
void sgi_op_unref(sgi_op *op);

/* Appends entries that have no numbers yet. Appends all of them, or appends none and
 * frees the list. Only the first entry may have a payload that is copied into the head
 * (status, inputs, checkpoint, errors). The memory for segments, one bit each, is
 * reserved for the whole list before the first entry is appended. */
segue_status sgi_op_append_list(sgi_op *op, struct sgi_entry_list *list);
/* Appends one entry. SEGUE_E_TERMINAL: the log has its final entry. SEGUE_E_LIMIT: the
 * log is full. */
segue_status sgi_op_append(sgi_op *op, sgi_entry_kind kind, sgi_str payload);
/* Appends a final entry, even when the limits are exceeded. */
segue_status sgi_op_end(sgi_op *op, sgi_entry_kind kind, sgi_str payload);
/* Ends the operation with the error -32603. When out of memory, tries again until it
 * succeeds. If the operation has already ended and its store refuses writes, publishes
 * this end. */
void sgi_op_end_internal_error(sgi_op *op, const char *text);
/* Ends the operation with a JSON-RPC error object of this code, message and data. data
 * may be empty. */
segue_status sgi_op_fail(sgi_op *op, sgi_entry_kind kind, int32_t code, sgi_str message,
                         sgi_json data);
/* Applies an entry from the store to the head, to rebuild the state (R-C-1). For an
 * operation that another server runs, or whose log is being read from the store. An entry
 * that should be dropped is only noted. */
segue_status sgi_op_apply(sgi_op *op, const sgi_entry *entry);

/* Turns a plain operation into a stored operation. */
segue_status sgi_op_make_stored(sgi_op *op);
/* Frees durable entries of the tail, except those that a reader is about to read. */
void sgi_op_trim(sgi_op *op);
/* Frees the entries up to seq. Only for an operation with op->frees_consumed. */
void sgi_op_free_consumed(sgi_op *op, uint64_t seq);
/* Called by the committer. became_durable: entries up to seq are durable. write_failed: a
 * write of the operation has failed. */
void sgi_op_became_durable(sgi_op *op, uint64_t seq);
void sgi_op_write_failed(sgi_op *op, segue_status status);
/* Notes that the store has lost an unknown number of entries at the end of the log. The
 * next entry, which ends the operation, gets a number above all numbers that a peer can
 * have seen. */
void sgi_op_skip_lost_entries(sgi_op *op);
/* Change the three states of an operation. No other function may change these states;
 * op_state.c has the tables of allowed moves. */
void sgi_op_set_stored(sgi_op *op, sgi_stored to);
void sgi_op_set_writing(sgi_op *op, sgi_writing to);
void sgi_op_set_hold(sgi_op *op, sgi_hold to);

/* True when the operation is in the store, or its creation is being written. */
static inline bool sgi_op_is_logged(const sgi_op *op)
{
    return op->stored != SGI_STORED_NOT;
}

static inline bool sgi_op_is_created(const sgi_op *op)
{
    return op->stored >= SGI_STORED_YES;
}

static inline bool sgi_op_is_broken(const sgi_op *op)
{
    return op->stored == SGI_STORED_BROKEN;
}

/* Returns the horizon: the position of the last entry that a peer may see. */
static inline uint64_t sgi_op_horizon(const sgi_op *op)
{
    return sgi_op_is_logged(op) && !sgi_op_is_broken(op) ? op->durable : UINT64_MAX;
}

static inline bool sgi_op_is_owned_here(const sgi_op *op)
{
    return op->hold <= SGI_HOLD_HERE;
}

static inline bool sgi_op_runs_elsewhere(const sgi_op *op)
{
    return op->hold == SGI_HOLD_ELSEWHERE;
}

static inline bool sgi_op_has_ended(const sgi_op *op)
{
    return op->head.final != SGI_FINAL_NONE;
}

/* Returns the wall clock time at which the operation's time to live is over; INT64_MAX =
 * never. */
static inline int64_t sgi_op_expiry(const sgi_op *op)
{
    return op->ttl_ms < 0 ? INT64_MAX : sgi_time_add(op->created_ms, op->ttl_ms);
}

/* Returns the state of the operation as a peer may see it. */
sgi_state sgi_op_state(const sgi_op *op);
bool sgi_input_is_open(const sgi_op *op, const sgi_input *input);
/* Returns the status message; NULL when there is none. */
const char *sgi_op_status_message(const sgi_op *op);

sgi_input *sgi_op_find_input(sgi_op *op, sgi_str key);
/* Returns the question whose entry is at this position; NULL when there is none. */
sgi_input *sgi_op_find_input_at(const sgi_op *op, uint64_t position);

/* True when so many entries are not durable that handlers must wait. */
bool sgi_op_is_full(const sgi_op *op);

/* Calls the waiter when the log is visible up to seq. If it is already visible, the
 * waiter is called inside this call. */
void sgi_op_wait(sgi_op *op, sgi_waiter *waiter, uint64_t seq);
/* Calls the waiter when waiter->is_due returns true. If it already does, the waiter is
 * called inside this call. */
void sgi_op_wait_until(sgi_op *op, sgi_waiter *waiter);
void sgi_op_wait_cancel(sgi_waiter *waiter);
/* Calls the waiters whose entries will never be durable. */
void sgi_op_fire_lost(sgi_op *op);
/* Calls the waiters for the end of a plain operation. */
void sgi_op_fire_ended(sgi_op *op);

#endif
