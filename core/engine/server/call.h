/* segue_call: the handle by which a handler appends results to its operation, asks the
 * client and ends the operation. A call does not know which dialect or connection the
 * client uses (R-C-13). */
#ifndef SGI_CALL_H
#define SGI_CALL_H

#include "engine/server/content.h"
#include "engine/server/peer.h"

/* A text that segue_call_argument_text has decoded. The call keeps the text in memory
 * until the call is freed. */
typedef struct sgi_decoded_argument {
    struct sgi_decoded_argument *next;
    size_t len;
    char text[];
} sgi_decoded_argument;

/* What an earlier run of the handler has left, for the next run. */
typedef struct sgi_earlier_run {
    uint64_t segment; /* number of the last segment */
    uint64_t log;     /* position of the first entry that belongs to this run */
    size_t len;
    char checkpoint[]; /* the checkpoint that the earlier run stored */
} sgi_earlier_run;

/* Segments or stored entries of a call that no event has reported yet. */
typedef struct sgi_event_batch {
    uint64_t count;
    int64_t began_ms; /* monotonic times of the first and last part of the batch */
    int64_t last_ms;
    int64_t first_us; /* how long the first part took */
} sgi_event_batch;

typedef struct sgi_call_batches {
    sgi_event_batch segments, stored;
    uint64_t last_segment; /* number of the last segment that was noted */
} sgi_call_batches;

/* A first turn that the handler holds. The timer ends a turn that lasts too long after
 * on_call has returned. */
typedef struct sgi_held_turn {
    sgi_timer timer;
    segue_call *call;
} sgi_held_turn;

/* A call exists as long as its operation runs, which can be days. So what only few calls
 * have is in blocks of its own. */
struct segue_call {
    sgi_handle handle;
    /* number of references: the handler, the operation and the ready queue hold at most
     * one each */
    int32_t refs;
    bool held; /* the handler has received this handle and has not freed the handle yet */
    bool invoke_due;
    /* the first turn of the handler is over (on_call has returned, or the handler has
     * ended its turn), and the reply that waited for this was notified */
    bool turned;
    bool watched; /* `events` is set */
    bool cancelled;
    bool cancel_due;
    bool check_due;
    bool wants_drain;
    bool drain_due;
    bool lost; /* another server runs the operation, or can take it over */
    /* the handler has given the last entries of the operation; the entries wait in
     * `closing` for their check (tool_check.c) */
    bool is_closing;
    bool has_text;    /* for a resource: the handler has begun the text of the resource */
    sgi_op *op;       /* a counted reference */
    int64_t began_ms; /* monotonic time at which the handler was started */
    LIST_ENTRY(segue_call) link; /* link in the list of all calls of the server */
    sgi_ready_object ready;
    /* the first turn, which the handler holds: it does not end when on_call returns; NULL
     * = the handler does not hold it */
    sgi_held_turn *turn;
    /* position of the last checkpoint, until the handler hears that it is stored; 0 =
     * there is none */
    uint64_t checkpoint;
    /* the last entries of the operation, while they wait for the check */
    struct sgi_entry_list closing;
    /* index, among the blocks of the result, of the block with the resource's text; valid
     * if `has_text` is true */
    uint64_t text;
    /* what an earlier run has left, when this is a new run of the handler: a server
     * rebuilt the operation after a restart; NULL = this is the first run */
    sgi_earlier_run *earlier;
    /* what the handler learns of the HTTP request that made the call (origin.h), a
     * counted reference; NULL = nothing */
    sgi_origin *origin;
    segue_call_events events;
    sgi_decoded_argument *decoded;
    sgi_call_batches *batches; /* NULL while nobody observes them */
};

/* Makes the call of an operation and queues its handler. again = true: an earlier run of
 * the handler has begun the operation. */
segue_status sgi_call_start(sgi_op *op, bool again);
/* Asks the handler to stop, because the operation was cancelled, has expired or was taken
 * over by another server. */
void sgi_call_cancel(segue_call *call);
/* Notes that another server has taken over the operation. All functions that the handler
 * calls from now on fail. */
void sgi_call_on_taken_over(segue_call *call);
/* Queues the call, because its operation may have room for more entries. Delivery then
 * lets a handler that waits for room continue, and hands over answers to questions. */
void sgi_call_on_room(segue_call *call);
/* Queues the call. Later the due events of the call run, and then the open questions of
 * the call are sent to the client. */
void sgi_call_queue_events(segue_call *call);
/* Queues the last callbacks of the call, because the runtime ends. The handler may still
 * have the handle. */
void sgi_call_shut_down(segue_call *call);
/* Drops the operation's reference to the call. */
void sgi_call_release_by_op(segue_call *call);
/* Drops one reference. */
void sgi_call_unref(segue_call *call);
/* Delivers the due events of a call (call_events.c). The ready queue calls this function.
 * Returns the number of delivered events, which is at most `budget`. */
int32_t sgi_call_deliver_events(sgi_ready_object *ready, int32_t budget);
/* Returns a question of the call whose outcome is known and was not delivered to the
 * handler yet. The outcome is a durable answer, or the end of the call without an answer.
 * Returns NULL when the call has no such question. */
sgi_op_question *sgi_call_due_answer(const segue_call *call);

/* True when the handler has to hear that its last checkpoint is stored. */
bool sgi_call_checkpoint_is_due(const segue_call *call);

/* True when the handler cannot append to the operation any more. */
static inline bool sgi_call_is_over(const segue_call *call)
{
    return call->is_closing || call->lost || sgi_op_has_ended(call->op);
}

/* Returns SEGUE_E_TERMINAL for a call that is over, and notes the reason for the error
 * message. */
segue_status sgi_call_refuse_ended(const segue_call *call);

/* Keeps the first turn of the handler open after on_call has returned. The turn then ends
 * when sgi_call_end_turn is called, when the call ends or asks a question, or after
 * first_turn_ms. Returns SEGUE_E_STATE when the turn or the call is already over, or when
 * no answer to the client waits for the end of the turn. */
segue_status sgi_call_hold_turn(segue_call *call);
void sgi_call_end_turn(segue_call *call);
/* Marks the first turn of the handler as over and notifies the reply that waits for the
 * end of the turn. */
void sgi_call_notify_turn_over(segue_call *call);

/* Appends the last entries of the operation. The function becomes the owner of the
 * list. */
segue_status sgi_call_end(segue_call *call, struct sgi_entry_list *list);
/* Keeps the last entries of the operation until they are checked (tool_check.c), and then
 * appends the entries. The function becomes the owner of the list. */
void sgi_call_check_then_end(segue_call *call, struct sgi_entry_list *list);

segue_status sgi_call_set_events(segue_call *call, const segue_call_events *events);
segue_status sgi_call_meta(const segue_call *call, const char *key, sgi_json *value);
segue_status sgi_call_argument(const segue_call *call, const char *name, sgi_json *value);
segue_status sgi_call_header(const segue_call *call, sgi_str name, size_t index,
                             sgi_str *value);
segue_status sgi_call_header_at(const segue_call *call, size_t index, sgi_str *name,
                                sgi_str *value);
/* Returns the application's context of the exchange by hand that made the call. */
void *sgi_call_context(const segue_call *call);
segue_status sgi_call_argument_text(segue_call *call, const char *name, sgi_str *text);
segue_status sgi_call_send(segue_call *call, const segue_content *content);
segue_status sgi_call_send_text(segue_call *call, sgi_str text);
segue_status sgi_call_extend_text(segue_call *call, int64_t index, sgi_str text);
segue_status sgi_call_replace_segments(segue_call *call);
segue_status sgi_call_set_field(segue_call *call, const char *name, const char *json,
                                size_t len);
segue_status sgi_call_set_completion(segue_call *call, const char *const *values,
                                     size_t count, int64_t total, bool has_more);
segue_status sgi_call_progress(segue_call *call, double progress, double total,
                               const char *message);
segue_status sgi_call_log(segue_call *call, const char *level, const char *json,
                          size_t len);
segue_status sgi_call_hang_up(segue_call *call, int64_t retry_ms);
segue_status sgi_call_set_status(segue_call *call, const char *message);
segue_status sgi_call_require_input(segue_call *call, const char *key, const char *method,
                                    const char *params, size_t len,
                                    segue_input_fn on_input, void *user,
                                    segue_free_fn free_user);
/* ttl_ms: 0 = as the client has asked, or as in the tool's options. */
segue_status sgi_call_defer(segue_call *call, int64_t ttl_ms);
/* Called before an error ends the operation. A call becomes a task here if its client
 * asks for one and the call is plain only because a result at once may be its answer. The
 * client then gets a task that fails, whether the call fails in its first turn or later.
 * A call that cannot become a task is answered with the error. */
void sgi_call_on_failing(sgi_op *op);
segue_status sgi_call_checkpoint(segue_call *call, const void *data, size_t len);
segue_status sgi_call_complete(segue_call *call, const segue_content *content);
segue_status sgi_call_fail(segue_call *call, int32_t code, const char *message,
                           const char *data, size_t len);
segue_status sgi_call_resumed(const segue_call *call, uint64_t *last_segment,
                              const void **data, size_t *len);
/* These three functions pass on the result, the error or a log message that another
 * server sent for this call (relayed.c). */
segue_status sgi_call_complete_json(segue_call *call, const char *json, size_t len);
segue_status sgi_call_fail_with(segue_call *call, const segue_error_view *error);
segue_status sgi_call_log_json(segue_call *call, const char *json, size_t len);
/* Returns the lowest level of log messages that the client has requested, as an index
 * into the list of levels. Returns -1 when the client has requested no log messages. */
int32_t sgi_call_log_level(const segue_call *call);
void sgi_call_free(segue_call *call);

#endif
