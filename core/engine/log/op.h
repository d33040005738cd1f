/* The operation and its ordered log, the central idea of this library. A handler appends
 * to the log, and every dialect reads the log. Appending is the only way to change an
 * operation, and the state of an operation is a fold over its log (R-C-1).
 *
 * An operation is stored when a client can ask for it after its request: a task, a call
 * with an idempotency key, or a call that can be resumed. Calls of tools with
 * SEGUE_TOOL_STORED and mailboxes are stored too. Other operations do not use the store.
 * Peers may see only the durable part of a stored operation: `durable` is the horizon of
 * every projection (R-C-2). A plain operation is never stored, so its whole log is
 * visible at once.
 *
 * The life of a segment: the handler's thread appends the segment under the lock (emit.c
 * -> sgi_op_append_list). The segment gets its number, and the operation is marked dirty
 * (committer.c). The host (the runtime) writes everything that is dirty to the store,
 * on a separate thread if the store blocks, and then calls sgi_op_on_entries_durable. Now
 * the segment is visible. First the readers of streams are called, then the code that
 * waits for a position. The reader of a stream makes its source ready (conn.c). When
 * the transport has room, it asks the source for bytes. So a segment waits only in the
 * log, never in a queue. Handlers wait while too many entries are not durable
 * (sgi_op_handler_must_wait), and streams wait while their clients do not read.
 *
 * A log has exactly one final entry, and appending after the final entry is refused. This
 * rule alone decides races between completing, cancelling and expiring (R-C-3). */
#ifndef SGI_OP_H
#define SGI_OP_H

#include "base/index.h"
#include "base/limit.h"
#include "base/shared_text.h"
#include "engine/log/account.h"
#include "engine/log/fold.h"
#include "engine/log/committer.h"
#include "engine/log/retention.h"

typedef struct sgi_reader sgi_reader;
typedef struct sgi_waiter sgi_waiter;

/* The kinds of entries. The numbers are stored, so they must never change. */
typedef enum sgi_entry_kind {
    SGI_ENTRY_SEGMENT = 1, /* a segment: one content block, or [index,block] */
    SGI_ENTRY_FIELDS = 2,  /* a JSON object: members of the result besides its list */
    SGI_ENTRY_REPLACE = 3, /* {}: makes all earlier segments and fields void */
    /* {"status","statusMessage"?}: the status of the operation */
    SGI_ENTRY_STATUS = 4,
    SGI_ENTRY_INPUT_ASK = 5, /* {"key","method","params"}: a question to the client */
    /* {"key","response"} or {"key","error"}: the answer to a question */
    SGI_ENTRY_INPUT_ANSWER = 6,
    SGI_ENTRY_CHECKPOINT = 7, /* bytes that the handler stores for its next run */
    /* final: the call has a result. The data is {} or {"isError":true}. */
    SGI_ENTRY_RESULT = 8,
    /* final: the call has failed. The data is a JSON-RPC error object. */
    SGI_ENTRY_ERROR = 9,
    SGI_ENTRY_CANCELLED = 10, /* final: the call was cancelled. The data is {}. */
    /* final: the time to live is over. The data is a JSON-RPC error object. */
    SGI_ENTRY_EXPIRED = 11,
    /* a note (progress or log message): members of a notification,
     * "method":..,"params":.. */
    SGI_ENTRY_NOTIFY = 12,
    /* for a lasting call (its client can leave and come back): {"away":1} = the client is
     * away from now on; {"away":0} = the client is connected */
    SGI_ENTRY_PRESENCE = 13,
    /* Data {}. Only for tasks that send segments (SEP-1905). The handler starts again and
     * counts blocks from 0. All earlier blocks stay valid. Clients do not receive this
     * entry. */
    SGI_ENTRY_ANEW = 14,
    /* {"ttl"}: a stored call becomes a task with this time to live in ms (-1 =
     * unlimited). Only in the log of an operation that was SGI_TASKING_MAY when it was
     * created. */
    SGI_ENTRY_TASK = 15
} sgi_entry_kind;

/* The gap in the numbering of entries after the store has lost entries. Final entries
 * alone are behind it. The gap is larger than the number of entries that a store can lose
 * in a few seconds. */
#define SGI_OP_HOLE (UINT64_C(1) << 24)

static inline bool sgi_entry_is_final(int32_t kind)
{
    return kind >= SGI_ENTRY_RESULT && kind <= SGI_ENTRY_EXPIRED;
}

/* True for an entry that changes the result so far (sgi_op_result). */
static inline bool sgi_entry_is_of_result(int32_t kind)
{
    return kind <= SGI_ENTRY_REPLACE || kind == SGI_ENTRY_ANEW;
}

static inline bool sgi_entry_is_known(int32_t kind)
{
    return kind >= SGI_ENTRY_SEGMENT && kind <= SGI_ENTRY_TASK;
}

/* The ways in which an operation can end. Each dialect has its own names for these ways
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

/* Says whether an operation is a task. The numbers are stored, so they must never
 * change. */
typedef enum sgi_tasking {
    SGI_TASKING_NO = 0, /* a plain call, or a stored call that answers its request */
    SGI_TASKING_YES = 1,
    /* a call that asks for a task and began as a plain call. It can become a task until
     * it ends. */
    SGI_TASKING_MAY = 2
} sgi_tasking;

/* Says which server owns and runs an operation. Code that writes, runs or reports an
 * operation must check this state first. */
typedef enum sgi_hold {
    /* This server owns the operation, and the handler has not started. The handler starts
     * at once or, when the operation has a key or its client can leave and come back (a
     * lasting call), when the creation is durable. */
    SGI_HOLD_NEW = 0,
    /* This server owns the operation. The handler was started on this server, or need not
     * be started. */
    SGI_HOLD_HERE,
    SGI_HOLD_ELSEWHERE, /* another server on the store runs the operation (following.h) */
    /* the log is being read from the store and is incomplete; only rebuild.c uses such
     * an operation */
    SGI_HOLD_UNREAD
} sgi_hold;

#define SGI_INPUT_KEY_MAX 64

/* A question of the operation to its client. */
typedef struct sgi_op_question {
    TAILQ_ENTRY(sgi_op_question) link;
    char *key;
    char *method;
    char *params; /* the params of the question: a JSON object */
    size_t params_len;
    uint64_t asked; /* position in the log of the INPUT_ASK entry */
    /* position in the log of the INPUT_ANSWER entry; 0 = the question has no answer */
    uint64_t answered;
    char *answer; /* JSON text of the answer; NULL = no answer */
    size_t answer_len;
    /* the answer is an error object: the client cannot answer, or refuses to answer */
    bool failed;
    int32_t bad_answers;
    bool bound; /* a handler of this process waits for the answer */
    /* the call whose handler asked the question; the handler of an earlier call may still
     * be ending */
    segue_call *asker;
    bool delivered; /* the handler has received the outcome of the question */
    /* for a lasting call: the question was sent on the channel, and the client has not
     * answered it there */
    bool awaited;
    segue_input_fn on_input;
    void *user;
    segue_free_fn free_user;
    /* the request that asks the question (question_requests.h); NULL = no request */
    struct sgi_question_request *question_request;
    /* the question task that asks the question (input/question_task.h); NULL = no
     * question task */
    struct sgi_question_task *question_task;
} sgi_op_question;

TAILQ_HEAD(sgi_op_question_list, sgi_op_question);

/* A status message of the operation, with the position of its entry. */
typedef struct sgi_status_message {
    TAILQ_ENTRY(sgi_status_message) link;
    uint64_t seq;
    char *text;
} sgi_status_message;

TAILQ_HEAD(sgi_status_message_list, sgi_status_message);

/* The kinds of entries that can be dropped from a log before the operation ends
 * (dropping.h). */
typedef enum sgi_drop {
    SGI_DROP_SEGMENTS,
    SGI_DROP_NOTES,
    SGI_DROP_MARKS,
    SGI_DROPS
} sgi_drop;

/* Says how much of structuredContent the head of an operation keeps for the check at the
 * end of the call. */
typedef enum sgi_output {
    /* the operation's head keeps nothing, because the tool has no outputSchema */
    SGI_OUTPUT_NONE = 0,
    /* the operation's head keeps only whether structuredContent exists, because the value
     * is not checked */
    SGI_OUTPUT_THERE,
    SGI_OUTPUT_KEPT
} sgi_output;

/* The idempotency key of an operation, with the node by which the operation is found. */
typedef struct sgi_op_idempotency_key {
    sgi_index_node node; /* node of the server's index by_key */
    sgi_op *op;
    uint8_t key[SGI_DIGEST_SIZE];
    /* digest of the parameters of the request that first used the key */
    uint8_t digest[SGI_DIGEST_SIZE];
} sgi_op_idempotency_key;

/* What the log says of the result so far, and which entries have left the log. An
 * operation has this part since the first entry of a result, or since the first entry was
 * dropped; most tasks that wait do not have it (sgi_op_no_result). */
typedef struct sgi_op_result {
    /* position of the first FIELDS entry that is not void; 0 = there is no such entry */
    uint64_t first_fields;
    /* position of the last REPLACE entry, which made all earlier segments and fields
     * void; 0 = there was no such entry */
    uint64_t voided_seq;
    /* number of the last segment that the last REPLACE entry has made void */
    uint64_t voided_seg;
    /* number of blocks before the last ANEW entry; the running handler does not count
     * these blocks */
    uint64_t anew;
    uint64_t blocks;       /* number of blocks of the result so far */
    sgi_text_blocks texts; /* the set of blocks of the result that are texts */
    /* JSON text of structuredContent, "" for SGI_OUTPUT_THERE; NULL = structuredContent
     * is not set yet */
    char *structured;
    size_t structured_len;
    bool structured_lost; /* there was no memory for structuredContent */
    /* drop_upto: positions up to which entries are dropped, for each kind of drop.
     * gone_upto: positions up to which the store has deleted dropped entries
     * (dropping.c). */
    uint64_t drop_upto[SGI_DROPS], gone_upto[SGI_DROPS];
} sgi_op_result;

/* The block that a new operation has until it is stored: room for its result, so that a
 * plain call needs no further block, and the texts of its call. */
typedef struct sgi_op_start {
    size_t size; /* number of bytes of the block */
    sgi_op_result result;
    char texts[];
} sgi_op_start;

/* The result of an operation whose log has none. Nobody writes to it. */
extern const sgi_op_result sgi_op_no_result;

/* The head: the state of an operation, a fold over its log (R-C-1). op_head.c applies
 * entries to the operation's head, in the same way for appended entries and for entries
 * from the store. Other files change only what does not follow from the entries. op.c
 * removes entries that cannot be written, skips numbers that the store has lost, and sets
 * the end of an operation that was never created. Files that free entries early
 * (dropping.c and the file of lasting calls) reduce log_bytes. record.c sets the time of
 * creation. */
typedef struct sgi_op_head {
    /* The position of the next entry, the number of the next segment, and 1 + the number
     * of the next event. */
    uint64_t next_log, next_seg, next_evt;
    /* wall clock time in ms of the last visible change */
    int64_t updated_ms;
    int64_t ended_ms;
    sgi_tasking tasking : 8;
    sgi_final final : 8;
    /* the result was sent as the answer to a call that asked for a task (SEP-1905,
     * "immediate") */
    bool immediate;
    int32_t input_count;
    /* position of the TASK entry; 0 = the operation is no task, or was a task when it was
     * created */
    uint64_t task_seq;
    size_t log_bytes;
    /* like log_bytes, including the bytes of entries that have left the log */
    uint64_t appended_bytes;

    /* the result so far; sgi_op_no_result = the log has no entry of a result.
     * sgi_op_head_make_result makes it. */
    sgi_op_result *result;

    /* The members from here to `final_len` describe the end of the operation. */
    uint64_t final_seq;
    /* the JSON-RPC error object of an ERROR or EXPIRED entry; NULL = another end, or no
     * end */
    char *final_data;
    size_t final_len;

    /* the visible status message, followed by later messages that are not visible yet */
    struct sgi_status_message_list remarks;
    struct sgi_op_question_list inputs;
    void *checkpoint;
    size_t checkpoint_len;
} sgi_op_head;

/* Says whether an operation is in the store. op_state.c has the allowed changes. */
typedef enum sgi_stored {
    /* the operation is only in memory, so its whole log is visible */
    SGI_STORED_NOT = 0,
    SGI_STORED_CREATING, /* the creation of the operation is waiting for the store */
    /* like SGI_STORED_CREATING, but the outcome of an earlier attempt is unknown, so the
     * operation may be in the store */
    SGI_STORED_PERHAPS,
    SGI_STORED_YES, /* the operation is in the store */
    /* the store has the beginning of the log and has refused later entries, so the
     * operation ends in memory only */
    SGI_STORED_BROKEN
} sgi_stored;

/* Says what the committer is doing with an operation. */
typedef enum sgi_writing {
    SGI_WRITING_NOTHING = 0,
    /* the operation is in the list `dirty` or `broken` of the committer */
    SGI_WRITING_DIRTY,
    SGI_WRITING_NOW /* the operation is in the running commit */
} sgi_writing;

/* What clients have heard of the operation. */
typedef struct sgi_op_heard {
    bool end; /* a client has received the end of the operation */
    /* monotonic time in ms at which the operation came to its end, or at which a client
     * asked for it or stopped to read it after that (returning.c) */
    int64_t last_ms;
} sgi_op_heard;

/* Each doubt says that another server may own the operation, or that the store may have
 * lost entries of the log. */
typedef struct sgi_op_doubts {
    uint32_t count;
    uint32_t settled; /* the number of the last doubt that a commit has settled */
} sgi_op_doubts;

struct sgi_op {
    sgi_committer *committer;
    sgi_engine *engine;
    /* the data that the cluster keeps with the operation */
    struct sgi_cluster_op_data *shared;
    /* the data that the server keeps with the operation; the observer's function `freed`
     * frees both */
    struct sgi_served_op_data *served;
    int32_t refs;
    /* number of running callbacks of the application that read bytes of the operation's
     * head (sgi_op_pin_head) */
    int32_t pins;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    /* id of the task, or of a stored operation, inside `text`; NULL = the operation is
     * plain */
    char *task_id;
    /* the texts of the stored record, among them the task id (record.c); NULL = the
     * operation is plain */
    sgi_shared_text *text;
    /* NULL = `text` has all texts, and the result has a block of its own */
    sgi_op_start *start;
    /* the idempotency key; NULL = the operation has no key */
    sgi_op_idempotency_key *key;
    int64_t created_ms; /* wall clock time of the creation, in ms */
    int64_t ttl_ms;     /* time to live in ms from the creation; -1 = unlimited */
    /* fires when the engine must try again to end the operation after memory ran out */
    sgi_timer end_again;

    /* The members from here to `heard` belong to the log. */
    sgi_op_head head;
    uint64_t durable;
    /* position of the last entry that was in a commit of unknown outcome; the store may
     * have the entries from `durable` up to here */
    uint64_t tried;
    /* the newest entries; the tail of a plain operation is the whole log */
    struct sgi_entry_list tail;
    size_t tail_bytes;
    /* the first entry that is not durable, inside the tail; NULL = all entries are
     * durable */
    sgi_entry *pending;
    size_t pending_bytes;
    /* for the event stream of a task (SEP-2694): the counts and limits of retained
     * events; NULL = no limits */
    struct sgi_retention *retention;
    sgi_limit reached; /* the limit because of which the last entry was refused */
    /* the account that counts the bytes of this operation */
    sgi_byte_account *account;
    /* number of bytes that the operation holds in memory */
    size_t held;
    sgi_op_heard heard;

    /* The members from here to `deleting` are small, and stand together because they need
     * no padding there. */
    /* how much of structuredContent the operation's head keeps */
    sgi_output output : 8;
    sgi_stored stored : 8;
    sgi_hold hold : 8;
    sgi_writing writing : 8;
    sgi_op_doubts doubts;
    /* for a result that is sent in pieces (PR 776): an entry is freed as soon as the only
     * reader has consumed it, because no reader reads it again */
    bool frees_consumed;
    /* entries can leave the log before the operation ends, so the observer is called for
     * each new entry */
    bool drops;
    /* the store has lost the end of the log, so the operation must end with an error */
    bool torn;
    /* the next commit releases the operation, so that another server can claim it */
    bool releasing;
    /* the next commit deletes the operation from the store, because no client can ask for
     * it */
    bool deleting;

    /* The members from here to `record` describe the operation in the store. */
    TAILQ_ENTRY(sgi_op) dirty_link;
    /* position of the first entry after a run of entries that the store has lost; 0 = no
     * entry is lost */
    uint64_t behind_hole;
    /* number of the last command of another server that was run for this operation */
    uint64_t commands_taken;
    uint64_t commands_taken_stored; /* the value of commands_taken that is in the store */
    /* the record that the next commit creates (record.h); NULL = the record is in the
     * store, or the operation is plain */
    struct sgi_op_record *record;

    /* ---- readers and waiters ---- */
    TAILQ_HEAD(, sgi_reader) readers;
    TAILQ_HEAD(, sgi_waiter) waiters;
    LIST_HEAD(, sgi_op_watch) watches;
};

/* Code that waits until the operation is created and its log is visible up to position
 * seq, or until the creation has failed. seq = SGI_WAIT_FINAL: waits until the end is
 * visible. */
#define SGI_WAIT_FINAL UINT64_MAX
struct sgi_waiter {
    TAILQ_ENTRY(sgi_waiter) link;
    /* the operation while the waiter waits; NULL = the waiter does not wait */
    sgi_op *op;
    uint64_t seq;
    /* The wait is over when this function returns true. NULL = the wait is over when
     * position `seq` is visible. */
    bool (*is_due)(const sgi_op *op, const sgi_waiter *waiter);
    uint64_t number; /* a number for the use of is_due */
    /* Called when the wait is over. status: SEGUE_OK, or the reason why the entries will
     * not become visible. The waiter can be freed in this function. */
    void (*fire)(sgi_waiter *waiter, sgi_op *op, segue_status status);
};

/* A function that is called at each visible change of an operation's status
 * (subscriptions.c). */
typedef struct sgi_op_watch {
    LIST_ENTRY(sgi_op_watch) link;
    void (*changed)(struct sgi_op_watch *watch, sgi_op *op);
} sgi_op_watch;

/* Makes an operation. The memory block of the operation also has room for the data of
 * cluster and server (sgi_log_observer.room). text_bytes: size of op->start->texts.
 * Returns NULL when out of memory. */
sgi_op *sgi_op_new(sgi_committer *committer, size_t text_bytes);
/* sgi_op_hold_bytes adds bytes to the number of bytes that the operation holds, and to
 * its account. sgi_op_release_bytes subtracts bytes from both. */
static inline void sgi_op_hold_bytes(sgi_op *op, size_t bytes)
{
    op->held += bytes;
    sgi_byte_account_add(op->account, bytes);
}

static inline void sgi_op_release_bytes(sgi_op *op, size_t bytes)
{
    op->held -= bytes;
    sgi_byte_account_subtract(op->account, bytes);
}

/* Gives the operation an idempotency key. digest: digest of the request's parameters.
 * Returns false when out of memory. */
bool sgi_op_set_idempotency_key(sgi_op *op, const uint8_t key[SGI_DIGEST_SIZE],
                                const uint8_t digest[SGI_DIGEST_SIZE]);
/* Gives the operation a random key, which no request can name. Returns false when out of
 * memory or without random bytes. */
bool sgi_op_set_random_key(sgi_op *op);
bool sgi_op_has_random_key(const sgi_op *op);
void sgi_op_ref(sgi_op *op);
void sgi_op_unref(sgi_op *op);

/* Appends all entries of the list, or frees all of them and appends nothing. The function
 * gives the entries their numbers. Only the first entry may have a payload that is copied
 * into the operation's head (status, inputs, checkpoint, errors). The operation's head
 * needs one bit of memory for each segment; this memory is reserved before the first
 * entry is appended. */
segue_status sgi_op_append_list(sgi_op *op, struct sgi_entry_list *list);
/* Appends one entry. Returns SEGUE_E_TERMINAL when the log has its final entry, and
 * SEGUE_E_LIMIT when the log is full. */
segue_status sgi_op_append(sgi_op *op, sgi_entry_kind kind, sgi_str payload);
/* Appends a final entry, even if the log exceeds its limits. */
segue_status sgi_op_end(sgi_op *op, sgi_entry_kind kind, sgi_str payload);
/* Ends the operation with error -32603. When out of memory, a timer repeats the attempt
 * until it succeeds. If the operation has already ended and its store refuses writes,
 * makes this end visible. */
void sgi_op_end_internal_error(sgi_op *op, const char *text);
/* Ends the operation with a JSON-RPC error object of this code, message and data. data
 * can be empty. */
segue_status sgi_op_fail(sgi_op *op, sgi_entry_kind kind, int32_t code, sgi_str message,
                         sgi_json data);
/* Applies an entry from the store to the operation's head, to rebuild the state of the
 * operation (R-C-1). Used for an operation that another server runs, or whose log is
 * being read from the store. Returns SEGUE_E_STORE_CORRUPT when the entry does not follow
 * the log, and SEGUE_E_NOMEM when out of memory. */
segue_status sgi_op_apply_stored_entry(sgi_op *op, const sgi_entry *entry);

/* Turns a plain operation into a stored operation. On failure nothing has changed. */
segue_status sgi_op_turn_into_stored(sgi_op *op, sgi_str task_id);
/* Frees durable entries of the tail. Keeps the entries that readers near the end of the
 * log need. */
void sgi_op_trim_tail(sgi_op *op);
/* Frees the entries up to position seq. Does nothing unless op->frees_consumed is
 * true. */
void sgi_op_free_consumed_entries(sgi_op *op, uint64_t seq);
/* For the committer. sgi_op_on_entries_durable: the entries up to position seq are
 * durable. sgi_op_on_outcome_unknown: the store may have applied a commit with the
 * entries up to position seq, although the commit has failed. sgi_op_on_write_failed: a
 * write of the operation has failed with this status. */
void sgi_op_on_entries_durable(sgi_op *op, uint64_t seq);
void sgi_op_on_outcome_unknown(sgi_op *op, uint64_t seq);
void sgi_op_on_write_failed(sgi_op *op, segue_status status);
/* Notes that the store has lost an unknown number of entries at the end of the log. The
 * next entry, which ends the operation, gets a position above all positions that a peer
 * can have seen. */
void sgi_op_skip_lost_entries(sgi_op *op);
/* Change the three states of an operation. No other function may change these states;
 * op_state.c has the tables of allowed changes. */
void sgi_op_set_stored(sgi_op *op, sgi_stored to);
void sgi_op_set_writing(sgi_op *op, sgi_writing to);
void sgi_op_set_hold(sgi_op *op, sgi_hold to);

/* True when the operation is in the store, or its creation is waiting for the store. */
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

/* True when clients see an end that the store does not have yet. A server that continues
 * the operation does not know of the end, so no request may be acknowledged or refused
 * because of it. */
static inline bool sgi_op_has_unstored_end(const sgi_op *op)
{
    return sgi_op_is_broken(op) && op->durable + 1 < op->head.next_log;
}

static inline bool sgi_op_is_in_doubt(const sgi_op *op)
{
    return op->doubts.count != op->doubts.settled;
}

/* Returns the horizon of the operation: the position of the last entry that a peer may
 * see. */
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

static inline bool sgi_op_is_task(const sgi_op *op)
{
    return op->head.tasking == SGI_TASKING_YES;
}

/* Returns the wall clock time in ms at which the operation's time to live is over;
 * INT64_MAX = never. */
static inline int64_t sgi_op_expiry(const sgi_op *op)
{
    return op->ttl_ms < 0 ? INT64_MAX : sgi_time_add(op->created_ms, op->ttl_ms);
}

/* Returns the state of the operation as a peer may see it. */
sgi_state sgi_op_state(const sgi_op *op);
/* True when clients can see the question, and see no answer to it. */
bool sgi_op_question_is_open(const sgi_op *op, const sgi_op_question *input);
/* True when an answer can be appended to the log, whether clients of this server see the
 * question or not. */
bool sgi_op_question_can_be_answered(const sgi_op *op, const sgi_op_question *input);
/* Returns the visible status message, or NULL when there is no message. */
const char *sgi_op_status_message(const sgi_op *op);

sgi_op_question *sgi_op_find_question(sgi_op *op, sgi_str key);
/* Returns the question whose INPUT_ASK entry is at this position, or NULL when there is
 * no such question. */
sgi_op_question *sgi_op_find_question_at(const sgi_op *op, uint64_t position);

/* True when too many bytes are not durable, so that handlers must wait. */
bool sgi_op_handler_must_wait(const sgi_op *op);

/* Calls the waiter when the log is visible up to position seq. If the log is already
 * visible, the waiter is called before this function returns. */
void sgi_op_wait_until_visible(sgi_op *op, sgi_waiter *waiter, uint64_t seq);
/* Calls the waiter when waiter->is_due returns true. If is_due already returns true, the
 * waiter is called before this function returns. */
void sgi_op_wait_until_due(sgi_op *op, sgi_waiter *waiter);
void sgi_op_wait_cancel(sgi_waiter *waiter);
/* Tells the observer that waiters of the operation were called. */
void sgi_op_tell_waiters_fired(sgi_op *op);
/* Calls the waiters whose entries will never be durable with this status. Called when
 * these entries have been removed from the log, or are about to be removed. */
void sgi_op_fire_lost_waiters(sgi_op *op, segue_status status);
/* Calls the waiters of a plain operation that has ended. Does nothing for a stored
 * operation, whose waiters are called when the end is durable. */
void sgi_op_on_plain_end(sgi_op *op);

#endif
