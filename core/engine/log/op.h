/* The operation and its ordered log: the one idea of this library. A handler appends to
 * the log, every wire dialect reads it; appending is the only way to change an operation,
 * and its state is a fold over the log (R-C-1).
 *
 * An operation is `logged` when a handle of it can outlive the request: a task, or a call
 * with an idempotency key. Only then does it touch the store. What peers may see of it is
 * the durable prefix: `durable` is the horizon of every projection (R-C-2). A plain
 * operation is its own horizon.
 *
 * The life of a segment: the handler's thread appends it under the lock (emit.c ->
 * sgi_op_append_list), which numbers it and marks the operation dirty (keeper.c). The
 * host takes what is dirty to the store, on its own thread when the store may block, and
 * comes back with sgi_op_durable. Then it is visible: readers are woken, first those of
 * streams, then whoever waits for a position. A stream's reader makes its source ready
 * (conn.c), and the transport, when it has room, asks the source for bytes. So a segment
 * waits in the log only, never in a queue: producers are slowed by what is not durable
 * (sgi_op_is_full), streams by what their clients do not read.
 *
 * Exactly one FINAL entry; appends after it are refused. That alone decides races between
 * completing, cancelling and expiring (R-C-3). */
#ifndef SGI_OP_H
#define SGI_OP_H

#include "engine/call_kind.h"
#include "engine/limit.h"
#include "engine/log/fold.h"
#include "engine/log/keeper.h"
#include "engine/log/retention.h"

typedef struct sgi_reader sgi_reader;
typedef struct sgi_waiter sgi_waiter;
typedef struct sgi_item sgi_item;
typedef struct sgi_round sgi_round;

/* Kinds of entry; stored, so never renumbered. */
typedef enum sgi_entry_kind {
    SGI_ENTRY_SEGMENT = 1,      /* one content block, or [place,block] */
    SGI_ENTRY_FIELDS = 2,       /* an object: members beside the content */
    SGI_ENTRY_REPLACE = 3,      /* {}: what came before is void */
    SGI_ENTRY_STATUS = 4,       /* {"status","statusMessage"?} */
    SGI_ENTRY_INPUT_ASK = 5,    /* {"key","method","params"} */
    SGI_ENTRY_INPUT_ANSWER = 6, /* {"key","response"} or {"key","error"} */
    SGI_ENTRY_CHECKPOINT = 7,   /* bytes of the tool's own */
    SGI_ENTRY_RESULT = 8,       /* final: {} or {"isError":true} */
    SGI_ENTRY_ERROR = 9,        /* final: a JSON-RPC error object */
    SGI_ENTRY_CANCELLED = 10,   /* final: {} */
    SGI_ENTRY_EXPIRED = 11,     /* final: a JSON-RPC error object */
    SGI_ENTRY_NOTIFY = 12,      /* members of a notification: "method":..,"params":.. */
    SGI_ENTRY_PRESENCE = 13,    /* Z: {"away":0 or 1}: from now on its client is */
    SGI_ENTRY_ANEW = 14         /* S: {}: a replacement that no client is told of: the
                                   handler counts blocks anew, all of them stay */
} sgi_entry_kind;

static inline bool sgi_entry_is_final(int32_t kind)
{
    return kind >= SGI_ENTRY_RESULT && kind <= SGI_ENTRY_EXPIRED;
}

static inline bool sgi_entry_is_known(int32_t kind)
{
    return kind >= SGI_ENTRY_SEGMENT && kind <= SGI_ENTRY_ANEW;
}

/* A fact, from which each dialect makes its own word (C-10). */
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

/* Whose an operation is. All that writes, runs or shows one asks for this. */
typedef enum sgi_hold {
    SGI_HOLD_NEW = 0,   /* this server owns the operation and its handler has not started;
                           a keyed or resumable one starts once its creation is
                           durable */
    SGI_HOLD_HERE,      /* ours; it was started here, or need not be */
    SGI_HOLD_ELSEWHERE, /* another server on the store runs it: following.h */
    SGI_HOLD_UNREAD     /* its log is being read back, and a part is still missing: only
                           recovery.c has it */
} sgi_hold;

#define SGI_INPUT_KEY_MAX 64

/* A question to the client. */
typedef struct sgi_input {
    TAILQ_ENTRY(sgi_input) link;
    char *key;
    char *method;
    char *params; /* JSON object */
    size_t params_len;
    uint64_t asked;    /* seq of the ASK */
    uint64_t answered; /* seq of the ANSWER, 0 = open */
    char *answer;      /* JSON */
    size_t answer_len;
    bool failed; /* the answer is an error object: the client could not, or would not */
    int32_t bad_answers;
    bool bound;     /* a handler of this process waits for it */
    bool delivered; /* ... and has got the answer */
    segue_input_fn on_input;
    void *user;
    segue_free_fn free_user;
    struct sgi_ask *ask;     /* the request that carries it, or NULL; see asks.h */
    struct sgi_asker *asker; /* ... it is asked as a task by; see hosting/asker.h */
} sgi_input;

TAILQ_HEAD(sgi_input_list, sgi_input);

/* A status message. */
typedef struct sgi_remark {
    TAILQ_ENTRY(sgi_remark) link;
    uint64_t seq;
    char *text;
} sgi_remark;

TAILQ_HEAD(sgi_remark_list, sgi_remark);

/* What the client declared with the creating request. */
enum sgi_cap {
    SGI_CAP_TASKS = 1,
    SGI_CAP_ELICITATION = 2,
    SGI_CAP_SAMPLING = 4,
    SGI_CAP_ROOTS = 8,
    SGI_CAP_PARTIAL = 16,
    SGI_CAP_ELICITATION_URL = 32, /* ELICITATION itself means forms */
    SGI_CAP_SAMPLING_TOOLS = 64,
    SGI_CAP_SAMPLING_TASK = 128, /* 2025-11-25: it can be asked as a task */
    SGI_CAP_ELICITATION_TASK = 256,
    SGI_CAP_TASK_CANCEL = 512, /* ... that can be cancelled */
    SGI_CAP_TASKS_2025 = 1024, /* 2026-07-28: it has declared the tasks before those */
    SGI_CAP_REPLACE = 2048,  /* 2025-11-25: segments that it was sent may be made void */
    SGI_CAP_NOBODY = 1 << 30 /* required by a method that no client can be
                                asked; no client has it */
};
/* What it can be asked. */
#define SGI_CAPS_ASK                                                                     \
    ((uint32_t)(SGI_CAP_ELICITATION | SGI_CAP_ELICITATION_URL | SGI_CAP_SAMPLING |       \
                SGI_CAP_SAMPLING_TOOLS | SGI_CAP_ROOTS))

/* What may leave a log before its end; see dropping.h. */
typedef enum sgi_drop {
    SGI_DROP_SEGMENTS,
    SGI_DROP_NOTES,
    SGI_DROP_MARKS,
    SGI_DROPS
} sgi_drop;

typedef struct sgi_limits {
    size_t max_result_bytes;
    size_t max_log_bytes;
    uint64_t max_segments;
    int32_t max_inputs;
} sgi_limits;

/* What an operation with an idempotency key is found by. */
typedef struct sgi_op_key {
    sgi_map_node node; /* in by_key of its server */
    sgi_op *op;
    uint8_t key[SGI_DIGEST_SIZE];
    uint8_t digest[SGI_DIGEST_SIZE]; /* of what the key stands for */
} sgi_op_key;

struct sgi_op {
    segue_server *server;
    sgi_engine *engine;
    int32_t refs;
    uint32_t caps;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    const sgi_call_kind *kind;
    sgi_item *item;  /* counted; NULL for one whose tool is gone */
    char *item_name; /* of the tool or prompt; a completion: also of a template; or the
                        URI that is read */
    char *params;    /* JSON object, as the client sent it */
    size_t params_len;
    sgi_json arguments; /* in params, or own_arguments; empty = look for them in params */
    char *own_arguments;               /* JSON object that is not in params, or NULL */
    const struct sgi_dialect *dialect; /* of birth; NULL = can be no task */
    bool is_task;
    bool logged;
    bool streams;              /* S: its segments are shown as they are made */
    bool may_turn;             /* it began as a plain call and may become a task */
    uint8_t listed_modes;      /* S: sgi_response_mode, of its request, */
    uint8_t modes;             /* ... and those of them that may be used */
    bool immediate;            /* S: its result was the answer */
    bool refuses_arguments;    /* those that do not fit: -32602, before 2025-11-25 */
    bool only_objects;         /* before 2026-07-28: structuredContent is one, or is
                                  not told */
    int64_t asked_ttl_ms;      /* that its client wishes; 0 = none */
    uint64_t closing_segments; /* that came with its end */
    struct sgi_principal *who; /* counted */
    struct sgi_grant *grant;   /* of the token it was asked with; counted, or NULL */
    bool is_scoped;            /* it may do what the grant says, and no more */

    /* handles other than the request itself */
    char *task_id; /* "" until it is a task */
    sgi_map_node by_task;
    sgi_map_node by_id;
    sgi_op_key *key; /* of idempotency, or NULL */

    /* time: wall clock, ms */
    int64_t created_ms;
    int64_t updated_ms; /* as peers may see it */
    int64_t ended_ms;
    int64_t ttl_ms; /* -1 = unlimited */
    int64_t poll_ms;
    int64_t grace_ms;
    sgi_timer timer;   /* expiry, then purge from memory */
    sgi_timer promote; /* plain call that becomes a task; or the end is tried again */

    /* the log */
    sgi_limits limits;
    struct sgi_entry_list tail; /* the newest entries; from 1 on while not logged */
    size_t tail_bytes;
    sgi_entry *pending; /* first entry that is not durable */
    size_t pending_bytes;
    uint64_t next_log, next_seg, next_evt; /* next_evt counts from 1 = event 0 */
    uint64_t durable;
    uint64_t first_fields; /* position of the first FIELDS that count; 0 = none */
    uint64_t voided_seq;   /* position of the last REPLACE; 0 = there is none */
    uint64_t voided_seg;   /* ... and number of the last segment that it voids */
    uint64_t anew;         /* blocks that stay before those that the handler counts */
    uint64_t blocks;       /* that the result has so far, */
    sgi_texts texts;       /* ... and which of them are texts */
    uint64_t drop_upto[SGI_DROPS], gone_upto[SGI_DROPS]; /* see dropping.c */
    struct sgi_retention *retention; /* E: NULL = without bounds of its own */
    size_t log_bytes;
    uint64_t appended_bytes; /* the same, but entries that leave the log stay counted */
    sgi_limit reached;       /* which limit refused an entry last */
    size_t held;             /* bytes in memory that count for its principal; budget.h */
    bool passes; /* P: what its reader has consumed is let go, and not asked for again */
    sgi_final final;
    uint64_t final_seq;
    char *structured; /* structuredContent, of a tool with an outputSchema; "" when nobody
                         asks what it is; NULL = there is none yet */
    size_t structured_len;
    bool structured_lost; /* there was no memory for it */
    char *final_data;     /* the error object of ERROR and EXPIRED */
    size_t final_len;
    struct sgi_remark_list remarks; /* the visible one, and those that are not yet */
    struct sgi_input_list inputs;
    int32_t input_count;
    void *checkpoint;
    size_t checkpoint_len;

    /* the store */
    TAILQ_ENTRY(sgi_op) dirty_link;
    bool dirty, committing, created, store_broken;
    sgi_hold hold;
    bool follows;           /* another server has it, and its growth is news */
    bool reading, grew;     /* ... a read is under way; and is not the last */
    bool stale;             /* ... it was ours, and its head is to be read anew */
    bool claimed;           /* ... and is ours, once all of its log is here */
    bool doubted;           /* it may not be ours any more, or not be whole */
    bool torn;              /* the store has lost the end of its log: it only ends */
    uint64_t behind_hole;   /* number of what follows on what was lost; 0 = no hole */
    uint64_t letters_taken; /* number of the last that was dealt with, */
    uint64_t letters_told;  /* ... as the store knows */
    LIST_HEAD(, sgi_errand) errands; /* letters to its owner; see serving/errands.h */
    bool releasing;            /* its server goes: the store lets another claim it */
    bool deleting;             /* nobody can ask for it any more: it leaves the store */
    struct sgi_record *record; /* until it is created; see record.h */

    /* who looks */
    segue_call *call;        /* the handler's handle, while it has one */
    struct sgi_reply *reply; /* the open request: the way for progress and log messages */
    sgi_round *round;        /* a plain one asks its client; see rounds.h */
    struct sgi_recall *recall;       /* it was asked elsewhere, or NULL; see recall.h */
    struct sgi_resumable *resumable; /* its request can be resumed; see resumable.h */
    TAILQ_HEAD(, sgi_reader) readers;
    TAILQ_HEAD(, sgi_waiter) waiters;
    LIST_HEAD(, sgi_watch) watches;
    struct sgi_origin *origin; /* the conversation that made the task; see origin.h */
    int64_t gone_ms;           /* wall clock: purge */
    bool counted;              /* among the live tasks of its principal */
    bool known;                /* in the server's maps */
    bool lingers;              /* has ended, is in the store and in memory */
    bool heard;                /* its end was told to somebody */
    TAILQ_ENTRY(sgi_op) linger_link; /* of those that linger, or are followed */
};

TAILQ_HEAD(sgi_op_list, sgi_op);

/* Waits until the operation is created and its log visible up to seq (SGI_WAIT_FINAL: up
 * to its end), or the creation has failed. */
#define SGI_WAIT_FINAL UINT64_MAX
#define SGI_WAIT_ERRAND (UINT64_MAX - 1) /* for sgi_op_wait_done */
struct sgi_waiter {
    TAILQ_ENTRY(sgi_waiter) link;
    sgi_op *op; /* set while it waits */
    uint64_t seq;
    uint64_t errand; /* number of the last one that is waited for */
    /* status: SEGUE_OK, or why the write failed. Frees itself. */
    void (*fire)(sgi_waiter *waiter, sgi_op *op, segue_status status);
};

/* Hears of every visible change of status; see subscriptions.c. */
typedef struct sgi_watch {
    LIST_ENTRY(sgi_watch) link;
    void (*changed)(struct sgi_watch *watch, sgi_op *op);
} sgi_watch;

/* Does every segment stay a block of its own, whatever place it has? */
bool sgi_op_keeps_apart(const sgi_op *op);

/* Of a tool, until told otherwise. */
sgi_op *sgi_op_new(segue_server *server, sgi_str item_name, sgi_str params);
/* Gives it an idempotency key. false: out of memory. */
bool sgi_op_set_key(sgi_op *op, const uint8_t key[SGI_DIGEST_SIZE],
                    const uint8_t digest[SGI_DIGEST_SIZE]);
void sgi_op_ref(sgi_op *op);
void sgi_op_unref(sgi_op *op);

/* Appends entries that are made but not numbered: all, or none and the list is freed.
 * Only the first may be of a kind that copies its payload into the head (status, inputs,
 * checkpoint, errors). What segments take, one bit each, is taken for the whole list
 * before the first. */
segue_status sgi_op_append_list(sgi_op *op, struct sgi_entry_list *list);
/* Appends one entry. SEGUE_E_TERMINAL after the final, SEGUE_E_LIMIT when the log is
 * full. */
segue_status sgi_op_append(sgi_op *op, sgi_entry_kind kind, sgi_str payload);
/* Ends the operation, whatever its limits. */
segue_status sgi_op_end(sgi_op *op, sgi_entry_kind kind, sgi_str payload);
/* Ends it with -32603 even without memory: it is tried again until it works. */
void sgi_op_give_up(sgi_op *op, const char *text);
/* Ends it with a JSON-RPC error object made of these; data may be empty. */
segue_status sgi_op_fail(sgi_op *op, sgi_entry_kind kind, int32_t code, sgi_str message,
                         sgi_json data);
/* Applies an entry that comes from the store: rebuilds the state (R-C-1). The operation
 * is another server's, or its log is being read; what the entry drops is only noted. */
segue_status sgi_op_apply(sgi_op *op, const sgi_entry *entry);

/* From here on the operation goes to the store. */
segue_status sgi_op_log(sgi_op *op);
/* What is durable and nobody is about to read leaves memory. */
void sgi_op_trim(sgi_op *op);
/* One that passes: entries up to seq leave memory. */
void sgi_op_pass(sgi_op *op, uint64_t seq);
/* The keeper: entries up to seq are durable, or the write failed. */
void sgi_op_durable(sgi_op *op, uint64_t seq);
void sgi_op_write_failed(sgi_op *op, segue_status status);
/* ... or was refused: another server has taken it over. */
void sgi_op_fenced(sgi_op *op);
/* The store has lost the end of its log, and nobody knows how much: what is appended from
 * now on, which is its end, has numbers above all that can have been seen. */
void sgi_op_torn(sgi_op *op);
/* One of another server: more of its log. What is taken leaves the list. */
segue_status sgi_op_grow(sgi_op *op, struct sgi_entry_list *list);
/* ... and all of its head, which is that of another one with the same log. */
void sgi_op_adopt(sgi_op *op, sgi_op *fresh);

/* The horizon: the last entry a peer may see. */
static inline uint64_t sgi_op_horizon(const sgi_op *op)
{
    return op->logged && !op->store_broken ? op->durable : UINT64_MAX;
}

static inline bool sgi_op_is_ours(const sgi_op *op)
{
    return op->hold <= SGI_HOLD_HERE;
}

static inline bool sgi_op_is_elsewhere(const sgi_op *op)
{
    return op->hold == SGI_HOLD_ELSEWHERE;
}

static inline bool sgi_op_has_ended(const sgi_op *op)
{
    return op->final != SGI_FINAL_NONE;
}

/* When its ttl is over, by the wall clock; INT64_MAX = never. */
static inline int64_t sgi_op_expiry(const sgi_op *op)
{
    return op->ttl_ms < 0 ? INT64_MAX : sgi_time_add(op->created_ms, op->ttl_ms);
}

/* As a peer may see it. */
sgi_state sgi_op_state(const sgi_op *op);
bool sgi_input_is_open(const sgi_op *op, const sgi_input *input);
/* NULL when there is none. */
const char *sgi_op_status_message(const sgi_op *op);

sgi_input *sgi_op_input(sgi_op *op, sgi_str key);
/* Empty when the client sent none. */
sgi_json sgi_op_arguments(const sgi_op *op);

/* Too much is not durable yet: producers wait. */
bool sgi_op_is_full(const sgi_op *op);

/* Fires at once when the log is visible that far already. */
void sgi_op_wait(sgi_op *op, sgi_waiter *waiter, uint64_t seq);
void sgi_op_wait_end(sgi_waiter *waiter);
/* Fires when what was asked of the operation until now can be seen: what was appended is
 * durable, or what its owner was written has led to what it leads to. SEGUE_E_TIMEOUT:
 * it is written, and nothing was seen of that for so long; SEGUE_E_FENCED: it was never
 * durable; or why it could not be written. */
void sgi_op_wait_done(sgi_op *op, sgi_waiter *waiter);
/* What errands from this one on are waited for is in vain. */
void sgi_op_wait_failed(sgi_op *op, uint64_t errand, segue_status status);
/* ... and what is behind the last that is durable. */
void sgi_op_wait_lost(sgi_op *op);
/* A plain operation has ended: what waits for its end is told. */
void sgi_op_settle(sgi_op *op);

#endif
