/* segue_call: the handle that a handler has of its operation. With it the handler appends
 * results, asks the client and ends the operation. A call does not know which dialect or
 * connection the client uses (R-C-13). */
#ifndef SGI_CALL_H
#define SGI_CALL_H

#include "engine/server/content.h"
#include "engine/server/peer.h"

/* A text that segue_call_argument_text has decoded. The text stays in memory as long as
 * the call. */
typedef struct sgi_decoded_text {
    TAILQ_ENTRY(sgi_decoded_text) link;
    size_t len;
    char text[];
} sgi_decoded_text;

struct segue_call {
    sgi_handle handle;
    /* the handler, the operation and the ready queue have one reference each */
    int32_t refs;
    bool check_due;
    bool has_text; /* for a resource: the handler has begun the text of the resource */
    sgi_op *op;    /* a counted reference */
    LIST_ENTRY(segue_call) link; /* link in the list of all calls of the server */
    sgi_ready ready;
    /* the timer that ends the first turn when the handler holds it for too long */
    sgi_timer turn;
    bool held; /* the handler has the handle and has not freed it */
    bool invoke_due;
    /* the first turn of the handler is over, and the reply that waited for its end was
     * told */
    bool turned;
    /* the handler holds its first turn: the turn does not end when on_call returns */
    bool holds_turn;
    bool watched;
    bool cancelled;
    bool cancel_due;
    bool wants_drain;
    bool drain_due;
    /* the operation was rebuilt after a restart, and its handler runs again */
    bool resumed;
    bool lost; /* another server has taken the operation over */
    /* the handler has given its last entries; they are in `closing` until they are
     * checked (tool_check.c) */
    bool is_closing;
    /* the last entries of the operation, while they wait for the check */
    struct sgi_entry_list closing;
    uint64_t text; /* index of this text in the list of blocks of the result */
    uint64_t resumed_segment;
    void *resumed_data; /* the checkpoint that an earlier run of the handler stored */
    size_t resumed_len;
    segue_call_events events;
    TAILQ_HEAD(, sgi_decoded_text) decoded;
};

/* Makes the call of an operation and queues its handler. again: an earlier run of the
 * handler has begun the operation. */
segue_status sgi_call_start(sgi_op *op, bool again);
/* Tells the handler to stop, because the operation was cancelled, has expired or was
 * taken over by another server. */
void sgi_call_cancel(segue_call *call);
/* Notes that another server has taken over the operation. All later functions that the
 * handler calls then fail. */
void sgi_call_taken_over(segue_call *call);
/* Queues the call, because its operation may have room for more entries. A handler that
 * waits for room then continues, and answers are delivered. */
void sgi_call_has_room(segue_call *call);
/* Queues the call: its due events run later, and then its open questions are sent to the
 * client. */
void sgi_call_queue_events(segue_call *call);
/* Makes the last callbacks of the call due, because the runtime ends. The handler may
 * still have the handle. */
void sgi_call_shut_down(segue_call *call);
/* Drops the operation's reference to the call. */
void sgi_call_release(segue_call *call);
/* Drops one reference. */
void sgi_call_unref(segue_call *call);
/* Runs from the ready queue of a call: delivers its events (call_events.c). */
int32_t sgi_call_deliver(sgi_ready *ready, int32_t budget);
/* Returns a question whose outcome the handler does not know yet: the answer is durable,
 * or no answer will come. NULL = there is none. */
sgi_input *sgi_call_due_answer(const segue_call *call);

/* True when the handler cannot append to the operation any more. */
static inline bool sgi_call_is_over(const segue_call *call)
{
    return call->is_closing || call->lost || sgi_op_has_ended(call->op);
}

/* Returns SEGUE_E_TERMINAL and notes the reason for the refusal. */
segue_status sgi_call_refuse_ended(const segue_call *call);

/* Keeps the first turn of the handler open after on_call has returned. The turn then ends
 * by sgi_call_end_turn, when the call ends or asks a question, or after first_turn_ms.
 * Returns SEGUE_E_STATE when no answer to the client depends on the end of the turn. */
segue_status sgi_call_hold_turn(segue_call *call);
void sgi_call_end_turn(segue_call *call);
/* If the first turn of the handler is over, tells the reply that waits for its end. */
void sgi_call_notify_turn_over(segue_call *call);

/* Appends the last entries of the operation. The function becomes the owner of the
 * list. */
segue_status sgi_call_end(segue_call *call, struct sgi_entry_list *list);
/* Stores the last entries of the operation, and appends them after they were checked. The
 * function becomes the owner of the list. */
void sgi_call_check_then_end(segue_call *call, struct sgi_entry_list *list);

segue_status sgi_call_set_events(segue_call *call, const segue_call_events *events);
segue_status sgi_call_meta(const segue_call *call, const char *key, sgi_json *value);
segue_status sgi_call_argument(const segue_call *call, const char *name, sgi_json *value);
segue_status sgi_call_argument_text(segue_call *call, const char *name, sgi_str *text);
segue_status sgi_call_send(segue_call *call, const segue_content *content);
segue_status sgi_call_send_text(segue_call *call, sgi_str text);
segue_status sgi_call_extend_text(segue_call *call, int64_t index, sgi_str text);
segue_status sgi_call_replace(segue_call *call);
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
segue_status sgi_call_defer(segue_call *call, int64_t ttl_ms);
segue_status sgi_call_checkpoint(segue_call *call, const void *data, size_t len);
segue_status sgi_call_complete(segue_call *call, const segue_content *content);
segue_status sgi_call_fail(segue_call *call, int32_t code, const char *message,
                           const char *data, size_t len);
segue_status sgi_call_resumed(const segue_call *call, uint64_t *last_segment,
                              const void **data, size_t *len);
/* The end of a call, and its messages, as another server made them (relayed.c). */
segue_status sgi_call_complete_json(segue_call *call, const char *json, size_t len);
segue_status sgi_call_fail_with(segue_call *call, const segue_error_view *error);
segue_status sgi_call_log_json(segue_call *call, const char *json, size_t len);
/* Returns the index of the lowest level of the log messages that the client wants; -1 =
 * it wants none. */
int32_t sgi_call_log_level(const segue_call *call);
void sgi_call_free(segue_call *call);

#endif
